"""*Open* behind a real JupyterHub: services of jobs below a user's path, and nothing of the Hub's reaches them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from playwright.sync_api import Playwright, expect

from pai_backend.auth.jupyterhub import CONFIRM_S
from pai_backend.testing.free_ports import free_port
from tests.kubernetes.cluster.credentials import Authority
from tests.support.backend_process import backend
from tests.support.hub_site import USERS, HubParts, HubSite, documented, install_hub, running_hub
from tests.support.in_front import nginx
from tests.support.opening import BOARD, ELSEWHERE, NAME, PLAIN, RELATIVE, SERVICE, Visit, submit_services, visit

UNAUTHORIZED, FORBIDDEN = 401, 403
SLACK_S = 30.0  # of a busy machine
# Users' servers, their backends and jobs start one after the other.
pytestmark = pytest.mark.timeout(900)
RULES = f"MAP hub.example 127.0.0.1,MAP *.hub.example 127.0.0.1,{ELSEWHERE}"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> HubParts:
    return install_hub(tmp_path_factory.mktemp("hub-parts"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of a server for the Hub's names, and its key."""
    authority = Authority(tmp_path_factory.mktemp("hub-certificate") / "authority")
    authority.create()
    pair = authority.issue("hub.example", hosts=["hub.example", "*.hub.example"])
    return pair.certificate, pair.key


@contextmanager
def panel(playwright: Playwright, hub: HubSite, user: str) -> Iterator[Visit]:
    """The panel of a user who has signed in at the Hub."""
    with visit(playwright, RULES, hub.root.parent) as found:
        found.page.goto(f"{hub.url}/hub/login")
        found.page.get_by_label("Username").fill(user)
        found.page.get_by_label("Password").fill(hub.password)
        found.page.get_by_role("button", name="Sign in").click()
        found.page.wait_for_url(f"{hub.base_of(user)}**")
        found.show_panel(f"{hub.base_of(user)}lab/workspaces/test?reset")
        yield found


def check_addresses(found: Visit, hub: HubSite) -> None:
    """What *Open* does for each kind of application, and what of the browser's cookies reaches a job."""
    base = hub.base_of("ann")
    assert "Set api.service_domain" in found.refused(PLAIN, "web")
    service = found.open_service(NAME, "jupyter")
    service.wait_for_url(f"{base}pai/s/{SERVICE}/tree")
    found.use_jupyter(service)
    found.use_tensorboard(f"{base}pai/s/{BOARD}--web/")
    relative = found.open_service(RELATIVE, "web")
    relative.wait_for_url(f"{base}pai/s/{RELATIVE}--web/")
    expect(relative.locator("p")).to_have_text("echo of hello")
    # As of another Jupyter server at the same host name: its cookie comes last, as a service's would come first.
    found.context.add_cookies([{"name": "_xsrf", "value": "of-another", "url": hub.url, "httpOnly": True}])
    names = {cookie.get("name", "") for cookie in found.context.cookies(f"{base}pai/s/{RELATIVE}--web/")}
    assert {"_xsrf", "jupyterhub-user-ann", "jupyterhub-session-id"} <= names
    relative.goto(f"{base}pai/s/{RELATIVE}--web/headers")
    told = json.loads(relative.locator("body").inner_text())
    assert told["X-Forwarded-Proto"] == "https"
    assert told["X-Forwarded-Prefix"] == f"/user/ann/pai/s/{RELATIVE}--web"
    assert not {"Cookie", "Authorization", "X-Xsrftoken"} & set(told)


def test_below_a_users_path_with_a_backend_of_the_users_own(
    playwright: Playwright, parts: HubParts, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    with running_hub(tmp_path / "hub", parts, certificate) as hub:
        hub.start_server("ann")
        with hub.client("ann") as client:
            submit_services(client)
        with panel(playwright, hub, "ann") as found:
            check_addresses(found, hub)


def test_below_a_users_host_name_with_one_backend_for_all_elsewhere(
    playwright: Playwright, parts: HubParts, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    hub_port = free_port()
    given = {
        "PAI_BACKEND_API__JUPYTERHUB__API_URL": f"http://127.0.0.1:{hub_port}/hub/api",
        "PAI_BACKEND_ENGINE__TRUST_ALL_USERS": "true",
    }
    data_dir = tmp_path / "backend"
    data_dir.mkdir()
    node = {"name": "carol", "gpus": {"type": "TITANX", "count": 1}, "cpus": 8, "memory_mb": 32768}
    with ExitStack() as stack:
        shared = stack.enter_context(backend(data_dir, ["--engine-nodes", json.dumps([node])], env=given))
        before = nginx(tmp_path / "nginx", urlsplit(shared.url).port or 0, below="/", forgets=True)
        address = f"http://127.0.0.1:{stack.enter_context(before)}"
        more = documented().replace("https://pai.example", address)
        running = running_hub(tmp_path / "hub", parts, certificate, more=more, is_divided=True, hub_port=hub_port)
        with running as hub, shared.client() as root:
            for user in USERS:
                hub.start_server(user)
            with hub.client("ann") as client:
                submit_services(client)
            with panel(playwright, hub, "ann") as found:
                check_addresses(found, hub)
            with hub.client("bob") as client:
                assert client.get(f"pai/s/{SERVICE}/tree").status_code == FORBIDDEN
            with panel(playwright, hub, "bob") as found:
                answer = found.page.goto(f"{hub.base_of('ann')}pai/s/{SERVICE}/tree")
                assert answer is not None
                assert answer.status == FORBIDDEN
            shown = {each["username"]: each["admin"] for each in root.get("/api/v2/users").json()}
            assert (shown["ann"], shown["bob"]) == (False, False)
            # What the Hub gave a server that it stops is good for nothing soon, also for who has kept it.
            token = environment_of(hub, "bob")["JUPYTERHUB_API_TOKEN"]
            with httpx.Client(base_url=shared.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as kept:
                assert kept.get("/api/v2/jobs").status_code == 200
                hub.stop_server("bob")
                deadline = time.monotonic() + CONFIRM_S + SLACK_S
                while kept.get("/api/v2/jobs").status_code != UNAUTHORIZED:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)


def environment_of(hub: HubSite, user: str) -> dict[str, str]:
    """What the Hub has given the process of a user's server."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            given = process.environ()
            if given.get("JUPYTERHUB_USER") == user and given.get("HOME", "").startswith(str(hub.root)):
                return given
    raise AssertionError(f"{user} has no server")
