"""*Open* behind a Traefik as docs/connect/jupyter.md shows it; it is built with the programs of the cluster."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.kubernetes.cluster import programs
from tests.support.chromium import OwnNetwork
from tests.support.in_front import traefik
from tests.support.lab_site import running_lab
from tests.support.opening import BOARD, ELSEWHERE, NAME, RELATIVE, SERVICE, submit_services, visit

BASE = "/base/"


@pytest.mark.timeout(3600)
def test_services_open_below_its_prefix(tmp_path: Path) -> None:
    program = programs.build("traefik") / "traefik"
    options = [
        f"--ServerApp.base_url={BASE}",
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.trust_xheaders=True",
    ]
    with OwnNetwork().entered(), running_lab(tmp_path / "lab", options=options) as site:
        headers = {"Authorization": f"token {site.token}"}
        with httpx.Client(base_url=site.url, headers=headers, timeout=60) as client:
            submit_services(client)
        rules = f"MAP portal.example 127.0.0.1,{ELSEWHERE}"
        with (
            traefik(tmp_path / "traefik", program, urlsplit(site.url).port or 0) as port,
            sync_playwright() as playwright,
            visit(playwright, rules, tmp_path) as found,
        ):
            root = f"http://portal.example:{port}{BASE}"
            found.show_panel(f"{root}lab/workspaces/test?reset&token={site.token}")
            relative = found.open_service(RELATIVE, "web")
            relative.wait_for_url(f"{root}pai/s/{RELATIVE}--web/")
            expect(relative.locator("p")).to_have_text("echo of hello")
            service = found.open_service(NAME, "jupyter")
            service.wait_for_url(f"{root}pai/s/{SERVICE}/tree")
            found.use_jupyter(service)
            found.use_tensorboard(f"{root}pai/s/{BOARD}--web/")
