"""From submit to RUNNING on a real cluster of two nodes: one task, and twenty at once, beside bare pods.

The nodes have half of the processors, control plane and clients the other half (see ``processors``): what a backend and
an API server think takes nothing from a kubelet, as where each has a machine of its own. Each side begins when the
cluster has nothing to do, since nodes go on clearing up after pods that are gone.

Both sides run the same image and command with the same requests and the same limits on system calls (which cost a
container runtime more than anything else that a pod may ask for), one after the other in turn. The peer's pod has an
init container of the same image that puts the runtime bundle in place, as a task's has; without it, which is told
beside, a container fewer runs. A job counts as running when its event stream says so, a pod when a watch of it does.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure
from bench.kubernetes import cpu
from bench.kubernetes.clusters import NAMESPACE, real
from bench.kubernetes.configuration import write_config
from bench.kubernetes.plain import Object, Plain, Watch, at_once, connected
from bench.kubernetes.processors import quiet
from bench.processes import running
from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint
from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes.pods.security import pod_security
from pai_backend.model.pod_settings import PodSettings
from tests.kubernetes.cluster import images
from tests.kubernetes.runtime_image import loaded

ROUNDS, TOGETHER = 7, 20
ROUNDS_TOGETHER = 5
LIMIT_S = 300.0
COMMAND = "sleep 1000"
OURS = "app.kubernetes.io/managed-by=jupyter-pai"


async def measure(*, tells_cpu: bool = False) -> list[Figure]:
    """The figures of starting. ``tells_cpu`` prints who used the processors in a first round of twenty."""
    async with _scene() as scene:
        await _in_turn(scene, 1, TOGETHER)  # does not count: whatever is done for the first time
        if tells_cpu:
            scene.tells_cpu = True
            await _in_turn(scene, 1, TOGETHER)
            scene.tells_cpu = False
        one = await _in_turn(scene, ROUNDS, 1)
        many = await _in_turn(scene, ROUNDS_TOGETHER, TOGETHER)
    return [_figure("start_one", one), _figure("start_twenty", many)]


@dataclass(frozen=True)
class Times:
    """Milliseconds of each round."""

    ours: list[float]
    with_init: list[float]
    bare: list[float]


def _figure(name: str, times: Times) -> Figure:
    ours, peer, bare = median(times.ours), median(times.with_init), median(times.bare)
    told = f"{ours:.0f} ms; bare pods {peer:.0f} ms, without init container {bare:.0f} ms"
    return Figure(name, 100 * (ours / peer - 1), told)


async def _in_turn(scene: _Scene, rounds: int, count: int) -> Times:
    times = Times([], [], [])
    for number in range(rounds):
        name = f"{scene.title()}-{number}"
        times.ours.append(await scene.job(name, count))
        times.with_init.append(await scene.pods(name, count, init=True))
        times.bare.append(await scene.pods(f"{name}-bare", count, init=False))
    return times


class _Scene:
    """Both sides, on one cluster."""

    def __init__(self, client: AsyncClient, plain: Plain, runtime_image: str) -> None:
        self._client, self._plain, self._runtime = client, plain, runtime_image
        self.tells_cpu = False
        self._rounds = 0

    def title(self) -> str:
        """A name that no round had before."""
        self._rounds += 1
        return f"r{self._rounds}"

    async def job(self, name: str, count: int) -> float:
        """Submit so many jobs at once; milliseconds until all run. They are gone afterwards."""
        await quiet()
        before = self._look()
        took_s = await at_once(lambda number: self._until_running(f"{name}-{number}"), count, count)
        self._tell(f"{count} jobs", before)
        async with self._plain.watching("Pod", OURS) as watch:
            await at_once(lambda number: self._client.stop(f"{name}-{number}"), count, count)
            await watch.until(lambda: len(watch.gone) >= count, LIMIT_S)
        return 1000 * took_s

    async def _until_running(self, name: str) -> None:
        await self._client.submit(_document(name), filename="job.json")
        async with asyncio.timeout(LIMIT_S):
            async for event in self._client.follow_events(name):
                if event["type"] == "job.state" and event["payload"]["state"] == "RUNNING":
                    return
        raise RuntimeError(f"{name} has ended without having run")

    async def pods(self, name: str, count: int, *, init: bool) -> float:
        """Create so many pods at once; milliseconds until all run. They are gone afterwards."""
        await quiet()
        async with self._plain.watching("Pod", "bench=peer", whole=True) as watch:
            before, began = self._look(), time.perf_counter()
            await at_once(lambda number: self._plain.create(self._pod(f"{name}-{number}", init=init)), count, count)
            ended = await watch.until(lambda: _running(watch) >= count, LIMIT_S)
            self._tell(f"{count} bare pods{', with an init container' if init else ''}", before)
            await at_once(lambda number: self._plain.delete("Pod", f"{name}-{number}", grace_s=1), count, count)
            await watch.until(lambda: len(watch.gone) >= count, LIMIT_S)
        return 1000 * (ended - began)

    def _look(self) -> cpu.Moment | None:
        return cpu.moment() if self.tells_cpu else None

    def _tell(self, title: str, before: cpu.Moment | None) -> None:
        if before is not None:
            print(cpu.told(title, before, cpu.moment()), flush=True)

    def _pod(self, name: str, *, init: bool) -> Object:
        requests = {"requests": {"cpu": "0", "memory": "100Mi"}}
        volumes = [{"name": "runtime", "emptyDir": {}}, {"name": "state", "emptyDir": {"medium": "Memory"}}]
        mounts = [{"name": "runtime", "mountPath": layout.RUNTIME}, {"name": "state", "mountPath": layout.STATE}]
        first = {
            "name": "runtime",
            "image": self._runtime,
            "command": [layout.INSTALLER, layout.RUNTIME, layout.STATE],
            "resources": requests,
            "volumeMounts": mounts,
        }
        task = {
            "name": "task",
            "image": images.PYTHON,
            "command": ["bash", "-c", COMMAND],
            "resources": requests,
            "volumeMounts": mounts,
        }
        spec: Object = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": pod_security(PodSettings(runtime_image=self._runtime)),
            "initContainers": [first] if init else [],
            "containers": [task],
            "volumes": volumes,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"bench": "peer"}},
            "spec": spec,
        }


def _running(watch: Watch) -> int:
    return sum(_runs(pod) for name, pod in watch.latest.items() if name not in watch.gone)


def _runs(pod: Object) -> bool:
    return any("running" in each["state"] for each in pod["status"].get("containerStatuses", ()))


def _document(name: str) -> bytes:
    """One task that asks for no whole CPU, which only OpenPAI v2 lets it, so that twenty fit on two small machines."""
    role = {
        "instances": 1,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 0, "memoryMB": 100, "gpu": 0},
        "commands": [COMMAND],
    }
    image = {"name": "image", "type": "dockerimage", "uri": images.PYTHON}
    document: dict[str, Any] = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [image],
        "taskRoles": {"worker": role},
    }
    return json.dumps(document).encode()


@asynccontextmanager
async def _scene() -> AsyncIterator[_Scene]:
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        home = Path(scratch)
        async with real("carol", "dan") as cluster, connected(cluster, NAMESPACE) as plain:
            runtime_image = await loaded(cluster)
            pods = {"runtime_image": runtime_image, "cpu_limits": False}
            config = write_config(home / "backend.yaml", cluster.kubeconfig, pods)
            async with running(config, home / "data", "api,controller") as backend:
                client = AsyncClient(Endpoint(str(backend.told["url"]), backend.token))
                try:
                    yield _Scene(client, plain, runtime_image)
                finally:
                    client.close()
