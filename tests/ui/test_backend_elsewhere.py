"""*Open* in a JupyterLab on a laptop whose backend is elsewhere, behind a reverse proxy with a wildcard domain.

With a real cluster, and the other ways into one: ``tests/kubernetes/routes/test_from_a_laptop.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import expect, sync_playwright

from pai_backend.testing.free_ports import free_port
from tests.kubernetes.cluster.credentials import Authority
from tests.support import event_file
from tests.support.backend_process import Backend, backend
from tests.support.in_front import nginx
from tests.support.lab_site import LabSite, end_jobs, running_lab
from tests.support.opening import BOARD, NAME, PLAIN, SERVICE, Visit, submit_services, visit

DOMAIN = "services.pai.example"
TOKEN = "a-token-of-ann-alone"
NODE = {"name": "carol", "gpus": {"type": "TITANX", "count": 1}, "cpus": 8, "memory_mb": 32768}


@contextmanager
def panel(shared: Backend, place: Path, rules: str) -> Iterator[tuple[Visit, LabSite]]:
    """The panel of a laptop's JupyterLab that asks the backend, with jobs whose services answer."""
    told = {"PAI_URL": shared.url, "PAI_TOKEN": TOKEN}
    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(place / "lab", told))
        headers = {"Authorization": f"token {lab.token}"}
        client = stack.enter_context(httpx.Client(base_url=lab.url, headers=headers, timeout=60))
        stack.callback(end_jobs, client)
        submit_services(client)
        playwright = stack.enter_context(sync_playwright())
        found = stack.enter_context(visit(playwright, rules, place))
        found.show_panel(lab.page)
        yield found, lab


def opened(shared: Backend, job: str) -> str:
    """The address that ``pai open`` shows in a shell of the laptop, without any Jupyter server."""
    own = {"PAI_URL": shared.url, "PAI_TOKEN": TOKEN}
    command = [sys.executable, "-m", "jupyter_pai.cli", "open", job, "--print"]
    done = subprocess.run(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_behind_a_wildcard_domain_every_application_opens_at_its_own_address(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    authority.create()
    pair = authority.issue(DOMAIN, hosts=[f"*.{DOMAIN}"])
    port, data_dir = free_port(), tmp_path / "backend"
    data_dir.mkdir()
    given = {
        "PAI_BACKEND_API__TOKENS": json.dumps([{"user": "ann", "token": TOKEN, "admin": False}]),
        "PAI_BACKEND_API__PUBLIC_URL": f"https://pai.example:{port}",
        "PAI_BACKEND_API__SERVICE_DOMAIN": DOMAIN,
        "PAI_BACKEND_ENGINE__TRUST_ALL_USERS": "true",
    }
    with ExitStack() as stack:
        shared = stack.enter_context(backend(data_dir, ["--engine-nodes", json.dumps([NODE])], env=given))
        tls = (pair.certificate, pair.key)
        stack.enter_context(nginx(tmp_path / "nginx", urlsplit(shared.url).port or 0, tls, below="/", at=port))
        found, _ = stack.enter_context(panel(shared, tmp_path, f"MAP *.{DOMAIN} 127.0.0.1"))
        plain = found.open_service(PLAIN, "web")
        plain.wait_for_url(f"https://{PLAIN}--web.{DOMAIN}:{port}/")
        expect(plain.locator("p")).to_have_text("echo of hello")
        service = found.open_service(NAME, "jupyter")
        service.wait_for_url(f"https://{SERVICE}.{DOMAIN}:{port}/tree")
        found.use_jupyter(service)
        found.use_tensorboard(f"https://{BOARD}--web.{DOMAIN}:{port}/")
        # This machine does not look those names up, so a shell leads to the path below the backend.
        direct = found.context.new_page()
        direct.goto(opened(shared, NAME))
        direct.wait_for_url(f"{shared.url}/s/{SERVICE}/tree")
        found.use_jupyter(direct)
        board = found.context.new_page()
        board.goto(opened(shared, BOARD))
        expect(board.locator("card-view").get_by_text(event_file.TAG, exact=True)).to_be_visible()


def test_with_one_host_name_alone_an_application_opens_at_a_port_of_the_laptop(tmp_path: Path) -> None:
    data_dir = tmp_path / "backend"
    data_dir.mkdir()
    given = {
        "PAI_BACKEND_API__TOKENS": json.dumps([{"user": "ann", "token": TOKEN, "admin": False}]),
        "PAI_BACKEND_ENGINE__TRUST_ALL_USERS": "true",
    }
    with backend(data_dir, ["--engine-nodes", json.dumps([NODE])], env=given) as shared:
        # The laptop reaches the backend's port by one name alone, which the Jupyter server asks.
        rules = f"MAP *.localhost:{urlsplit(shared.url).port} 127.0.0.2"
        with panel(shared, tmp_path, rules) as (found, lab):
            plain = found.open_service(PLAIN, "web")
            expect(plain.locator("p")).to_have_text("echo of hello")
            assert re.fullmatch(rf"http://{PLAIN}--web\.localhost:\d+/", plain.url)
            assert urlsplit(plain.url).port not in (urlsplit(shared.url).port, urlsplit(lab.url).port)
            again = found.open_service(PLAIN, "web")
            again.wait_for_url(plain.url)
            service = found.open_service(NAME, "jupyter")
            service.wait_for_url(f"{lab.url}pai/s/{SERVICE}/tree")
            found.use_jupyter(service)
