"""A real backend on the cluster that is to suffer, the jobs it was given, and what it must show of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import yaml

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.faults.jobs import RUNS, Wanted, a_stream
from tests.kubernetes.fixtures import remove_namespace
from tests.support.backend_process import Backend, backend, kill
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.kubeconfigs import kubeconfig

LIMIT_S = 300.0  # for whatever is waited for; a quiet machine needs a tenth of it, or less
PATIENCE = {"node_s": 15}  # less, and a busy machine loses nodes that are there
PROCESSES = '[["api"], ["controller"]]'
END = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True)
class Site:
    """A namespace of the cluster, a way into it through a proxy, and a directory for lines that tasks write."""

    cluster: Cluster
    kubectl: Kubectl
    proxy: FaultProxy
    kubeconfig: Path
    runs: Path
    runtime_image: str

    @property
    def pods(self) -> dict[str, Any]:
        """What is chosen about pods."""
        return {
            "runtime_image": self.runtime_image,
            "grace_s": 1,
            "cpu_limits": False,
            "volumes": [{"name": "runs", "host_path": str(self.runs), "path": RUNS}],
        }

    def arguments(self, pods: Mapping[str, Any] | None, patience: Mapping[str, int]) -> list[str]:
        """Options of a backend here."""
        keys = {
            "processes": PROCESSES,
            "engine-kind": "kubernetes",
            "engine-grace-s": "1",
            "kubernetes-kubeconfig": str(self.kubeconfig),
            "kubernetes-namespace": self.kubectl.namespace,
            "kubernetes-pods": json.dumps({**self.pods, **(pods or {})}),
            "kubernetes-patience": json.dumps({**PATIENCE, **patience}),
        }
        return [word for key, value in keys.items() for word in (f"--{key}", value)]

    @asynccontextmanager
    async def beside(self, place: Path) -> AsyncIterator[Site]:
        """The same namespace by another way, for a second backend."""
        await asyncio.to_thread(place.mkdir)
        async with fault_proxy(self.cluster.plane.server) as proxy:
            document = yaml.safe_load(self.kubeconfig.read_text())
            document["clusters"][0]["cluster"]["server"] = proxy.url
            path = place / "kubeconfig"
            path.write_text(yaml.safe_dump(document))
            yield replace(self, proxy=proxy, kubeconfig=path)

    def lines(self) -> list[str]:
        """What commands have written: the job's name and the task's uid, once for each run."""
        path = self.runs / "lines"
        return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def site_on(cluster: Cluster, name: str, place: Path, runtime_image: str) -> AsyncIterator[Site]:
    """Make a namespace and an account in it that may do everything, until the block ends."""
    kubectl = cluster.kubectl.within(name)
    await kubectl("create", "namespace", name)
    await kubectl("create", "serviceaccount", "backend")
    role = ("--clusterrole=cluster-admin", f"--serviceaccount={name}:backend")
    await kubectl("create", "clusterrolebinding", f"{name}-backend", *role)
    token = (await kubectl("create", "token", "backend", "--duration=24h")).strip()
    runs = place / "runs"
    runs.mkdir(mode=0o777)
    runs.chmod(0o777)
    async with fault_proxy(cluster.plane.server) as proxy:
        path = place / "kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig(proxy.url, token=token)))
        try:
            yield Site(cluster, kubectl, proxy, path, runs, runtime_image)
        finally:
            await kubectl("delete", "clusterrolebinding", f"{name}-backend")
            await remove_namespace(kubectl)


class Product:
    """A running backend, and what was asked of it."""

    def __init__(self, site: Site, running: Backend) -> None:
        self.site, self.backend = site, running
        self.wanted: list[Wanted] = []
        self._stream = a_stream("short")
        self.client = httpx.AsyncClient(
            base_url=running.url,
            headers={"Authorization": f"Bearer {running.token}", "Accept": "application/vnd.jupyter-pai+json"},
            timeout=60,
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Ask it no more."""
        await self.client.aclose()

    async def submit(self, wanted: Wanted, **changes: Any) -> Wanted:
        """Hand a job in."""
        about = {"name": wanted.name, "filename": "job.json"}
        answer = await self.client.post("/api/v2/jobs", content=wanted.document(**changes), params=about)
        assert answer.status_code == 202, answer.text
        self.wanted.append(wanted)
        return wanted

    async def stop(self, wanted: Wanted) -> None:
        """Ask a job to stop."""
        path = f"/api/v2/jobs/{wanted.name}/executionType"
        assert (await self.client.put(path, json={"value": "STOP"})).status_code == 202

    async def release(self, wanted: Wanted) -> None:
        """Let a patient job go."""
        await asyncio.to_thread((self.site.runs / wanted.gate).touch)

    async def job(self, wanted: Wanted) -> dict[str, Any]:
        """A job as its user sees it."""
        answer = await self.client.get(f"/api/v2/jobs/{wanted.name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def task(self, wanted: Wanted) -> dict[str, Any]:
        """Its only task."""
        return dict((await self.job(wanted))["taskRoles"][0]["taskStatuses"][0])

    async def until(self, wanted: Wanted, holds: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        """The job once it is as wanted. Raises NotInTime with what it says of itself."""
        last: dict[str, Any] = {}

        async def there() -> bool:
            last.update(await self.job(wanted))
            return bool(holds(last))

        try:
            await until(there, f"{wanted.name} {what}", LIMIT_S, 0.1)
        except NotInTime as late:
            told = f"{last['state']}, {last['why']}; {last['taskRoles']}"
            raise NotInTime(f"{late}: {told}\n{self.log()}") from None
        return last

    async def running(self, wanted: Wanted, node: str = "") -> str:
        """Wait until it runs, on this node if one is given; the node."""

        def there(job: dict[str, Any]) -> bool:
            task = job["taskRoles"][0]["taskStatuses"][0]
            return job["state"] == "RUNNING" and task["phase"] == "running" and node in ("", task["node"])

        job = await self.until(wanted, there, f"to run on {node or 'a node'}")
        return str(job["taskRoles"][0]["taskStatuses"][0]["node"])

    async def ended(self, wanted: Wanted) -> dict[str, Any]:
        """Wait until it has ended."""
        return await self.until(wanted, lambda job: job["state"] in END, "to end")

    async def until_away(self, node: str) -> None:
        """Wait until the backend knows that a node is not ready."""
        await self._until_node(node, "ready")

    async def until_closed(self, node: str) -> None:
        """Wait until the backend knows that a node is cordoned."""
        await self._until_node(node, "schedulable")

    async def _until_node(self, node: str, no_longer: str) -> None:
        async def known() -> bool:
            answer = await self.client.get("/api/v2/cluster/nodes")
            assert answer.status_code == 200, answer.text
            return any(each["name"] == node and not each[no_longer] for each in answer.json()["data"])

        await until(known, f"{node} to be seen no longer {no_longer}", LIMIT_S, 0.1)

    async def told(self, wanted: Wanted) -> list[str]:
        """The story that the job's event log tells: types of events, with what is said of states and retries."""
        answer = await self.client.get(f"/api/v2/jobs/{wanted.name}/events")
        assert answer.status_code == 200, answer.text
        return [_line(event["type"], event["payload"]) for event in answer.json()["data"]]

    async def probe(self) -> float:
        """Seconds from handing a short job in to its end: the product works again, or still."""
        began = time.monotonic()
        await self.ended(await self.submit(Wanted(f"probe-{len(self.wanted)}")))
        return round(time.monotonic() - began, 1)

    async def hand_in(self, number: int) -> None:
        """Hand in so many more short jobs, of all kinds, and go on while they are on their way: the load."""
        for _ in range(number):
            await self.submit(next(self._stream))

    def kill_controller(self) -> bool:
        """Kill -9 the process that decides; False when it is not there now."""
        there = self.backend.children().get("controller")
        if there is not None:
            kill(there)
        return there is not None

    def log(self) -> str:
        """The last that the backend wrote."""
        return self.backend.errors.read_text(errors="replace")[-4000:]


def _line(type_: str, about: Mapping[str, Any]) -> str:
    match type_:
        case "job.state":
            return f"{about['state']}: {about['why']}"
        case "task.state":
            exit_ = about.get("exit") or {}
            return (
                f"task {about['phase']} on {about['node']} {exit_.get('reason', '')} {exit_.get('message', '')}".strip()
            )
        case "job.retry":
            return f"retry {about['attempt']} free={about['free']}: {about['reason']}"
        case "job.exit":
            return f"exit {about['state']}: {about['message']}"
    return type_


@asynccontextmanager
async def product_on(
    site: Site,
    place: Path,
    pods: Mapping[str, Any] | None = None,
    env: dict[str, str] | None = None,
    patience: Mapping[str, int] = MappingProxyType({}),
    *,
    whole: bool = True,
) -> AsyncIterator[Product]:
    """Start a backend on the site, and end it with the block; one that is not ``whole`` waits for another's lease."""
    starting = backend(place, site.arguments(pods, patience), env, whole=whole)
    running = await asyncio.to_thread(starting.__enter__)
    try:
        product = Product(site, running)
        try:
            yield product
        finally:
            await product.aclose()
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


@contextlib.contextmanager
def timed(record: Callable[[str, object], None], name: str) -> Iterator[None]:
    """Note how many seconds a block took, for the report of the run."""
    began = time.monotonic()
    yield
    record(name, round(time.monotonic() - began, 1))
