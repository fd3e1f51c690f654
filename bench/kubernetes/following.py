"""What it costs to know 5,000 pods of a cluster and to follow 2,000 changes of them: CPU time, memory, requests.

A server in this process streams the objects as an API server does; the reflector runs in a process of its own, so that
nothing but it is measured. The peer does the same with the library's generated models, as a plain client would.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from bench.figures import Figure

PODS = 5_000
CHANGES = 2_000
PART = 5  # the peer does a fifth of it, or it would take half a minute
RUNS = 3
IDLE_S = 60.0
NUMBER, VERSION = b"@number@", b"@version@"
PATH = "/api/v1/namespaces/lab/pods"


async def measure() -> list[Figure]:
    """All figures of the reflector."""
    async with _server() as (port, requests):
        ours = [await _child("raw", port) for _ in range(RUNS)]
        models = await _child("models", port)
        before = requests["other"]
        idle = await _child("idle", port)
        assert idle["pods"] == ours[0]["pods"] == models["pods"] * PART == PODS
        asked = requests["other"] - before
    peer = f"with generated models {models['cpu_s']:.1f} s for a fifth of it"
    return [
        Figure("follow_cpu", min(run["cpu_s"] for run in ours), peer),
        Figure(
            "follow_memory",
            min(run["memory_mib"] for run in ours),
            f"models take {models['memory_mib']:.0f} MiB for a fifth",
        ),
        Figure("idle_requests", float(asked), f"beside one watch, in {IDLE_S:.0f} s"),
    ]


async def _child(what: str, port: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.kubernetes.following", what, str(port)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(300):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    measured: dict[str, float] = json.loads(output)
    return measured


# In the child


async def _follow(port: int, idle_s: float) -> dict[str, float]:
    """Our reflector: until the last change is known, or idle for that long after the list."""
    import yaml

    from pai_backend.engine.kubernetes.access import Access
    from pai_backend.engine.kubernetes.calls import Calls
    from pai_backend.engine.kubernetes.client import connect
    from pai_backend.engine.kubernetes.handover import Handover, ResourceListed, Seen
    from pai_backend.engine.kubernetes.objects import slim_pod, version_of
    from pai_backend.engine.kubernetes.reflector import Reflector, Resource

    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(yaml.safe_dump(_kubeconfig(port)))
        client = await connect(Access(path))
    handover = Handover()
    query = (("idle", "1"),) if idle_s else ()
    reflector = Reflector(Calls(client), Resource("pods", PATH, query), handover, slim=slim_pod)
    use = _Use()
    task = asyncio.create_task(reflector.run())
    wanted = PODS if idle_s else PODS + CHANGES
    latest, listed = 0, False
    while not listed or latest < wanted:
        use.sample()
        for change in await handover.take():
            if isinstance(change, Seen):
                latest = max(latest, int(version_of(change.object)))
            listed = listed or isinstance(change, ResourceListed)
    await asyncio.sleep(idle_s)  # the time that is measured
    found = {**use.figures(), "pods": float(len(reflector.objects))}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.aclose()
    return found


async def _models(port: int) -> dict[str, float]:
    """The library's own way, for a part of the objects: every one as a generated model, kept by uid."""
    from types import SimpleNamespace

    import aiohttp
    from kubernetes_asyncio.client import ApiClient, Configuration

    api = ApiClient(Configuration(host=f"http://127.0.0.1:{port}"))
    pods: dict[str, Any] = {}
    use = _Use()
    async with (
        aiohttp.ClientSession(read_bufsize=2**21) as session,
        session.get(f"http://127.0.0.1:{port}{PATH}?part={PART}") as answer,
    ):
        async for line in answer.content:
            event = json.loads(line)
            if event["type"] == "BOOKMARK":
                continue
            pod = api.deserialize(SimpleNamespace(data=json.dumps(event["object"])), "V1Pod")
            pods[pod.metadata.uid] = pod
            if int(pod.metadata.resource_version) >= PODS + CHANGES // PART:
                break
    found = {**use.figures(), "pods": float(len(pods))}
    await api.close()
    return found


