"""A real provider of OpenID Connect from npm, where any name signs in with any password."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import Page

from pai_backend.testing.free_ports import free_port
from tests.support.hub_site import run_to_its_end
from tests.support.lab_site import ROOT

PACKAGES = {"private": True, "dependencies": {"oidc-provider": "^9"}}
PROGRAM = ROOT / "tests" / "support" / "oidc_provider.mjs"
START_S = 60.0
CLIENT = "pai"


@dataclass(frozen=True)
class OidcSite:
    """Where the provider is, and whose groups it tells."""

    issuer: str
    groups_file: Path

    def say(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Have users in these groups from their next sign-in on."""
        self.groups_file.write_text(json.dumps(groups))

    def sign_in(self, page: Page, name: str) -> None:
        """At the page that is shown; and agree to what `pai` asks for."""
        page.locator("input[name=login]").fill(name)
        page.locator("input[name=password]").fill("any")
        page.get_by_role("button", name="Sign-in").click()
        page.get_by_role("button", name="Continue").click()

    def sign_in_by_code(self, page: Page, where: str, code: str, name: str) -> None:
        """The same for a device, whose code is entered first."""
        page.goto(where)
        page.locator("input[name=user_code]").fill(code)
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Continue").click()
        self.sign_in(page, name)
        page.get_by_text("Sign-in Success").wait_for()


def install_provider(root: Path) -> Path:
    """Install it into a folder, from the registry."""
    (root / "package.json").write_text(json.dumps(PACKAGES))
    (root / "yarn.lock").write_text("")
    shutil.copy(ROOT / "labextension" / ".yarnrc.yml", root)
    run_to_its_end(["jlpm", "install"], root)
    return root


@contextmanager
def oidc_provider(root: Path) -> Iterator[OidcSite]:
    """Run what is installed there until the end of the block."""
    port = free_port()
    site = OidcSite(f"http://127.0.0.1:{port}", root / "groups.json")
    site.say({})
    log = root / "provider.log"
    with log.open("wb") as output:
        command = ["node", str(PROGRAM), str(port), str(site.groups_file)]
        process = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_S
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(f"{site.issuer}/.well-known/openid-configuration", timeout=START_S).is_success:
                    break
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        yield site
    finally:
        process.terminate()
        process.wait(60)
