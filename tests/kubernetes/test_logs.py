"""Logs of tasks on real nodes: every byte once, whatever is cut, killed, rotated or deleted meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.engine.base import LogStream, TaskPlan, TaskState
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.kubernetes.logs.kept import KeptLog
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import watching
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes

pytestmark = pytest.mark.asyncio

JOB = JobUid("j0123456789abcdef")
LIMIT_S = 120.0
MANY = 5_000_000

BINARY = f"""
import random, sys
out = sys.stdout.buffer
data = random.Random(7).randbytes({MANY})
out.write(data[:3_000_000])
out.write(bytes(each for each in data[3_000_000:] if each != 10))
"""
COUNTING = """
import itertools, signal, time
def end(*_):
    print("end", end="", flush=True)
    raise SystemExit
signal.signal(signal.SIGTERM, end)
for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.01)
"""
ON_REQUEST = """
import itertools, pathlib, time
print("ready", flush=True)
for number in itertools.count():
    while not pathlib.Path(f"/pai/work/go-{number}").exists():
        time.sleep(0.05)
    for line in range(20):
        print(number, line, "x" * 12_500, flush=True)
    if number == 4:
        break
"""


def printed_on_request(count: int) -> bytes:
    """What ON_REQUEST has printed after so many requests."""
    return b"ready\n" + b"".join(
        b"%d %d %s\n" % (number, line, b"x" * 12_500) for number in range(count) for line in range(20)
    )


class Site:
    """Engines of one backend, one after the other, and its tasks."""

    def __init__(self, access: Access, pods: PodSettings, image: str, kept: Path) -> None:
        self._access, self._pods, self._image, self.kept = access, pods, image, kept
        self._made: list[KubernetesEngine] = []

    def engine(self, kept: Path | None = None) -> KubernetesEngine:
        """One more; with ``kept``, on a machine of its own."""
        made = KubernetesEngine(self._access, EngineOptions("logs", self._pods, kept or self.kept))
        self._made.append(made)
        return made

    def plan(self, program: str, node: str = "dan", index: int = 0) -> TaskPlan:
        """A task that runs a program of Python, which ends with TERM itself."""
        return TaskPlan(
            uid=task_uid(JOB, 0, index, 0),
            job_name="logs",
            user="alice",
            role="worker",
            index=index,
            image=self._image,
            command=f"exec python3 -c '{program}'",
            env={},
            placement=Placement(node=node, address=f"worker-{index}", machine=node),
            cpus=0,
        )

    async def until_kept(self, uid: TaskUid, bytes_: int) -> None:
        """Wait until so much of a log is in our files."""
        kept = KeptLog(self.kept / naming.task_name(uid), 1)

        async def there() -> bool:
            extent = await asyncio.to_thread(kept.look)
            return extent is not None and extent.position.end >= bytes_

        await until(there, f"{bytes_} bytes of the log of {uid}", LIMIT_S)

    async def aclose(self) -> None:
        """Close all engines."""
        for each in self._made:
            await each.aclose()


@pytest_asyncio.fixture
async def site(kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path) -> AsyncIterator[Site]:
    pods = PodSettings(runtime_image=runtime_image, grace_s=2, cpu_limits=False)
    access = Access(kubernetes.kubeconfig, namespace=namespace.namespace)
    made = Site(access, pods, kubernetes.python, tmp_path / "logs")
    yield made
    await made.aclose()


class Reader:
    """Somebody who follows a log, and goes on at the offset where he was when it breaks off."""

    def __init__(self, engine: KubernetesEngine, uid: TaskUid) -> None:
        self.data = b""
        self._engine, self._uid = engine, uid
        self._task: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        async for chunk in self._engine.logs(self._uid, LogStream.ALL, len(self.data), True):
            self.data += chunk

    async def until(self, holds: Callable[[bytes], object]) -> None:
        async def now() -> bool:
            if self._task is not None and self._task.done():
                self._task.result()
            return bool(holds(self.data))

        await until(now, "the reader to have read so far", LIMIT_S)

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[asyncio.Task[None]]:
        """Follow for the length of a block, at most."""
        self._task = task = asyncio.create_task(self.follow())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def read(engine: KubernetesEngine, uid: TaskUid, offset: int = 0, stream: LogStream = LogStream.ALL) -> bytes:
    """All there is from an offset on."""
    async with asyncio.timeout(LIMIT_S):
        return b"".join([chunk async for chunk in engine.logs(uid, stream, offset, False)])


async def ended(engine: KubernetesEngine, uid: TaskUid) -> str:
    """Wait for the task's end as a backend does, and let go of it; the reason."""
    async with watching(engine) as watch:

        async def told() -> bool:
            return any(seen.state is TaskState.EXITED for seen in watch.of(uid))

        await until(told, f"the end of {uid}", LIMIT_S)
        await engine.forget(uid)
        found = watch.of(uid)[-1].exit
        assert found is not None
        return found.reason


