"""``pai login`` where a provider of OpenID Connect signs users in: by a browser here, or by any other and a code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.support.backend_process import Backend, backend
from tests.support.keycloak_site import install_keycloak, keycloak
from tests.support.oidc_site import CLIENT, OidcSite, install_provider, oidc_provider
from tests.support.opening import visit

LIMIT_S = 120.0
KEYCLOAK = bool(os.environ.get("PAI_TEST_KEYCLOAK"))
NODE = {"name": "carol", "gpus": {"type": "TITANX", "count": 1}, "cpus": 8, "memory_mb": 32768}


@dataclass
class Site:
    """A backend, the provider that signs its users in, and a browser."""

    backend: Backend
    provider: OidcSite
    page: Page
    root: Path

    def pai(self, user: str, *words: str) -> subprocess.Popen[str]:
        """``pai`` of somebody with a home of their own, whose browser writes down where it is sent."""
        home = self.root / user
        home.mkdir(exist_ok=True)
        browser = home / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" >"{home}/address"\n')
        browser.chmod(0o755)
        given = {name: value for name, value in os.environ.items() if not name.startswith("PAI_")}
        given |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "BROWSER": f"{browser} %s"}
        command = [sys.executable, "-m", "jupyter_pai.cli", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=given, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)

    def said(self, user: str, *words: str) -> str:
        """What a command prints that succeeds."""
        out, err = self.pai(user, *words).communicate(timeout=LIMIT_S)
        assert err == ""
        return out


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The provider's folder. With ``PAI_TEST_KEYCLOAK`` it is Keycloak, which takes a minute to start."""
    install = install_keycloak if KEYCLOAK else install_provider
    return install(tmp_path_factory.mktemp("provider"))


@pytest.fixture
def site(tmp_path: Path, installed: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        provider = stack.enter_context((keycloak if KEYCLOAK else oidc_provider)(installed))
        (tmp_path / "data").mkdir()
        oidc = {"ISSUER": provider.issuer, "CLIENT_ID": CLIENT, "GROUPS_CLAIM": "groups", "ADMIN_GROUP": "/operators"}
        given = {f"PAI_BACKEND_API__OIDC__{name}": value for name, value in oidc.items()}
        given["PAI_BACKEND_ENGINE__TRUST_ALL_USERS"] = "true"
        words = ["--engine-nodes", json.dumps([NODE])]
        running = stack.enter_context(backend(tmp_path / "data", words, env=given))
        playwright = stack.enter_context(sync_playwright())
        found = stack.enter_context(visit(playwright, "MAP nowhere 127.0.0.1", tmp_path))
        yield Site(running, provider, found.page, tmp_path)


def test_users_of_the_provider_sign_in_and_have_its_groups(site: Site) -> None:
    with site.backend.client() as root:
        for group in ("vision", "speech"):
            body = {"groupname": group, "externalName": f"/lab/{group}"}
            root.post("/api/v2/groups", json=body).raise_for_status()
        if not KEYCLOAK:
            site.provider.say({"ann": ["/lab/vision", "/lab/other"], "olga": ["/operators"]})

        login = site.pai("ann", "login", site.backend.url, "--yes")
        assert login.stderr is not None
        assert "Sign in with a browser of this computer" in login.stderr.readline()
        address = login.stderr.readline().strip()
        site.page.goto(f"{address.partition('?')[0]}?state=of-another")
        assert login.poll() is None
        site.page.goto(address)
        site.provider.sign_in(site.page, "ann")
        site.page.get_by_text("pai goes on in your terminal.").wait_for()
        out, _ = login.communicate(timeout=LIMIT_S)
        assert out.startswith(f"Signed in to {site.backend.url} as ann, context ")
        assert (site.root / "ann" / "address").read_text().strip() == address
        assert site.said("ann", "list") == "No jobs.\n"
        contexts = site.root / "ann" / "config" / "jupyter-pai" / "contexts"
        (kept,) = (path.read_text() for path in contexts.iterdir())
        assert address.partition("state=")[2][:43] not in kept

        site.page.context.clear_cookies()
        login = site.pai("olga", "login", site.backend.url, "--device", "--yes")
        assert login.stderr is not None
        ((where, code),) = re.findall(r"Open (\S+) in any browser and enter the code (\S+)\.", login.stderr.readline())
        site.provider.sign_in_by_code(site.page, where, code, "olga")
        out, _ = login.communicate(timeout=LIMIT_S)
        assert out.startswith(f"Signed in to {site.backend.url} as olga, context ")

        users = {each["username"]: each for each in root.get("/api/v2/users").json()}
        assert (users["ann"]["admin"], users["olga"]["admin"]) == (False, True)
        assert "vision" in users["ann"]["grouplist"]
        assert "speech" not in users["ann"]["grouplist"]
        assert site.said("ann", "logout") == f"Signed out of {site.backend.url}.\n"
