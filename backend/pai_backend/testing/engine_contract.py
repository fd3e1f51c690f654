"""The contract of an engine, as a pytest class that every engine and every fake of one passes.

Subclass :class:`EngineContract`, name the subclass ``Test…``, and give the four fixtures it asks
for. What an engine claims is checked by another road where that matters: ``behind`` looks at the
processes themselves and breaks things without the engine's help.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import asyncssh
import pytest
from pydantic import SecretStr

from pai_backend.engine.base import (
    Engine,
    EngineError,
    EngineEvent,
    Listed,
    LogStream,
    NodeSeen,
    SshPlan,
    StartRefused,
    TaskPlan,
    TaskSeen,
    TaskState,
)
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.job import Causer
from pai_backend.model.node import Placement
from pai_backend.model.plan import StagedInput

PATIENCE_S = 20.0  # far above what any step takes, so that only a hang fails
LOOK_AGAIN_S = 0.02  # how often a port is tried: nobody tells when it opens


class Behind(Protocol):
    """Another road to the truth than the engine's own."""

    def processes(self, uid: TaskUid) -> Sequence[int]:
        """Numbers of the processes of the task that are alive now, its keeper not among them."""
        ...

    def crash(self, uid: TaskUid) -> None:
        """Kill what the engine keeps the task with, so that the exit status can never be known."""
        ...


EngineMaker = Callable[[], Engine]