def counted(data: bytes) -> int:
    """How far COUNTING has counted by the end of its log. Fails unless every number is there once, and the end."""
    *numbers, last = data.split(b"\n")
    assert last == b"end"
    assert numbers == [b"%d" % number for number in range(len(numbers))]
    return len(numbers)


async def test_every_byte_of_a_forgotten_task_is_read_from_any_offset(site: Site, namespace: Kubectl) -> None:
    data = random.Random(7).randbytes(MANY)
    data = data[:3_000_000] + data[3_000_000:].replace(b"\n", b"")  # in the end one line of 2 MB, without its end
    data = data.replace(b"\r\n", b"\n")  # containerd reads lines as Go's bufio.ReadLine does, which drops the CR
    engine, plan = site.engine(), site.plan(BINARY)
    await engine.start(plan)
    assert await ended(engine, plan.uid) == "exited"
    await namespace("wait", "--for=delete", f"pod/{naming.task_name(plan.uid)}", "--timeout=60s")
    for stream in (LogStream.ALL, LogStream.STDOUT):
        assert await engine.log_extent(plan.uid, stream) == (0, len(data))
        assert await read(engine, plan.uid, 0, stream) == data
    assert await engine.log_extent(plan.uid, LogStream.STDERR) == (0, 0)
    assert await read(engine, plan.uid, 0, LogStream.STDERR) == b""
    assert await read(engine, plan.uid, 2_999_000) == data[2_999_000:]
    assert await read(engine, plan.uid, -1000) == data[-1000:]
    assert await read(engine, plan.uid, len(data)) == b""


async def test_readers_and_the_backend_go_on_when_the_api_server_and_they_themselves_are_killed(
    site: Site, testbed: Cluster, tmp_path: Path
) -> None:
    """One reader is beside the backend, one on another machine; the backend is let go of and comes back."""
    engine, plan = site.engine(), site.plan(COUNTING)
    await engine.start(plan)
    near, far = Reader(site.engine(), plan.uid), Reader(site.engine(tmp_path / "elsewhere"), plan.uid)
    async with near.reading() as near_task, far.reading() as far_task:
        async with watching(engine):
            await site.until_kept(plan.uid, 2000)
            await testbed.plane.api.kill()
            before = len(near.data)
            await testbed.plane.start_api()
            await near.until(lambda data: len(data) > before + 1000)
        await engine.aclose()
        before = len(near.data)
        await near.until(lambda data: len(data) > before + 1000)
        again = site.engine()
        await again.stop(plan.uid, 30)
        assert await ended(again, plan.uid) == "stopped"
        await asyncio.wait_for(asyncio.gather(near_task, far_task), LIMIT_S)
    assert counted(near.data) > 400
    assert far.data == near.data == await read(again, plan.uid)


