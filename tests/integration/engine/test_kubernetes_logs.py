"""Logs of pods are collected whole from kubelets that break off, refuse, rotate and say other things: played here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from pai_backend.engine.base import LogStream
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.logs import Collector, Sources, TaskLogs, collecting
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.model.ids import TaskUid
from tests.kubernetes.cluster import commands
from tests.support.kubelet_answers import Written, answer

pytestmark = pytest.mark.asyncio

UID = TaskUid("j0123456789abcdef-0-0-0")
BEGIN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PATIENCE_S = 60.0
TOO_MANY = b"failed to create fsnotify watcher: too many open files"
REMOVED = b"unable to retrieve container logs for containerd://0123456789abcdef"


class Kubelet:
    """One node with tasks that all print the same, and the API server before it."""

    def __init__(self) -> None:
        self.file: list[Written] = []
        self.printed = b""
        self.over = False
        self.cut_after: int | None = None  # bytes of an answer that follows
        self.says: bytes | None = None  # in the place of any output
        self.refuses: bytes | None = None  # after what there is, in the place of following
        self.meanwhile: Callable[[], Awaitable[None]] | None = None  # happens before the next answer
        self.following = 0
        self.asked = 0
        self._news = asyncio.Condition()

    async def prints(self, *texts: bytes) -> None:
        """Let the task print, a second later each."""
        async with self._news:
            for text in texts:
                self.file.append(Written(BEGIN + timedelta(seconds=len(self.printed)), 7, text))
                self.printed += text
            self._news.notify_all()

    async def ends(self) -> None:
        """Let the task end."""
        async with self._news:
            self.over = True
            self._news.notify_all()

    async def until_asked(self, more: int) -> None:
        """Wait for so many more questions for output."""
        goal = self.asked + more
        await until(lambda: self.asked >= goal)

    async def pod(self, request: web.Request) -> web.Response:
        state = {"terminated": {"exitCode": 0}} if self.over else {"running": {}}
        about = {"name": request.match_info["name"], "annotations": {naming.TASK: UID}}
        status = {"phase": "Running", "containerStatuses": [{"name": "task", "state": state}]}
        return web.json_response({"metadata": about, "spec": {"nodeName": "carol"}, "status": status})

    async def log(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if (act := self.meanwhile) is not None:
            self.meanwhile = None
            await act()
        response = web.StreamResponse()
        await response.prepare(request)
        if self.says is not None:
            await response.write(self.says)
            return response
        said = answer(self.file, request.query.get("sinceTime", ""))
        if request.query.get("follow") != "true":
            await response.write(said)
            return response
        self.following += 1
        try:
            await self._follow(request, response, said)
        finally:
            self.following -= 1
        return response

    def _has_more(self, seen: int) -> Callable[[], bool]:
        return lambda: self.over or len(self.file) > seen

    async def _follow(self, request: web.Request, response: web.StreamResponse, said: bytes) -> None:
        if self.cut_after is not None and len(said) > self.cut_after:
            await response.write(said[: self.cut_after])
            assert request.transport is not None
            request.transport.abort()
            return
        await response.write(said + (self.refuses or b""))
        seen = len(self.file)
        while self.refuses is None and not self.over:
            async with self._news:
                await self._news.wait_for(self._has_more(seen))
            fresh, begins = b"", not seen or self.file[seen - 1].text.endswith(b"\n")
            for part in self.file[seen:]:
                fresh += (part.stamp + b" " if begins else b"") + part.text
                begins = part.text.endswith(b"\n")
            seen = len(self.file)
            await response.write(fresh)


async def until(holds: Callable[[], object]) -> None:
    """Look until it holds."""

    async def now() -> bool:
        return bool(holds())

    await commands.until(now, "what is to come", PATIENCE_S, 0.01)


@pytest_asyncio.fixture
async def kubelet() -> Kubelet:
    return Kubelet()


@pytest_asyncio.fixture
async def sources(kubelet: Kubelet, tmp_path: Path) -> AsyncIterator[Sources]:
    application = web.Application()
    pod = "/api/v1/namespaces/n/pods/{name}"
    application.add_routes([web.get(pod, kubelet.pod), web.get(f"{pod}/log", kubelet.log)])
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    client = await connect(Access(kubeconfig))

    async def places(_: TaskUid) -> ApiPaths:
        return ApiPaths("n")

    yield Sources(client, Calls(client), places, tmp_path / "logs", 1000)
    await client.aclose()
    await runner.cleanup()


@pytest_asyncio.fixture
async def collectors(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[], Collector]]:
    """Collectors of one backend that comes back; tasks last long enough at once."""
    monkeypatch.setattr(collecting, "BEGIN_S", 0.0)
    monkeypatch.setattr(collecting, "LOOK_AGAIN_S", (0.01, 0.05))
    made: list[Collector] = []

    def make() -> Collector:
        made.append(Collector(sources, 2))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


def kept_bytes(sources: Sources) -> int:
    extent = sources.kept(UID).look()
    return extent.position.end if extent is not None else 0


async def keep_what_there_is(kubelet: Kubelet, sources: Sources, collector: Collector) -> None:
    """Collect up to now, and no further: the connection is over."""
    collector.begin(UID)
    await until(lambda: kept_bytes(sources) == len(kubelet.printed))
    await collector.aclose()
    await until(lambda: not kubelet.following)


async def kept(sources: Sources) -> bytes:
    """The log as a reader gets it, once it is complete."""
    extent = sources.kept(UID).look()
    assert extent is not None
    assert extent.complete
    return b"".join([chunk async for chunk in TaskLogs(sources).read(UID, LogStream.ALL, 0, follow=False)])


PARTS = (b"one\n", b"two ", b"and a half\n", b"\x00\xff\n", b"\n", b"the last, without an end")


async def test_answers_that_are_cut_anywhere(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    await kubelet.prints(*PARTS)
    for cut in range(1, len(answer(kubelet.file))):
        kubelet.cut_after, collector = cut, collectors()
        collector.begin(UID)
        await kubelet.until_asked(1)
        await collector.aclose()
    kubelet.cut_after = None
    await kubelet.ends()
    await collectors().to_the_end(UID)
    assert await kept(sources) == kubelet.printed


async def test_a_node_that_cannot_let_logs_be_followed(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    kubelet.refuses = TOO_MANY
    collector = collectors()
    collector.begin(UID)
    for part in PARTS:
        await kubelet.prints(part)
        await until(lambda: kept_bytes(sources) == len(kubelet.printed))
    await kubelet.ends()
    await collector.to_the_end(UID)
    assert await kept(sources) == kubelet.printed


async def test_a_new_file_in_the_place_of_the_one_that_was_read(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector], caplog: pytest.LogCaptureFixture
) -> None:
    await kubelet.prints(b"old\n", b"older\n")
    await keep_what_there_is(kubelet, sources, collectors())
    kubelet.file.clear()
    await kubelet.prints(b"new\n")
    await kubelet.ends()
    await collectors().to_the_end(UID)
    assert await kept(sources) == b"old\nolder\nnew\n"
    assert "was rotated before it was read" in caplog.text


async def test_a_new_file_that_is_still_empty_is_followed_from_its_beginning(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    await kubelet.prints(b"old\n")
    await keep_what_there_is(kubelet, sources, collectors())
    kubelet.file.clear()
    second = collectors()
    second.begin(UID)
    await until(lambda: kubelet.following)
    kubelet.meanwhile = never  # what comes now comes in the answer that is being read
    await kubelet.prints(b"new\n")
    await until(lambda: kept_bytes(sources) == len(kubelet.printed))
    kubelet.meanwhile = None
    await kubelet.ends()
    await second.to_the_end(UID)
    assert await kept(sources) == b"old\nnew\n"


async def never() -> None:
    raise AssertionError("the log was asked for again")


async def test_a_new_file_that_comes_between_looking_and_following(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_backend.engine.kubernetes.logs.kubelet.FOUND_S", 0.2)
    await kubelet.prints(b"old\n")
    await keep_what_there_is(kubelet, sources, collectors())

    async def rotate() -> None:
        kubelet.file.clear()
        await kubelet.prints(b"new\n")

    async def rotate_next() -> None:
        kubelet.meanwhile = rotate

    kubelet.meanwhile = rotate_next
    second = collectors()
    second.begin(UID)
    await until(lambda: kept_bytes(sources) == len(b"old\nnew\n"))
    await kubelet.ends()
    await second.to_the_end(UID)
    assert await kept(sources) == b"old\nnew\n"


async def test_only_so_many_are_followed_at_once_but_all_ends_are(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    others = [TaskUid(f"j0123456789abcdef-0-{number}-0") for number in range(1, 4)]
    await kubelet.prints(b"one\n")
    collector = collectors()
    for uid in others:
        collector.begin(uid)
    await until(lambda: kubelet.following == 2)
    leaving = asyncio.create_task(collector.to_the_end(UID))
    await until(lambda: kubelet.following == 3)
    await kubelet.ends()
    await leaving
    assert await kept(sources) == b"one\n"


async def test_those_who_wait_for_a_turn_take_little_and_have_theirs_later(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    collector = collectors()
    others = [TaskUid(f"j0000000000000001-0-{number}-0") for number in range(1000)]
    before = len(asyncio.all_tasks())
    for uid in [*others, UID]:
        collector.begin(uid)
    await kubelet.until_asked(2)
    # One gives turns; two are followed, each by what copies, and what reads for it.
    assert len(asyncio.all_tasks()) - before < 20
    await kubelet.prints(*PARTS)
    for uid in others:
        await collector.finish(uid)
    await until(lambda: kept_bytes(sources) == len(kubelet.printed))
    await kubelet.ends()
    await collector.to_the_end(UID)
    assert await kept(sources) == kubelet.printed


async def test_words_of_a_node_that_may_pass_and_words_that_do_not(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says the same of a container that it has removed, and while the container runtime is away."""
    await kubelet.prints(b"one\n")
    await kubelet.ends()
    kubelet.says = REMOVED
    collector = collectors()
    finishing = asyncio.create_task(collector.finish(UID))
    await kubelet.until_asked(3)
    kubelet.says = None
    await finishing
    assert await kept(sources) == b"one\n"
    kubelet.says = REMOVED
    monkeypatch.setattr(collecting, "GONE_S", 0.1)
    other = TaskUid("j0123456789abcdef-0-1-0")
    await collector.finish(other)
    extent = sources.kept(other).look()
    assert extent is not None
    assert (extent.complete, extent.position.end) == (True, 0)


