"""The backend under attack: started as a user would, found by its process tree, killed without warning."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import httpx
import psutil
import yaml

from jupyter_pai.embedded import Embedded
from tests.support.backend_process import role_of
from tests.support.podman_site import PodmanSite

ROLES = ("api", "controller", "gateway", "agent")
START_S = 60.0
USER = "crash"
CONFIG = f"""\
user: {USER}
processes: [[api], [controller], [gateway], [agent]]
debug: {{keep_s: 3}}
engine:
  nodes:
    - {{name: carol, simulated: true, cpus: 64, memory_mb: 1000000, gpus: {{type: TITANX, count: 1}}}}
    - {{name: dan, simulated: true, cpus: 64, memory_mb: 1000000, gpus: {{type: TITANX, count: 1}}}}
"""

Headers = Mapping[str, str]
_NONE: Headers = {}


class Backend:
    """A backend with one process a role, in a directory of its own."""

    def __init__(self, home: Path, podman: PodmanSite | None = None) -> None:
        """With ``podman`` its tasks run in containers, which have ``home`` too."""
        self.data = home / "data"
        self.runs = home / "runs.log"
        self.image = "none" if podman is None else podman.image
        home.mkdir(parents=True, exist_ok=True)
        config = home / "backend.yaml"
        given = yaml.safe_load(CONFIG)
        if podman is not None:
            os.environ.update(podman.environment)
            given["engine"]["kind"] = "containers"
            given["containers"] = {"runtime_image": podman.runtime_image, "mounts": [{"source": str(home)}]}
        config.write_text(yaml.safe_dump(given), encoding="utf-8")
        self._private = Embedded(self.data, config)

    async def start(self) -> None:
        """Start it as any command of a user would, and wait until it is ready. Raises BackendStartFailed."""
        await asyncio.to_thread(self._private.ensure)
        await self.answering()

    async def stop(self) -> None:
        """End it in good order. Raises BackendAway when it does not end."""
        await asyncio.to_thread(self._private.stop)

    def pids(self, role: str) -> list[int]:
        """Processes that run the role now."""
        found = []
        for process in self._tree():
            try:
                if role in role_of(process).split(","):
                    found.append(process.pid)
            except psutil.NoSuchProcess:
                continue
        return found

    async def kill(self, target: str) -> bool:
        """kill -9 one role's process, or with ``all`` every process at once; False when it was not there."""
        if target != "all":
            pids = self.pids(target)
        else:
            pids = [pid for pid in [self._supervisor(), *(pid for role in ROLES for pid in self.pids(role))] if pid]
        for pid in pids:
            _kill(pid)
        if target == "all":
            await self.start()
        return bool(pids)

    async def answering(self) -> None:
        """Wait until ``/readyz`` says yes."""
        try:
            async with asyncio.timeout(START_S), httpx.AsyncClient(timeout=2.0) as client:
                while not await self._ready(client):  # noqa: ASYNC110 - see the next line
                    await asyncio.sleep(0.05)  # a process that is not there yet can wake nobody
        except TimeoutError:
            logs = "".join(path.read_text(encoding="utf-8")[-2000:] for path in self._private.log_dir.glob("*.log"))
            raise TimeoutError(f"the backend does not come back:\n{logs}") from None

    async def something_happened(self) -> None:
        """Give running jobs time to end before they are counted again."""
        await asyncio.sleep(0.25)

    async def submitted(self, client: httpx.AsyncClient, name: str, document: bytes) -> bool:
        """Whether the backend has the job: accepted now, or acknowledged before its answer was lost."""
        try:
            answer = await client.post(f"{self.url}/api/v2/jobs", content=document, headers=self.bearer)
        except (httpx.HTTPError, OSError, KeyError, json.JSONDecodeError):
            return False
        if answer.status_code >= 500:
            return False
        if answer.status_code not in (202, 409):
            raise AssertionError(f"{name}: {answer.status_code} {answer.text}")
        return True

    async def took_over(self, client: httpx.AsyncClient, name: str, document: bytes) -> bool:
        """Whether the backend has the job, which takes its workspace name from another one; asked again by its key."""
        return await self._taken(
            client, name, "POST", "?replace=true", content=document, more={"Idempotency-Key": f"key-of-{name}"}
        )

    async def asked_to_stop(self, client: httpx.AsyncClient, name: str) -> bool:
        """Whether the backend has taken the stop request; asking twice is the same as once."""
        return await self._taken(client, name, "PUT", f"/{name}/executionType", content=b'{"value": "STOP"}')

    async def asked_to_start(self, client: httpx.AsyncClient, name: str) -> bool:
        """The same of the request to run again; a job that goes on is left alone."""
        return await self._taken(client, name, "PUT", f"/{name}/executionType", content=b'{"value": "START"}')

    async def _taken(
        self, client: httpx.AsyncClient, name: str, method: str, path: str, *, content: bytes, more: Headers = _NONE
    ) -> bool:
        try:
            headers = {**self.bearer, **more}
            answer = await client.request(method, f"{self.url}/api/v2/jobs{path}", content=content, headers=headers)
        except (httpx.HTTPError, OSError, KeyError, json.JSONDecodeError):
            return False
        if answer.status_code >= 500:
            return False
        assert answer.status_code == 202, f"{name}: {answer.status_code} {answer.text}"
        return True

    async def asked_unfinished(self, client: httpx.AsyncClient) -> list[tuple[str, str]]:
        """As :meth:`unfinished`, asked until there is an answer."""
        while True:
            try:
                return await self.unfinished(client)
            except (httpx.HTTPError, OSError, KeyError, ValueError):
                await self.answering()

    async def let_go(self, client: httpx.AsyncClient, name: str) -> None:
        """Ask for the release of a job's kept tasks; when the backend is away, somebody asks again."""
        with contextlib.suppress(httpx.HTTPError, OSError, KeyError, json.JSONDecodeError):
            answer = await client.post(f"{self.url}/api/v2/jobs/{name}/release", headers=self.bearer)
            assert answer.status_code == 202 or answer.status_code >= 500, f"{name}: {answer.text}"

    async def unfinished(self, client: httpx.AsyncClient) -> list[tuple[str, str]]:
        """Name and state of every job that has not ended."""
        states = "WAITING,RUNNING,STOPPING"
        answer = await client.get(f"{self.url}/api/v2/jobs?state={states}&limit=1000", headers=self.bearer)
        answer.raise_for_status()
        return [(row["name"], f"{row['state']} {row['phase']} {row['why']}") for row in answer.json()]

    @property
    def url(self) -> str:
        """Where the api answers, by its own word."""
        return str(json.loads((self.data / "runtime" / "api.json").read_text(encoding="utf-8"))["url"]).rstrip("/")

    @property
    def bearer(self) -> dict[str, str]:
        """The header that says who asks."""
        return {"Authorization": f"Bearer {(self.data / 'token').read_text(encoding='utf-8').strip()}"}

    async def _ready(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get(f"{self.url}/readyz")).status_code == 200
        except (httpx.HTTPError, OSError, KeyError, json.JSONDecodeError):
            return False

    def _supervisor(self) -> int | None:
        return self._private.status().pid

    def _tree(self) -> list[psutil.Process]:
        try:
            supervisor = self._supervisor()
            return psutil.Process(supervisor).children() if supervisor is not None else []
        except psutil.NoSuchProcess:
            return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself between the listing and the kill
