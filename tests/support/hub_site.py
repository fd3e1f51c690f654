"""A real JupyterHub with its proxy, behind which two users have JupyterLab with the panel.

What only this needs is installed from the registries into a directory of its own; the servers of users run by the
Python of the tests. Names that the browser maps to 127.0.0.1 lead to it by https.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from pai_backend.testing.free_ports import free_ports
from tests.support.lab_site import ROOT, end_jobs, lab_environment

JUPYTERHUB = "jupyterhub>=6.1,<7"
PROXY = {"private": True, "dependencies": {"configurable-http-proxy": "^5"}}
INSTALL_S = 280
START_S = 180.0
USERS = ("ann", "bob")
ADMIN_TOKEN = "a-token-of-the-tests-at-the-hub"

CONFIGURATION = """
import json, pathlib
c = get_config()
given = json.loads(pathlib.Path({given!r}).read_text())
c.JupyterHub.bind_url = given["bind"]
c.JupyterHub.hub_port = given["hub_port"]
c.JupyterHub.subdomain_host = given["subdomain_host"]
c.JupyterHub.ssl_cert, c.JupyterHub.ssl_key = given["certificate"], given["key"]
c.JupyterHub.db_url = "sqlite:///" + given["root"] + "/hub.sqlite"
c.JupyterHub.cookie_secret_file = given["root"] + "/cookie_secret"
c.ConfigurableHTTPProxy.command = given["proxy"]
c.ConfigurableHTTPProxy.api_url = given["proxy_api"]
c.ConfigurableHTTPProxy.pid_file = given["root"] + "/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = given["password"]
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = given["root"] + "/homes/{{username}}"
c.Spawner.cmd = [given["python"], "-m", "jupyterhub.singleuser"]
c.Spawner.args = given["arguments"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 170
c.Spawner.environment = {{
    name: (lambda spawner, name=name: given["environments"][spawner.user.name][name])
    for name in given["environments"][given["users"][0]]
}}
c.JupyterHub.services = [dict(name="tests", api_token=given["token"])]
c.JupyterHub.load_roles = [
    dict(name="tests", services=["tests"], scopes=["admin:users", "admin:servers", "access:servers"])
]
"""


@dataclass(frozen=True)
class HubParts:
    """What is installed for it."""

    packages: Path
    """To be on ``PYTHONPATH``."""
    proxy: Path


def documented() -> str:
    """What the documentation adds to a Hub's configuration for one backend of all users."""
    page = (ROOT / "docs" / "connect" / "jupyterhub.md").read_text(encoding="utf-8")
    (shown,) = (text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "PAI_URL" in text)
    return str(shown)


def install_hub(root: Path) -> HubParts:
    """Install JupyterHub, beside the packages of the tests, and its proxy, from the registries."""
    home = root / "environment"
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (packages / "parent.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    versions = ["--constraint", str(ROOT / "tools" / "versions.txt")]
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *versions, JUPYTERHUB]
    run_to_its_end(pip, root)
    proxy = root / "proxy"
    proxy.mkdir()
    (proxy / "package.json").write_text(json.dumps(PROXY))
    (proxy / "yarn.lock").write_text("")
    shutil.copy(ROOT / "labextension" / ".yarnrc.yml", proxy)
    run_to_its_end(["jlpm", "install"], proxy)
    return HubParts(packages, proxy / "node_modules" / ".bin" / "configurable-http-proxy")


def run_to_its_end(command: list[str], cwd: Path) -> None:
    """Run a program that must succeed within minutes."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@dataclass(frozen=True)
class HubSite:
    """Where the Hub is for browsers, and how to ask it and the servers of users without one."""

    root: Path
    port: int
    is_divided: bool
    password: str
    started: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The Hub's origin."""
        return f"https://hub.example:{self.port}"

    def base_of(self, user: str) -> str:
        """The address of a user's server as browsers have it."""
        host = f"{user}.hub.example" if self.is_divided else "hub.example"
        return f"https://{host}:{self.port}/user/{user}/"

    def client(self, user: str) -> httpx.Client:
        """A client of a user's server, which lets it in as a service of the Hub."""
        host = self.base_of(user).split("/")[2]
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}/user/{user}/",
            headers={"Authorization": f"token {ADMIN_TOKEN}", "Host": host},
            verify=False,
            timeout=60,
        )

    def stop_server(self, user: str) -> None:
        """Let the Hub stop a user's server."""
        with self._api() as hub:
            hub.delete(f"users/{user}/server").raise_for_status()
        self.started.remove(user)

    def start_server(self, user: str) -> None:
        """Let the Hub start a user's server, and wait for it."""
        with self._api() as hub:
            hub.post(f"users/{user}").raise_for_status()
            hub.post(f"users/{user}/server").raise_for_status()
            deadline = time.monotonic() + START_S
            while not hub.get(f"users/{user}").json()["servers"].get("", {}).get("ready"):
                assert time.monotonic() < deadline, (self.root / "hub.log").read_text(errors="replace")[-4000:]
                time.sleep(0.1)
        self.started.append(user)

    def _api(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}/hub/api/",
            headers={"Authorization": f"token {ADMIN_TOKEN}", "Host": f"hub.example:{self.port}"},
            verify=False,
            timeout=60,
        )


@contextmanager
def running_hub(
    root: Path,
    parts: HubParts,
    certificate: tuple[Path, Path],
    *,
    more: str = "",
    is_divided: bool = False,
    hub_port: int = 0,
) -> Iterator[HubSite]:
    """A Hub until the end of the block, then its servers end too, with what they started.

    ``more`` is added to its configuration. ``is_divided``: each user has a host name. ``hub_port`` is where its API is,
    by http and without the proxy; 0 for any.
    """
    root.mkdir()
    port, api_port, free_port = free_ports(3)
    site = HubSite(root, port, is_divided, password="a password of the tests")
    own = {user: lab_environment(root / "homes" / user) for user in USERS}
    given = {
        "root": str(root),
        "bind": f"https://127.0.0.1:{port}",
        "hub_port": hub_port or free_port,
        "subdomain_host": site.url if is_divided else "",
        "certificate": str(certificate[0]),
        "key": str(certificate[1]),
        "proxy": [str(parts.proxy)],
        "proxy_api": f"http://127.0.0.1:{api_port}",
        "password": site.password,
        "python": sys.executable,
        "arguments": [
            "--allow-root",
            *(f"--LabApp.{name}" for name in ("expose_app_in_browser=True", "news_url=None")),
        ],
        "environments": own,
        "users": USERS,
        "token": ADMIN_TOKEN,
    }
    (root / "given.json").write_text(json.dumps(given))
    (root / "jupyterhub_config.py").write_text(CONFIGURATION.format(given=str(root / "given.json")) + more)
    paths = [str(parts.packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PAI_", "JUPYTER"))}
    environment |= {"PYTHONPATH": os.pathsep.join(paths)}
    log = root / "hub.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(root / "jupyterhub_config.py")],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _until_up(process, site, log)
        try:
            yield site
        finally:
            for user in site.started:
                with site.client(user) as client:
                    end_jobs(client)
    finally:
        process.terminate()
        process.wait(60)
        for user in USERS:
            subprocess.run(
                [sys.executable, "-m", "jupyter_pai.cli", "backend", "stop"],
                env={**os.environ, **own[user]},
                check=False,
                timeout=60,
                capture_output=True,
            )


def _until_up(process: subprocess.Popen[bytes], site: HubSite, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(f"https://127.0.0.1:{site.port}/hub/api/", verify=False, timeout=60).is_success:
                return
        assert process.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.1)
