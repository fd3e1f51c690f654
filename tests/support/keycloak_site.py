"""A real Keycloak from Maven's repository, whose realm has ann in ``/lab/vision`` and olga in ``/operators``."""

from __future__ import annotations

import json
import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from playwright.sync_api import Page

from pai_backend.testing.free_ports import free_port
from tests.support.hub_site import run_to_its_end
from tests.support.oidc_site import CLIENT, OidcSite

VERSION = "26.7.3"
PASSWORD = "a password of the tests"
START_S = 300.0
MEMBERS = {"ann": ["/lab/vision"], "olga": ["/operators"]}


class Keycloak(OidcSite):
    """Keycloak's own pages."""

    def sign_in(self, page: Page, name: str) -> None:
        """By name and password; a client of the realm needs no consent."""
        page.get_by_label("Username or email").fill(name)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign In").click()

    def sign_in_by_code(self, page: Page, where: str, code: str, name: str) -> None:
        """The code first; then the user agrees, which Keycloak asks of each device."""
        page.goto(where)
        page.get_by_label("Enter the code").fill(code)
        page.get_by_role("button", name="Submit").click()
        self.sign_in(page, name)
        page.get_by_role("button", name="Yes").click()
        page.get_by_text("Device Login Successful").wait_for()


def install_keycloak(root: Path) -> Path:
    """Fetch it by Maven into a folder."""
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    run_to_its_end(["mvn", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={root}"], root)
    with zipfile.ZipFile(root / f"keycloak-quarkus-dist-{VERSION}.zip") as packed:
        packed.extractall(root)
    home = root / f"keycloak-{VERSION}"
    (home / "bin" / "kc.sh").chmod(0o755)
    (home / "data" / "import").mkdir(parents=True)
    (home / "data" / "import" / "lab.json").write_text(json.dumps(_realm()))
    return home


@contextmanager
def keycloak(home: Path) -> Iterator[OidcSite]:
    """Run it until the end of the block."""
    port = free_port()
    site = Keycloak(f"http://127.0.0.1:{port}/realms/lab", home / "unused")
    log = home / "keycloak.log"
    words = ["start-dev", "--http-host=127.0.0.1", f"--http-port={port}", "--import-realm"]
    environment = {**os.environ, "JAVA_OPTS_KC_HEAP": "-Xms128m -Xmx512m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "kc.sh"), *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + START_S
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(f"{site.issuer}/.well-known/openid-configuration", timeout=60).is_success:
                    break
            assert process.poll() is None, log.read_text(errors="replace")[-4000:]
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
            time.sleep(0.2)
        yield site
    finally:
        process.terminate()
        process.wait(60)


def _realm() -> dict[str, object]:
    """As `docs/oidc.md` says: a public client with PKCE and the device flow, and a mapper of groups."""
    mapper = {
        "name": "groups",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-group-membership-mapper",
        "config": {"claim.name": "groups", "full.path": "true", "id.token.claim": "true"},
    }
    client = {
        "clientId": CLIENT,
        "publicClient": True,
        "standardFlowEnabled": True,
        "redirectUris": ["http://127.0.0.1/*"],
        "attributes": {
            "oauth2.device.authorization.grant.enabled": "true",
            "pkce.code.challenge.method": "S256",
        },
        "protocolMappers": [mapper],
    }
    users = [
        {
            "username": name,
            "enabled": True,
            "email": f"{name}@example.org",
            "firstName": name,
            "lastName": name,
            "groups": groups,
            "credentials": [{"type": "password", "value": PASSWORD}],
        }
        for name, groups in MEMBERS.items()
    ]
    groups = [{"name": "lab", "subGroups": [{"name": "vision"}]}, {"name": "operators"}]
    return {"realm": "lab", "enabled": True, "clients": [client], "users": users, "groups": groups}