async def test_what_a_kubelet_has_rotated_away_is_kept_at_its_offsets(
    site: Site, testbed: Cluster, namespace: Kubectl
) -> None:
    """Each part is more than a file may hold; the node's kubelet is killed and started again, too."""
    node, engine, plan = testbed.nodes["dan"], site.engine(), site.plan(ON_REQUEST)
    pod = naming.task_name(plan.uid)
    folder = f"pods/{namespace.namespace}_{pod}_*/task/0.log.*"
    reader = Reader(engine, plan.uid)

    def rotated() -> set[str]:
        return {path.name.removesuffix(".gz") for path in (node.home / "log").glob(folder)}

    async def ask(number: int) -> None:
        """A kubelet that has just begun knows none of its pods for a moment."""

        async def asked() -> bool:
            words = ("exec", pod, "-c", "task", "--", "touch", f"/pai/work/go-{number}")
            return (await namespace.attempt(*words)).code == 0

        await until(asked, f"request {number} to reach the task", LIMIT_S)

    async def printed(count: int) -> None:
        await ask(count - 1)
        await reader.until(lambda data: len(data) >= len(printed_on_request(count)))
        await site.until_kept(plan.uid, len(printed_on_request(count)))

    async def rotates(before: set[str]) -> None:
        await until(lambda: _soon(bool(rotated() - before)), "a rotation", LIMIT_S)

    await engine.start(plan)
    async with with_small_logs(testbed, "dan"), watching(engine) as watch, reader.reading():
        await site.until_kept(plan.uid, 1)
        before = rotated()
        await printed(1)
        await rotates(before)
        await printed(2)
        await node.kill("kubelet")
        await namespace("get", "pod", pod)
        await node.start_kubelet()
        await testbed.kubectl.until_ready("dan")
        before = rotated()
        await printed(3)
        await rotates(before)
        await printed(4)
        assert await engine.log_extent(plan.uid, LogStream.ALL) == (0, len(printed_on_request(4)))
        assert len(await namespace("logs", pod, "-c", "task")) < len(printed_on_request(2))
        await ask(4)
        await reader.until(lambda data: data == printed_on_request(5))
        await until(
            lambda: _soon(any(seen.state is TaskState.EXITED for seen in watch.of(plan.uid))), "its end", LIMIT_S
        )
        await engine.forget(plan.uid)
    assert await read(engine, plan.uid) == printed_on_request(5)


async def test_what_was_printed_before_somebody_deleted_the_pod_is_kept(site: Site, namespace: Kubectl) -> None:
    """By a deletion that gives it time, and by one that gives it none."""
    engine, program = site.engine(), 'print("x" * 100_000, end="", flush=True); import time; time.sleep(1000)'
    plans = [site.plan(program, index=index) for index in range(2)]
    ways = [("--grace-period=1",), ("--force", "--grace-period=0")]
    async with watching(engine) as watch:
        for plan in plans:
            await engine.start(plan)
        for plan, how in zip(plans, ways, strict=True):
            # Parts of 16 KiB; the rest, up to 20 KiB, waits in the container runtime for the end of the line.
            await site.until_kept(plan.uid, 5 * 16_384)
            await namespace("delete", "pod", naming.task_name(plan.uid), "--wait=false", *how)

        async def told(uid: TaskUid) -> bool:
            return any(seen.state is TaskState.EXITED for seen in watch.of(uid))

        for plan in plans:
            await until(functools.partial(told, plan.uid), "its end", LIMIT_S)
            await engine.forget(plan.uid)
    for plan in plans:
        assert re.fullmatch(rb"x{81920,100000}", await read(engine, plan.uid))


async def _soon(value: bool) -> bool:
    return value


@contextlib.asynccontextmanager
async def with_small_logs(testbed: Cluster, name: str) -> AsyncIterator[None]:
    """Let a node rotate logs often: whenever its kubelet looks, every 10 s. Sooner, its followers cannot keep up."""
    node = testbed.nodes[name]
    await node.kill("kubelet")
    usual = await asyncio.to_thread(node.change_kubelet, containerLogMaxSize="64Ki")
    try:
        await node.start_kubelet()
        await testbed.kubectl.until_ready(name)
        yield
    finally:
        await node.kill("kubelet")
        await asyncio.to_thread(node.change_kubelet, **usual)
        await node.start_kubelet()
        await testbed.kubectl.until_ready(name)
