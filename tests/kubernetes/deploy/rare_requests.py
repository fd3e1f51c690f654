"""What an engine asks of the API server once in hours, or with settings that few have, asked now and by the engine."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError, LogStream
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import ApiClient, Ask, LineStream, connect
from pai_backend.engine.kubernetes.ending import Ender
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.kubernetes.failures import Unreachable
from pai_backend.engine.kubernetes.marks import marks_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.pod_events import EventReason, PodEvents
from pai_backend.engine.kubernetes.policies import Policies
from pai_backend.engine.kubernetes.starting import Starter
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import PeerNames, PodSettings
from tests.kubernetes.cluster.commands import until

INSTANCE = "rights"  # its objects are no other backend's
JOB = JobUid("j00000000000rights")
LIMIT_S = 120.0


class Forgetful:
    """A client that loses the first answer to each kind of creation, as a connection does that breaks."""

    def __init__(self, client: ApiClient) -> None:
        self._client, self.time = client, client.time
        self._lost: set[str] = set()

    async def send(self, ask: Ask) -> bytes:
        """As the client, but for the answers that are lost."""
        answer = await self._client.send(ask)
        if ask.method == "POST" and ask.request.path not in self._lost:
            self._lost.add(ask.request.path)
            raise Unreachable(f"{ask.request}: the answer is lost", sent=True)
        return answer

    def stream(self, ask: Ask) -> AbstractAsyncContextManager[LineStream]:
        """As the client."""
        return self._client.stream(ask)

    async def renew_credentials(self) -> bool:
        """As the client."""
        return await self._client.renew_credentials()


async def ask_what_is_rarely_asked(kubeconfig: Path, namespace: str, runtime_image: str, image: str) -> None:
    """Start a gang whose peers are found by DNS, stop and forget it, and sweep up what is left of it hours later.

    The first answer to each creation is lost: what was made is then looked for.
    """
    client = await connect(Access(kubeconfig))
    try:
        calls, places = Calls(Forgetful(client)), ApiPaths(namespace)
        settings = PodSettings(runtime_image=runtime_image, names=PeerNames.DNS, cpu_limits=False, grace_s=1)
        starter = Starter(calls, places, INSTANCE, settings, Policies(calls))
        ender = Ender(calls, places, INSTANCE)
        plans = [_plan(index, image) for index in (0, 1)]
        for plan in plans:
            await starter.start(plan)
        never_started = task_uid(JOB, 0, 2, 0)
        for uid in (*(plan.uid for plan in plans), never_started):
            await ender.stop(uid, 1)
            await _forget(ender, uid)
        secrets = [each async for each in calls.list(places.all(ResourceKind.SECRET))]
        ours = [marks for marks in map(marks_of, secrets) if marks is not None and marks.uid.startswith(JOB)]
        assert len(ours) == 3
        await ender.sweep(ours, datetime.now(UTC) + timedelta(hours=3))
        await _tell_twice(calls, namespace)
    finally:
        await client.aclose()


async def look_for_the_log_of_nothing(kubeconfig: Path, namespace: str, place: Path) -> None:
    """Ask for the output of a task that has neither pod nor Secret yet, as the API does for one that is not started."""
    settings = PodSettings(runtime_image="none")
    engine = KubernetesEngine(Access(kubeconfig, namespace=namespace), EngineOptions(INSTANCE, settings, place))
    try:
        with pytest.raises(KeyError):
            await engine.log_extent(task_uid(JOB, 9, 0, 0), LogStream.STDOUT)
    finally:
        await engine.aclose()


async def _tell_twice(calls: Calls, namespace: str) -> None:
    """What is told again is counted, in the Event that was made."""
    events = PodEvents(calls, INSTANCE, pause_s=0, series=timedelta())
    pod = {"metadata": {"name": "told", "namespace": namespace, "uid": "0"}}
    for _ in range(3):
        events.tell(pod, EventReason.GANG_WAITING, "waits")
    query = (("fieldSelector", "involvedObject.name=told"),)

    async def counted() -> bool:
        found = [each async for each in calls.list(ApiPaths(namespace).all(ResourceKind.EVENT), query=query)]
        return [(each.get("series") or {}).get("count") for each in found] == [3]

    await until(counted, "the Event to be counted", LIMIT_S)
    await events.aclose()


def _plan(index: int, image: str) -> TaskPlan:
    return TaskPlan(
        uid=task_uid(JOB, 0, index, 0),
        job_name="rights",
        user="alice",
        role="r",
        index=index,
        job_tasks=2,
        image=image,
        command="sleep 1000",
        env={},
        placement=Placement(node="carol", address=f"r-{index}", machine="carol"),
        cpus=0,
        memory_mb=64,
    )


async def _forget(ender: Ender, uid: TaskUid) -> None:
    """Forget a task as soon as it has ended."""

    async def keep(_: TaskUid) -> object:
        return None

    async def forgotten() -> bool:
        try:
            await ender.forget(uid, ended=None, keep=keep)
        except EngineError as error:
            if "has not ended" not in str(error):
                raise
            return False
        return True

    await until(forgotten, f"task {uid} to end", LIMIT_S)