class Watching:
    """An engine's watch, drained in the background into a list that tests wait on."""

    def __init__(self, engine: Engine) -> None:
        self.events: list[EngineEvent] = []
        self._engine = engine
        self._news = asyncio.Condition()

    async def drain(self) -> None:
        """Collect events for ever."""
        async for event in self._engine.watch():
            async with self._news:
                self.events.append(event)
                self._news.notify_all()

    def of(self, uid: TaskUid) -> list[TaskSeen]:
        """The events of one task, in order."""
        return [event for event in self.events if isinstance(event, TaskSeen) and event.uid == uid]

    async def until(self, check: Callable[[], object]) -> None:
        """Return when ``check`` holds after some event. Raises TimeoutError when it never does."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(check)

    async def listed(self) -> None:
        """Return when the first listing is complete."""
        await self.until(lambda: Listed() in self.events)

    async def state(self, uid: TaskUid, state: TaskState) -> TaskSeen:
        """The first event that has the task in this state, waiting for it if need be."""
        await self.until(lambda: any(seen.state is state for seen in self.of(uid)))
        return next(seen for seen in self.of(uid) if seen.state is state)


@asynccontextmanager
async def watching(engine: Engine) -> AsyncIterator[Watching]:
    """Watch the engine for the length of a block, from after its first listing."""
    watched = Watching(engine)
    drain = asyncio.create_task(watched.drain())
    try:
        listed = asyncio.create_task(watched.listed())
        await asyncio.wait({listed, drain}, return_when=asyncio.FIRST_COMPLETED)
        if drain.done():
            drain.result()
        await listed
        yield watched
    finally:
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)


async def read_log(engine: Engine, uid: TaskUid, stream: LogStream, offset: int = 0, *, follow: bool = False) -> bytes:
    """All of a log from an offset on."""
    chunks = []
    async with asyncio.timeout(PATIENCE_S):
        async for chunk in engine.logs(uid, stream, offset, follow):
            chunks.append(chunk)
    return b"".join(chunks)


class EngineContract(ABC):
    """What every engine promises. Fixtures are asked for by overriding the four methods below."""

    JOB = JobUid("j0123456789abcdef")

    @pytest.fixture
    @abstractmethod
    def make_engine(self) -> EngineMaker:
        """Makes an engine; every call gives a new one over the same durable state, as after a restart."""

    @pytest.fixture
    @abstractmethod
    def placement(self) -> Placement:
        """A placement without GPUs on a node that the engine has."""

    @pytest.fixture
    @abstractmethod
    def behind(self) -> Behind:
        """The other road."""

    @pytest.fixture
    @abstractmethod
    def serving_ssh(self) -> Iterator[None]:
        """Has what must run beside the engine so that tasks are reachable by SSH run for the length of a test."""

    @pytest.fixture
    def free_port(self) -> int:
        """A port of this machine that nothing listens on."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        return port

    def server_command(self, port: int) -> str:
        """Shell text that says ``up`` and answers a connection to 127.0.0.1:port with what it was sent, in capitals."""
        lines = [
            "import socket",
            f'server = socket.create_server(("127.0.0.1", {port}))',
            'print("up", flush=True)',
            "peer = server.accept()[0]",
            "peer.sendall(peer.recv(99).upper())",
            "peer.close()",
        ]
        return f"python -c '{'; '.join(lines)}'"

    def plan(self, placement: Placement, command: str, index: int = 0, **env: str) -> TaskPlan:
        """A plan for the task of that index."""
        return TaskPlan(
            uid=task_uid(self.JOB, 0, index, 0),
            job_name="contract",
            user="alice",
            role="worker",
            index=index,
            image="example/image:1",
            command=command,
            env=env,
            placement=placement,
        )

    @pytest.mark.asyncio
    async def test_the_first_listing_has_the_nodes_and_is_marked(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Nodes come before the mark, and the placement's node is among them."""
        async with watching(make_engine()) as watch:
            before = watch.events[: watch.events.index(Listed())]
            assert placement.node in [event.node.name for event in before if isinstance(event, NodeSeen)]

    @pytest.mark.asyncio
    async def test_a_task_runs_and_its_exit_status_is_reported(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """Running comes before the end, and nothing of the task is left then."""
        plan = self.plan(placement, "sleep 0.3; exit 7")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
            assert not behind.processes(plan.uid)
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.signal, ended.exit.reason) == (7, None, "exited")
        assert [seen.state for seen in watch.of(plan.uid)][-2:] == [TaskState.RUNNING, TaskState.EXITED]

    @pytest.mark.asyncio
    async def test_a_signal_that_ends_the_command_is_reported(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Signals are not exit codes."""
        plan = self.plan(placement, "kill -SEGV $$")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.signal, ended.exit.status) == (None, 11, 139)

    @pytest.mark.asyncio
    async def test_a_repeated_start_runs_nothing_twice(self, make_engine: EngineMaker, placement: Placement) -> None:
        """While it runs, after it ended, and from a new engine over the same state."""
        plan = self.plan(placement, "echo ran")
        engine = make_engine()
        async with watching(engine) as watch:
            await asyncio.gather(*(engine.start(plan) for _ in range(5)))
            await watch.state(plan.uid, TaskState.EXITED)
            await engine.start(plan)
        again = make_engine()
        async with watching(again) as watch:
            await again.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            assert len(watch.of(plan.uid)) == 1
        assert await read_log(again, plan.uid, LogStream.STDOUT) == b"ran\n"

    @pytest.mark.asyncio
    async def test_the_command_goes_through_one_bash_parse_with_the_plans_environment(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Quotes and backslashes mean what they mean to bash, once."""
        command = r"""printf '%s|' "$PAI_JOB_NAME" "a\\b" a\"b '$X' [[ "$PAI_TASK_UID" "${#BASH_VERSION}"; printf end"""
        plan = self.plan(placement, command, PAI_JOB_NAME="a job's name")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
        fields = (await read_log(engine, plan.uid, LogStream.STDOUT)).decode().split("|")
        assert fields[:6] == ["a job's name", "a\\b", 'a"b', "$X", "[[", plan.uid]
        assert fields[6:] != ["0", "end"]

    @pytest.mark.asyncio
    async def test_stop_gives_grace_and_then_kills(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """A command that heeds TERM ends in its own way, one that does not is killed; both are ``stopped``."""
        polite = self.plan(placement, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
        deaf = self.plan(placement, "trap '' TERM; echo up; while :; do sleep 0.05; done", index=1)
        engine = make_engine()
        async with watching(engine) as watch:
            for plan, grace in ((polite, 10.0), (deaf, 0.3)):
                await engine.start(plan)
                assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
                assert behind.processes(plan.uid)
                await engine.stop(plan.uid, grace)
                await engine.stop(plan.uid, grace)
            ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in (polite, deaf)]
        assert [(e.code, e.signal, e.reason) for e in ended if e] == [(5, None, "stopped"), (None, 9, "stopped")]
        assert await read_log(engine, polite.uid, LogStream.STDOUT) == b"up\nbye\n"
        assert not behind.processes(deaf.uid)

    @pytest.mark.asyncio
    async def test_a_stop_that_comes_before_the_start_wins(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """The watch says stopped at once, and the start that comes later does nothing."""
        plan = self.plan(placement, "echo ran")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.stop(plan.uid, 1.0)
            ended = await watch.state(plan.uid, TaskState.EXITED)
            assert ended.exit is not None
            assert ended.exit.reason == "stopped"
            await engine.start(plan)
        assert await read_log(engine, plan.uid, LogStream.ALL, follow=True) == b""
        assert await engine.log_extent(plan.uid, LogStream.ALL) == (0, 0)

    @pytest.mark.asyncio
    async def test_running_tasks_survive_the_engine(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """A new engine lists the task as running, with the same processes, and sees its end."""
        plan = self.plan(placement, "echo up; sleep 1000 & wait")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
        await engine.aclose()
        before = behind.processes(plan.uid)
        again = make_engine()
        async with watching(again) as watch:
            assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.RUNNING]
            assert set(before) & set(behind.processes(plan.uid))
            await again.stop(plan.uid, 0.5)
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_a_task_that_cannot_be_accounted_for_is_lost(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """The platform is to blame, and nothing of the task goes on."""
        plan = self.plan(placement, "sleep 1000 & sleep 1000")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            behind.crash(plan.uid)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert (ended.exit.reason, ended.exit.causer, ended.exit.status) == ("lost", Causer.PLATFORM, 255)
        assert not behind.processes(plan.uid)

    @pytest.mark.asyncio
    async def test_a_forgotten_task_is_not_listed_and_cannot_start_again(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Its logs stay readable."""
        plan = self.plan(placement, "echo kept")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            await engine.forget(plan.uid)
            await engine.forget(plan.uid)
            await engine.start(plan)
            await engine.stop(plan.uid, 1.0)
        again = make_engine()
        async with watching(again) as watch:
            assert watch.of(plan.uid) == []
        assert await read_log(again, plan.uid, LogStream.ALL) == b"kept\n"

    @pytest.mark.asyncio
    async def test_forget_refuses_a_task_that_runs(self, make_engine: EngineMaker, placement: Placement) -> None:
        """Forgetting is for ended tasks."""
        plan = self.plan(placement, "sleep 1000")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            with pytest.raises(EngineError, match="has not ended"):
                await engine.forget(plan.uid)
            await engine.stop(plan.uid, 0.0)
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_a_task_is_told_its_directory_and_the_file_with_its_job_info(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Under both prefixes for a document that speaks QIZHI."""
        command = 'test "$PWD" = "$PAI_WORK_DIR" && cat "$PAI_JOB_INFO_FILE" && test "$QIZHI_WORK_DIR" = "$PWD"'
        plan = self.plan(placement, command, QIZHI_JOB_NAME="j").model_copy(update={"job_info": '{"作业": 1}'})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert ended.exit.code == 0
        assert (await read_log(engine, plan.uid, LogStream.STDOUT)).decode() == '{"作业": 1}'

    @pytest.mark.asyncio
    async def test_refresh_replaces_the_job_info_as_a_whole(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """A reader that looks all the time sees old or new, never a part of either; the last one stays."""
        texts = [f"{number}{'x' * 200_000}{number}" for number in range(20)]
        reader = (
            "import os\npath = os.environ['PAI_JOB_INFO_FILE']\nprint('up', flush=True)\nseen = 0\n"
            "while seen < 19:\n    text = open(path).read()\n    seen = int(text.split('x')[0])\n"
            "    assert text == str(seen) + 'x' * 200_000 + str(seen), text[:9]\nprint('whole')"
        )
        plan = self.plan(placement, f'python -c "{reader}"').model_copy(update={"job_info": texts[0]})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            for text in texts:
                await engine.refresh(plan.uid, text)
            await watch.state(plan.uid, TaskState.EXITED)
        assert await read_log(engine, plan.uid, LogStream.ALL) == b"up\nwhole\n"

    @pytest.mark.asyncio
    async def test_refresh_leaves_tasks_alone_that_are_over_or_unknown(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """The controller may be late; that is no error, and nothing comes to be."""
        plan = self.plan(placement, "true")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.refresh(plan.uid, "early")
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            await engine.refresh(plan.uid, "late")
            await engine.forget(plan.uid)
            await engine.refresh(plan.uid, "later")
        again = make_engine()
        async with watching(again) as watch:
            assert watch.of(plan.uid) == []

    @pytest.mark.asyncio
    async def test_inputs_and_outputs_are_there_before_the_command_runs(
        self, make_engine: EngineMaker, placement: Placement, tmp_path: Path
    ) -> None:
        """Inputs in the working directory, under their names; their program's words are in the task's log."""
        source, output = tmp_path / "source", tmp_path / "out" / "put"
        source.mkdir()
        (source / "train.py").write_text("print('trained')\n")
        plan = self.plan(placement, f"python code/train.py && echo kept > {output}/model").model_copy(
            update={
                "inputs": (StagedInput(uri=str(source), name="code", max_bytes=1000),),
                "outputs": (str(output),),
            }
        )
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert ended.exit.code == 0
        assert (output / "model").read_text() == "kept\n"
        assert await read_log(engine, plan.uid, LogStream.STDOUT) == b"trained\n"
        assert b"code" in await read_log(engine, plan.uid, LogStream.STDERR)

    @pytest.mark.asyncio
    async def test_an_output_directory_alone_is_made_without_a_word(
        self, make_engine: EngineMaker, placement: Placement, tmp_path: Path
    ) -> None:
        """Most tasks have one, and their logs should be theirs."""
        output = tmp_path / "out" / "put"
        plan = self.plan(placement, f"test -d {output}").model_copy(update={"outputs": (str(output),)})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert ended.exit.code == 0
        assert await read_log(engine, plan.uid, LogStream.ALL) == b""

    @pytest.mark.asyncio
    @pytest.mark.parametrize("wrong", ["inputs", "outputs"])
    async def test_a_task_whose_directories_cannot_be_had_ends_with_the_reason(
        self, make_engine: EngineMaker, placement: Placement, tmp_path: Path, wrong: str
    ) -> None:
        """The command is not run; the sentence names the place."""
        (tmp_path / "file").touch()
        missing, blocked = tmp_path / "missing", tmp_path / "file" / "out"
        update: dict[str, dict[str, object]] = {
            "inputs": {"inputs": (StagedInput(uri=str(missing), name="code", max_bytes=1000),)},
            "outputs": {"outputs": (str(blocked),)},
        }
        plan = self.plan(placement, "echo ran").model_copy(update=update[wrong])
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.reason) == (None, "input-failed")
        assert str(missing if wrong == "inputs" else blocked) in ended.exit.message
        assert TaskState.RUNNING not in [seen.state for seen in watch.of(plan.uid)]
        assert await read_log(engine, plan.uid, LogStream.STDOUT) == b""

    @pytest.mark.asyncio
    async def test_a_stop_ends_the_fetching_of_inputs(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """Until then the task is pulling, and says what."""
        with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are taken, and never answered
            uri = f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/code"
            plan = self.plan(placement, "echo ran").model_copy(
                update={"inputs": (StagedInput(uri=uri, name="code", max_bytes=1000),)}
            )
            engine = make_engine()
            async with watching(engine) as watch:
                await engine.start(plan)
                assert "code" in (await watch.state(plan.uid, TaskState.PULLING)).message
                await engine.stop(plan.uid, 1.0)
                ended = await watch.state(plan.uid, TaskState.EXITED)
                assert not behind.processes(plan.uid)
        assert ended.exit is not None
        assert ended.exit.reason == "stopped"
        assert await read_log(engine, plan.uid, LogStream.STDOUT) == b""

    @pytest.mark.asyncio
    async def test_a_failed_task_that_is_kept_serves_ssh_until_it_is_stopped_or_forgotten(
        self,
        make_engine: EngineMaker,
        placement: Placement,
        behind: Behind,
        serving_ssh: None,
        ssh_plan: Callable[[], SshPlan],
    ) -> None:
        """Its exit is reported at once and its leftovers are gone; a new engine finds it as the old one left it."""
        commands = {"released": "sleep 1000 & exit 3", "forgotten": "exit 4"}
        plans = [
            self.plan(placement, command, index).model_copy(update={"keep_on_failure": True, "ssh": ssh_plan()})
            for index, command in enumerate(commands.values())
        ]
        engine = make_engine()
        async with watching(engine) as watch:
            for plan in plans:
                await engine.start(plan)
            ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in plans]
            assert [(e.code, e.reason) for e in ended if e] == [(3, "exited"), (4, "exited")]
            assert not behind.processes(plans[0].uid)
            for plan in plans:
                assert await self.answers_ssh(engine, placement, plan)
        await engine.aclose()
        again = make_engine()
        async with watching(again) as watch:
            for plan in plans:
                assert await self.answers_ssh(again, placement, plan)
            await again.stop(plans[0].uid, 1.0)
            await again.forget(plans[1].uid)
            for plan in plans:
                await self.stops_answering(again, placement, plan)
            assert [seen.state for seen in watch.of(plans[0].uid)] == [TaskState.EXITED]

    @pytest.mark.asyncio
    @pytest.mark.parametrize("command", ["exit 0", "echo up; sleep 1000"])
    async def test_only_a_failure_keeps_a_task(
        self,
        make_engine: EngineMaker,
        placement: Placement,
        serving_ssh: None,
        ssh_plan: Callable[[], SshPlan],
        command: str,
    ) -> None:
        """Not success, and not a stop."""
        plan = self.plan(placement, command).model_copy(update={"keep_on_failure": True, "ssh": ssh_plan()})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            if "up" in command:
                assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
                await engine.stop(plan.uid, 1.0)
            await watch.state(plan.uid, TaskState.EXITED)
            await self.stops_answering(engine, placement, plan)

    @pytest.fixture
    def ssh_plan(self) -> Callable[[], SshPlan]:
        """Makes the SSH part of a plan: a free port and a new host key."""

        def make() -> SshPlan:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
            return SshPlan(port=port, host_key=SecretStr(key), authorized_keys=())

        return make

    async def answers_ssh(self, engine: Engine, placement: Placement, plan: TaskPlan) -> bool:
        """Whether an SSH server says its name on the plan's port, once something listens there."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if (banner := await self.banner(engine, placement, plan)) is not None:
                    return banner.startswith(b"SSH-2.0-")
                await asyncio.sleep(LOOK_AGAIN_S)

    async def stops_answering(self, engine: Engine, placement: Placement, plan: TaskPlan) -> None:
        """Return when nothing listens on the plan's SSH port. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if await self.banner(engine, placement, plan) is None:
                    return
                await asyncio.sleep(LOOK_AGAIN_S)

    @staticmethod
    async def banner(engine: Engine, placement: Placement, plan: TaskPlan) -> bytes | None:
        """What the task's SSH port says first; None when nothing listens there."""
        assert plan.ssh is not None
        try:
            connection = await engine.dial(placement, plan.uid, plan.ssh.port)
        except EngineError:
            return None
        try:
            return await connection.reader.readline() or None
        except ConnectionError:  # closed while it was being opened
            return None
        finally:
            connection.writer.close()

    @pytest.mark.asyncio
    async def test_logs_are_kept_by_stream_and_read_from_any_offset(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Both streams alone, and merged; offsets from either end."""
        plan = self.plan(placement, "echo one; sleep 0.2; echo two >&2; sleep 0.2; printf three")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            followed = await read_log(engine, plan.uid, LogStream.ALL, follow=True)
            await watch.state(plan.uid, TaskState.EXITED)
        assert followed == b"one\ntwo\nthree"
        assert await read_log(engine, plan.uid, LogStream.STDOUT) == b"one\nthree"
        assert await read_log(engine, plan.uid, LogStream.STDERR) == b"two\n"
        assert await read_log(engine, plan.uid, LogStream.ALL, 4) == b"two\nthree"
        assert await read_log(engine, plan.uid, LogStream.ALL, -5, follow=True) == b"three"
        assert await read_log(engine, plan.uid, LogStream.ALL, 13) == b""
        assert await engine.log_extent(plan.uid, LogStream.ALL) == (0, 13)
        assert await engine.log_extent(plan.uid, LogStream.STDERR) == (0, 4)

    @pytest.mark.asyncio
    async def test_logs_of_an_unknown_task_are_a_key_error(self, make_engine: EngineMaker) -> None:
        """Not an empty log."""
        with pytest.raises(KeyError):
            await read_log(make_engine(), TaskUid("j0-0-0-0"), LogStream.ALL)
        with pytest.raises(KeyError):
            await make_engine().log_extent(TaskUid("j0-0-0-0"), LogStream.ALL)

    @pytest.mark.asyncio
    async def test_dial_reaches_a_port_of_the_task(
        self, make_engine: EngineMaker, placement: Placement, free_port: int
    ) -> None:
        """Both ways, and an error that can be shown when nothing answers."""
        plan = self.plan(placement, self.server_command(free_port))
        engine = make_engine()
        with pytest.raises(EngineError, match=str(free_port)):
            await engine.dial(placement, plan.uid, free_port)
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            connection = await engine.dial(placement, plan.uid, free_port)
            connection.writer.write(b"hello")
            connection.writer.write_eof()
            assert await connection.reader.read() == b"HELLO"
            connection.writer.close()
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_a_plan_for_no_node_of_the_engine_is_refused(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Trying again cannot help, and no trace is left."""
        engine = make_engine()
        elsewhere = placement.model_copy(update={"node": "nowhere"})
        async with watching(engine) as watch:
            with pytest.raises(StartRefused, match="nowhere"):
                await engine.start(self.plan(elsewhere, "true"))
            assert not any(isinstance(event, TaskSeen) for event in watch.events)

    @pytest.mark.asyncio
    async def test_ports_that_are_listened_on_are_busy(
        self, make_engine: EngineMaker, placement: Placement, free_port: int
    ) -> None:
        """Asked of the machine of the placement."""
        plan = self.plan(placement, self.server_command(free_port))
        engine = make_engine()
        assert await engine.busy_ports(placement.machine, [free_port]) == set()
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            assert await engine.busy_ports(placement.machine, [free_port]) == {free_port}
            await engine.stop(plan.uid, 1.0)
            await watch.state(plan.uid, TaskState.EXITED)
        assert await engine.busy_ports(placement.machine, [free_port]) == set()