async def test_a_log_that_was_followed_to_its_end_has_lost_nothing_when_its_container_is_gone(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """A kubelet removes the containers of a deleted pod as soon as they have ended."""
    collector = collectors()
    collector.begin(UID)
    for part in PARTS:
        await kubelet.prints(part)
    await until(lambda: kept_bytes(sources) == len(kubelet.printed))
    kubelet.says = REMOVED
    await kubelet.ends()
    await collector.to_the_end(UID)
    assert await kept(sources) == kubelet.printed
    assert "has lost its end" not in caplog.text


async def test_a_reader_gets_what_is_kept_and_what_the_kubelet_has_beyond_it(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    await kubelet.prints(b"kept\n")
    collector = collectors()
    collector.begin(UID)
    await until(lambda: kept_bytes(sources) == 5)
    await collector.aclose()
    await kubelet.prints(b"beyond\n")
    logs = TaskLogs(sources)
    assert await logs.extent(UID, LogStream.ALL) == (0, 12)
    assert b"".join([chunk async for chunk in logs.read(UID, LogStream.ALL, 2, follow=False)]) == b"pt\nbeyond\n"
    data = b""
    async for chunk in logs.read(UID, LogStream.ALL, -7, follow=True):
        data += chunk
        if data == b"beyond\n":
            await kubelet.prints(b"more")
            await kubelet.ends()
    assert data == b"beyond\nmore"


async def test_how_long_a_log_is_while_its_pod_is_being_forgotten(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    """Part of it is kept when the reader looks; by its turn at the kubelet all is, and the container is gone."""
    await kubelet.prints(b"kept\n")
    collector = collectors()
    collector.begin(UID)
    await until(lambda: kept_bytes(sources) == 5)
    await collector.aclose()
    await kubelet.prints(b"beyond\n")
    await kubelet.ends()

    async def forgotten() -> None:
        await collectors().finish(UID)
        kubelet.says = REMOVED

    kubelet.meanwhile = forgotten
    assert await TaskLogs(sources).extent(UID, LogStream.ALL) == (0, 12)


async def test_a_pod_that_is_watched_here_is_not_asked_for(kubelet: Kubelet, sources: Sources) -> None:
    """The API server has it running; what the watch says counts, and of pods that it does not know the API server's."""
    status = {"containerStatuses": [{"name": "task", "state": {"terminated": {"exitCode": 0}}}]}
    about = {"name": naming.task_name(UID), "annotations": {naming.TASK: UID}}
    pod = {"metadata": about, "spec": {"nodeName": "carol"}, "status": {"phase": "Succeeded", **status}}
    watching = replace(sources, mirrored=lambda uid: pod if uid == UID else None)
    assert await watching.is_over(UID)
    assert not await sources.is_over(UID)
    assert await watching.has_pod(TaskUid("j0123456789abcdef-0-9-9"))


async def told(logs: TaskLogs, start: int, end: int) -> list[tuple[int, float]]:
    """When bytes came, in seconds after BEGIN."""
    return [
        (each.offset, (each.at - BEGIN).total_seconds()) for each in await logs.times(UID, LogStream.ALL, start, end)
    ]


async def test_times_of_lines_are_those_of_the_node_wherever_the_lines_are_read(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    """Kept before a break, kept after it, and beyond what is kept."""
    await kubelet.prints(b"one\n", b"two\n")
    await keep_what_there_is(kubelet, sources, collectors())
    await kubelet.prints(b"three\n")
    await keep_what_there_is(kubelet, sources, collectors())
    await kubelet.prints(b"four\n", b"five\n")
    everything = [(0, 0.0), (4, 4.0), (8, 8.0), (14, 14.0), (19, 19.0)]
    assert await told(TaskLogs(sources), 0, 24) == everything
    assert await told(TaskLogs(sources), 5, 15) == [(5, 4.0), (8, 8.0), (14, 14.0)]
    assert await told(TaskLogs(sources), 20, 24) == [(20, 19.0)]
    await kubelet.ends()
    await collectors().finish(UID)
    assert await told(TaskLogs(sources), 0, 24) == everything
    assert await TaskLogs(sources).times(UID, LogStream.STDERR, 0, 24) == []


async def test_a_kubelet_is_not_asked_for_times_of_what_a_reader_just_had(kubelet: Kubelet, sources: Sources) -> None:
    await kubelet.prints(b"one\n")
    logs, data = TaskLogs(sources), b""
    async with aclosing(logs.read(UID, LogStream.ALL, 0, follow=True)) as pieces:
        async for piece in pieces:
            asked = kubelet.asked
            assert await told(logs, len(data), len(data) + len(piece)) == [(len(data), float(len(data)))]
            assert kubelet.asked == asked
            data += piece
            if len(data) > 8:
                break
            await kubelet.prints(b"next\n")


async def test_times_beyond_a_kill_are_forgotten_with_their_bytes(
    kubelet: Kubelet, sources: Sources, collectors: Callable[[], Collector]
) -> None:
    await kubelet.prints(b"one\n", b"two\n")
    collector = collectors()
    collector.begin(UID)
    await until(lambda: kept_bytes(sources) == 8)
    directory = sources.kept(UID).directory
    times, position = (directory / name for name in ("all-000000000000.times", "position"))
    await collector.aclose()
    before = position.read_bytes(), times.read_bytes()
    await kubelet.prints(b"three\n")
    await keep_what_there_is(kubelet, sources, collectors())
    position.write_bytes(before[0])
    assert times.stat().st_size > len(before[1])
    with sources.kept(UID).writing():
        assert times.read_bytes() == before[1]
