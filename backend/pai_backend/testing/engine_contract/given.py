"""What a task is given: its directory, inputs and outputs, and the info of its job."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from pai_backend.engine.base import (
    LogStream,
    TaskState,
)
from pai_backend.model.node import Placement
from pai_backend.model.plan import StagedInput
from pai_backend.testing.engine_contract.observing import read_log, watching
from pai_backend.testing.engine_contract.world import Behind, EngineMaker, EngineWorld


class Given(EngineWorld):
    """Its own directories, and the job info file."""

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


class Staged(EngineWorld):
    """Inputs and outputs in directories that test and task both see; for engines whose tasks are on this machine."""

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