class _Use:
    """CPU time, and the most memory that was seen above what there was; sampled, since the system's own peak of a
    process begins with that of its parent.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cpu_s = self._used_s()
        self._rss = self._most = self._process.memory_info().rss

    def _used_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def sample(self) -> None:
        self._most = max(self._most, self._process.memory_info().rss)

    def figures(self) -> dict[str, float]:
        self.sample()
        return {"cpu_s": self._used_s() - self._cpu_s, "memory_mib": (self._most - self._rss) / 2**20}


def _kubeconfig(port: int) -> dict[str, Any]:
    return {
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench"}}],
        "current-context": "bench",
    }


# The server


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[int, dict[str, int]]]:
    from aiohttp import web

    requests = {"watch": 0, "other": 0}
    added, modified = _Template("ADDED", "Pending"), _Template("MODIFIED", "Running")

    async def pods(request: web.Request) -> web.StreamResponse:
        requests["watch" if request.query.get("watch") else "other"] += 1
        response = web.StreamResponse()
        await response.prepare(request)
        part = int(request.query.get("part", 1))
        for number in range(PODS // part):
            await response.write(added.of(number, number + 1))
        mark = {"metadata": {"resourceVersion": str(PODS), "annotations": {"k8s.io/initial-events-end": "true"}}}
        await response.write(_line("BOOKMARK", mark))
        for number in range(0 if request.query.get("idle") else CHANGES // part):
            await response.write(modified.of(number, PODS + number + 1))
        while True:
            await asyncio.sleep(IDLE_S / 2)  # as often as a server sends bookmarks, or oftener
            await response.write(_line("BOOKMARK", {"metadata": {"resourceVersion": str(PODS + CHANGES)}}))

    application = web.Application()
    application.router.add_get(PATH, pods)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1], requests
    finally:
        await runner.cleanup()


class _Template:
    """Lines about pods that differ in number and version; made by replacement, for encoding costs more than reading."""

    def __init__(self, kind: str, phase: str) -> None:
        self._line = _line(kind, pod(phase))

    def of(self, number: int, version: int) -> bytes:
        return self._line.replace(NUMBER, b"%012d" % number).replace(VERSION, b"%d" % version)


def _line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def pod(phase: str) -> dict[str, Any]:
    """A pod of about the size that a task's pod has: 60 variables, two containers, the server's own bookkeeping."""
    number, version = NUMBER.decode(), VERSION.decode()
    names = [f"PAI_TASK_ROLE_worker_{index}" for index in range(60)]
    container = {
        "name": "task",
        "image": "registry.example/team/pytorch:2.9",
        "command": ["/pai/runtime/launcher"],
        "env": [{"name": name, "value": f"10.0.0.{index}:{30000 + index}"} for index, name in enumerate(names)],
        "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("pai", "shm", "plan")],
    }
    fields: dict[str, Any] = {
        "f:spec": {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in names}
    }
    state = {"running": {"startedAt": "2026-11-21T12:00:00Z"}} if phase == "Running" else {"waiting": {"reason": "x"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"task-{number}",
            "namespace": "lab",
            "uid": f"00000000-0000-4000-8000-{number}",
            "resourceVersion": version,
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "labels": {"pai/job": f"job-{number}", "pai/role": "worker", "pai/task": number},
            "finalizers": ["pai/exit"],
            "managedFields": [{"manager": "jupyter-pai", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {"nodeName": "node-1", "initContainers": [container], "containers": [container]},
        "status": {
            "phase": phase,
            "podIP": "10.244.0.1",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T12:00:00Z"}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {"name": "task", "ready": True, "restartCount": 0, "image": "x", "imageID": "y", "state": state}
            ],
        },
    }


def _main() -> None:
    what, port = sys.argv[1], int(sys.argv[2])
    if what == "models":
        found = asyncio.run(_models(port))
    else:
        found = asyncio.run(_follow(port, IDLE_S if what == "idle" else 0.0))
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
