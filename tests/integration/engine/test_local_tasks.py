"""What only the local engine promises of a task: its directory, its environment, its output, its processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_backend.engine.base import Engine, EngineError, LogStream, StartRefused, TaskPlan, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Causer, TaskExit
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract import PATIENCE_S, read_log, watching
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.conftest import MakePlan
from tests.support.local_engine import NODE, LocalBehind


async def run(engine: Engine, plan: TaskPlan) -> TaskExit:
    """Run a task to its end."""
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    return ended


async def until(path: Path) -> None:
    """Return once a command has made the file."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(path.exists):  # noqa: ASYNC110 - see the next line
            await asyncio.sleep(0.02)  # nothing tells of a file in a task's directory


SLEEPER = "bash -c 'echo $$ >> pids; exec sleep 1000'"
DEAF = """bash -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.1; done'"""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "leftover",
    [
        f"nohup {SLEEPER} >out 2>&1 &",
        f"setsid {SLEEPER} &",
        f"(setsid {SLEEPER} &)",
        f"setsid {DEAF} &",
        f"env -i setsid {SLEEPER} &",
    ],
    ids=["nohup", "setsid", "double-fork", "deaf-daemon", "unmarked"],
)
async def test_what_a_command_leaves_running_is_gone_when_its_exit_is_reported(
    engine: LocalEngine, root: Path, make_plan: MakePlan, leftover: str
) -> None:
    plan = make_plan(f"{leftover}\nwhile ! [ -s pids ]; do sleep 0.02; done; exit 6")
    ended = await run(engine, plan)
    assert (ended.code, ended.reason) == (6, "exited")
    pids = (root / "tasks" / plan.uid / "work" / "pids").read_text().split()
    assert len(pids) == 1
    assert _command(int(pids[0])) == ""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""


@pytest.mark.asyncio
async def test_a_stop_lets_every_process_of_the_group_use_the_grace(engine: LocalEngine, make_plan: MakePlan) -> None:
    """Bash dies of TERM at once; the training it runs still writes its checkpoint."""
    code = "import signal,sys,time; signal.signal(15, lambda *a: (time.sleep(0.5), print('saved'), sys.exit(0))); "
    plan = make_plan(f'python -c "{code}print(1, flush=True); time.sleep(1000)"; true')
    async with watching(engine) as watch:
        await engine.start(plan)
        assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"1\n"
        await engine.stop(plan.uid, 10.0)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, ended.signal) == ("stopped", 15)
    assert await read_log(engine, plan.uid, LogStream.STDOUT) == b"1\nsaved\n"


@pytest.mark.asyncio
async def test_a_shorter_grace_overtakes_a_longer_one(engine: LocalEngine, make_plan: MakePlan) -> None:
    plan = make_plan("trap '' TERM; echo up; while :; do sleep 0.05; done")
    async with watching(engine) as watch:
        await engine.start(plan)
        assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
        await engine.stop(plan.uid, 600.0)
        await engine.stop(plan.uid, 0.1)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.signal, ended.reason) == (9, "stopped")


@pytest.mark.asyncio
async def test_signals_to_the_shim_do_not_end_a_task(
    engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan
) -> None:
    """A hang-up of the login, or a TERM to everything the user runs, must not lose the exit status."""
    plan = make_plan("sleep 1000")
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        (shim,) = behind.shims(plan.uid)
        for number in (1, 2, 15):
            os.kill(shim, number)
        assert behind.shims(plan.uid) == [shim]
        await engine.stop(plan.uid, 0)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"


@pytest.mark.asyncio
async def test_an_environment_that_no_process_can_be_given_fails_to_start(
    engine: LocalEngine, make_plan: MakePlan
) -> None:
    """Linux takes at most 6 MiB of arguments and environment, execve(2)."""
    ended = await run(engine, make_plan("true", **{f"V{number}": "#" * 100_000 for number in range(70)}))
    assert (ended.code, ended.reason, ended.causer) == (None, "start-failed", Causer.USER)
    assert "Argument list too long" in ended.message


@pytest.mark.asyncio
async def test_a_command_may_be_longer_than_one_argument(engine: LocalEngine, make_plan: MakePlan) -> None:
    """The arguments of a process hold 128 KiB each, execve(2)."""
    ended = await run(engine, make_plan("#" * 1_000_000 + "\nexit 7"))
    assert (ended.code, ended.reason) == (7, "exited")


@pytest.mark.asyncio
async def test_no_other_user_reads_a_command_or_a_variable(
    engine: LocalEngine, root: Path, make_plan: MakePlan
) -> None:
    """What /proc says to all: arguments; a secret of a v2 document stands in the command's text."""
    plan = make_plan(
        "T='in-the-text'; echo $$ $PPID >p; mv p pids; while :; do sleep 0.05; done", TOKEN="in-a-variable"
    )
    pids = root / "tasks" / plan.uid / "work" / "pids"
    async with watching(engine):
        await engine.start(plan)
        await until(pids)
        look = (
            "import sys\n"
            "for pid in sys.argv[1:]:\n"
            "    for name in ('cmdline', 'environ'):\n"
            "        try: data = open(f'/proc/{pid}/{name}', 'rb').read()\n"
            "        except OSError: continue\n"
            "        print(name, data)\n"
        )
        stranger: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        line = ["/usr/bin/env", "python3", "-c", look, *pids.read_text().split()]
        printed = await asyncio.to_thread(
            lambda: subprocess.check_output(line, cwd="/", env={"PATH": os.defpath}, **stranger)
        )
        await engine.stop(plan.uid, 0)
    assert b"cmdline b'bash" in printed
    assert b"in-the-text" not in printed
    if stranger:
        assert b"in-a-variable" not in printed


SHELL_WORDS = [
    ("echo $0 $- ${BASH_SOURCE[0]-none} $# $LINENO", "bash hBc none 0 1\n"),
    ("true\necho $LINENO", "2\n"),
    ("read -r x; echo $? [$x] [${REPLY-none}]", "1 [] [none]\n"),
    ("for f in 3 4 5; do { : <&$f; } 2>/dev/null && echo open; done; true", ""),
    ("echo a \\", "a \\\n"),
    ("echo a \\\n", "a\n"),
    ("cat <<'E'\n\x01\x7f $x 文\nE", "\x01\x7f $x 文\n"),
    ("trap 'echo over $?' EXIT\n(exit 4)", "over 4\n"),
    ("shopt -s expand_aliases\nalias z='echo q'\nz", "q\n"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("command", "said"), SHELL_WORDS)
async def test_a_command_runs_as_bash_runs_a_text(
    engine: LocalEngine, make_plan: MakePlan, command: str, said: str
) -> None:
    """As OpenPAI's ``bash -c`` does, though the text is not among the arguments."""
    plan = make_plan(command)
    await run(engine, plan)
    assert (await read_log(engine, plan.uid, LogStream.STDOUT)).decode() == said


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("command", "code", "signal"),
    [
        ("echo a\nif", 2, None),
        ("set -u; echo $NOPE", 127, None),
        ("set -e; false; exit 9", 1, None),
        ("nosuch-program", 127, None),
        ("kill -9 $$", None, 9),
        ("bash -c 'kill -9 $$'", 137, None),  # of a program that bash waits for
    ],
)
async def test_a_command_ends_as_bash_says(
    engine: LocalEngine, make_plan: MakePlan, command: str, code: int | None, signal: int | None
) -> None:
    ended = await run(engine, make_plan(command))
    assert (ended.code, ended.signal) == (code, signal)


@pytest.mark.asyncio
async def test_a_program_that_bash_waits_for_has_the_grace_and_one_request(
    engine: LocalEngine, root: Path, make_plan: MakePlan
) -> None:
    """Bash itself dies of the TERM that its group gets; what it waits for may save its work first."""
    program = (
        "import signal, time\n"
        "asked = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: asked.append(1))\n"
        "open('up', 'w').close()\n"
        "while not asked: time.sleep(0.01)\n"
        "time.sleep(2.5)\n"  # longer than what is left behind by a command that ended by itself is given
        "open('saved', 'w').write(str(len(asked)))\n"
    )
    plan = make_plan(f"python3 -c {shlex.quote(program)}")
    work = root / "tasks" / plan.uid / "work"
    async with watching(engine) as watch:
        await engine.start(plan)
        await until(work / "up")
        await engine.stop(plan.uid, 30)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"
    assert (work / "saved").read_text() == "1"


@pytest.mark.asyncio
async def test_a_machine_without_bash_says_so(engine: LocalEngine, make_plan: MakePlan, tmp_path: Path) -> None:
    ended = await run(engine, make_plan("true", PATH=str(tmp_path)))
    assert (ended.reason, ended.causer) == ("start-failed", Causer.PLATFORM)
    assert "bash is not on the task's PATH" in ended.message
    assert str(tmp_path) in ended.message


@pytest.mark.asyncio
@pytest.mark.parametrize("bad", [{"command": "echo \0"}, {"env": {"A=B": "1"}}, {"env": {"A": "1\0"}}, {"uid": "../x"}])
async def test_a_plan_that_no_process_can_be_given_is_refused(
    engine: LocalEngine, make_plan: MakePlan, bad: dict[str, object]
) -> None:
    plan = make_plan("true").model_copy(update=bad)
    with pytest.raises(StartRefused):
        await engine.start(plan)


@pytest.mark.asyncio
async def test_the_environment_is_the_plans_and_a_short_list_of_the_machines(
    engine: LocalEngine, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_BACKEND_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    plan = make_plan("env -0", PAI_JOB_NAME="job")
    await run(engine, plan)
    output = (await read_log(engine, plan.uid, LogStream.STDOUT)).decode()
    env = dict(entry.split("=", 1) for entry in output.split("\0")[:-1])
    assert env["PAI_JOB_NAME"] == "job"
    assert env["PAI_TASK_UID"] == plan.uid
    assert env["LC_TIME"] == "C"
    assert env["HOME"] == os.environ["HOME"]
    assert env["PATH"].split(":")[0] == f"{env['VIRTUAL_ENV']}/bin"
    assert os.path.dirname(sys.executable) in env["PATH"].split(":")
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("", "none")
    assert "secret" not in output


@pytest.mark.asyncio
async def test_the_command_runs_in_its_own_directory_and_session(engine: LocalEngine, make_plan: MakePlan) -> None:
    # Counted by the shell itself: beside a pipe, it has ends of the pipe open for a moment.
    count = 'open=0; for each in /proc/$$/fd/*; do [ -L "$each" ] && open=$((open+1)); done; echo $open'
    plan = make_plan(f"pwd; ps -o sid= -p $$ | tr -d ' '; echo $$; readlink /proc/$$/fd/0; {count}")
    await run(engine, plan)
    work, session, pid, stdin, open_files = (await read_log(engine, plan.uid, LogStream.STDOUT)).decode().split()
    assert work.endswith(f"tasks/{plan.uid}/work")
    assert session == pid
    assert stdin == "/dev/null"
    assert open_files == "3"


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_command_starts_with_no_signal_blocked_or_ignored(engine: LocalEngine, make_plan: MakePlan) -> None:
    plan = make_plan("grep -E '^Sig(Blk|Ign)' /proc/self/status")
    await run(engine, plan)
    _, blocked, _, ignored = (await read_log(engine, plan.uid, LogStream.STDOUT)).split()
    ordinary = 2**31 - 1  # glibc's posix_spawn leaves the two above, which it keeps for itself, ignored
    assert (int(blocked, 16), int(ignored, 16) & ordinary) == (0, 0)


@pytest.mark.asyncio
async def test_only_the_owner_can_read_what_a_task_has(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    plan = make_plan("echo secret")
    await run(engine, plan)
    directory = root / "tasks" / plan.uid
    modes = {path.name: path.stat().st_mode & 0o077 for path in [directory, *directory.iterdir()]}
    assert modes == dict.fromkeys(modes, 0)


@pytest.mark.asyncio
async def test_binary_output_is_kept_byte_for_byte(engine: LocalEngine, make_plan: MakePlan) -> None:
    plan = make_plan("""python -c "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)" """)
    await run(engine, plan)
    assert await read_log(engine, plan.uid, LogStream.STDOUT) == bytes(range(256)) * 4096


@pytest.mark.asyncio
async def test_rotation_bounds_the_disk_and_keeps_offsets(root: Path, behind: LocalBehind, make_plan: MakePlan) -> None:
    """Two segments of at most the limit and one read are kept; a byte's offset never changes."""
    limit = 100_000
    engine = LocalEngine(root, [NODE], log_bytes=limit)
    plan = make_plan("for ((i = 0; i < 100000; i++)); do printf '%09d\\n' $i; done")
    async with watching(engine) as watch:
        await engine.start(plan)
        followed = await read_log(engine, plan.uid, LogStream.STDOUT, follow=True)
        await watch.state(plan.uid, TaskState.EXITED)
    files = list((root / "tasks" / plan.uid).glob("stdout-*.log"))
    assert sum(file.stat().st_size for file in files) <= 2 * (limit + 65536)
    tail = await read_log(engine, plan.uid, LogStream.STDOUT, 999_950)
    assert tail == b"".join(b"%09d\n" % i for i in range(99_995, 100_000))
    kept = await read_log(engine, plan.uid, LogStream.STDOUT, 0)
    assert len(kept) >= limit
    assert await engine.log_extent(plan.uid, LogStream.STDOUT) == (1_000_000 - len(kept), 1_000_000)
    base = min(int(file.name[len("stdout-") : -len(".log")]) for file in files)
    everything = b"".join(b"%09d\n" % i for i in range(100_000))
    assert kept == everything[base:]
    assert followed.endswith(tail)


@pytest.mark.asyncio
async def test_a_simulated_gpu_shows_itself_as_simulated_and_hides_real_ones(
    engine: LocalEngine, make_plan: MakePlan
) -> None:
    where = Placement(
        node="carol", address="127.0.0.1", machine=NODE.machine, gpus=(0, 1), gpu_type="TITANX", simulated_gpu=True
    )
    plan = make_plan(
        "nvidia-smi && nvidia-smi -L && nvidia-smi --query-gpu=name,index --format=csv,noheader && "
        'echo "[$CUDA_VISIBLE_DEVICES] [$NVIDIA_VISIBLE_DEVICES]"',
        where=where,
    )
    ended = await run(engine, plan)
    output = (await read_log(engine, plan.uid, LogStream.ALL)).decode()
    assert ended.code == 0, output
    assert "SIMULATED by jupyter-pai" in output
    assert "TITANX (SIMULATED), 1\n" in output
    assert output.endswith("[] [none]\n")


@pytest.mark.asyncio
async def test_real_gpus_are_named_to_cuda(engine: LocalEngine, make_plan: MakePlan) -> None:
    where = Placement(node="carol", address="127.0.0.1", machine=NODE.machine, gpus=(2, 5), gpu_type="H200")
    plan = make_plan('echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"', where=where)
    await run(engine, plan)
    assert await read_log(engine, plan.uid, LogStream.ALL) == b"2,5 2,5\n"


@pytest.mark.asyncio
async def test_a_forgotten_task_leaves_no_secrets(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    plan = make_plan("echo kept > model.bin", PAI_TOKEN="hush")
    await run(engine, plan)
    await engine.forget(plan.uid)
    left = root / "done" / plan.uid
    assert not any((left / name).exists() for name in ("plan.json", "launch"))
    assert (left / "work" / "model.bin").read_text() == "kept\n"


@pytest.mark.asyncio
async def test_a_second_watch_of_the_same_root_is_refused(engine: LocalEngine, root: Path) -> None:
    async with watching(engine):
        with pytest.raises(EngineError, match="already"):
            await anext(LocalEngine(root, [NODE]).watch())
    async with watching(LocalEngine(root, [NODE])):
        pass


@pytest.mark.asyncio
async def test_an_engine_that_only_reads_touches_nothing(root: Path) -> None:
    engine = LocalEngine(root, [NODE])
    with pytest.raises(KeyError):
        await anext(engine.logs(TaskUid("j0-0-0-0"), LogStream.ALL, 0, False))
    await engine.busy_ports(NODE.machine, [])
    assert root.name not in os.listdir(root.parent)


@pytest.mark.asyncio
async def test_many_tasks_at_once_all_report_their_own_status(engine: LocalEngine, make_plan: MakePlan) -> None:
    plans = [make_plan(f"exit {number}", number) for number in range(40)]
    async with watching(engine) as watch:
        await asyncio.gather(*(engine.start(plan) for plan in plans))
        ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in plans]
    assert [e.code for e in ended if e] == list(range(40))


@pytest.mark.asyncio
async def test_a_port_that_another_program_took_is_why_a_server_failed(
    engine: LocalEngine, make_plan: MakePlan, placement: Placement
) -> None:
    """And is not, when the server ends well or nobody has the port."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        where = placement.model_copy(update={"ports": {"http": (port,)}})
        serve = f"python -c 'import socket; socket.create_server((\"127.0.0.1\", {port}))'"
        ended = await run(engine, make_plan(serve, 0, where=where))
        assert (ended.reason, ended.code, ended.causer) == ("port-conflict", 1, Causer.PLATFORM)
        assert f"port {port} (http)" in ended.message
        assert (await run(engine, make_plan("exit 0", 1, where=where))).reason == "exited"
    assert (await run(engine, make_plan("exit 1", 2, where=where))).reason == "exited"


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group that may use 256 MiB."""
    parent = Path("/sys/fs/cgroup/memory")
    group = parent / f"pai-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(256 * 2**20))
    except OSError as exc:
        pytest.skip(f"a control group of one's own takes root and cgroup v1: {exc}")
    yield group
    deadline = time.monotonic() + 60
    while (group / "cgroup.procs").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    group.rmdir()


STARTER = """
import asyncio, os, sys
from pathlib import Path
from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local.engine import LocalEngine
from tests.support.local_engine import NODE
Path(sys.argv[2], "cgroup.procs").write_text(str(os.getpid()))
asyncio.run(LocalEngine(Path(sys.argv[1]), [NODE]).start(TaskPlan.model_validate_json(sys.stdin.read())))
"""


@pytest.mark.asyncio
@pytest.mark.parametrize("command", ["{hog}", "{hog}; exit $?"], ids=["itself", "a child of bash"])
async def test_the_kernels_out_of_memory_killer_is_named(
    engine: LocalEngine, root: Path, behind: LocalBehind, make_plan: MakePlan, small_group: Path, command: str
) -> None:
    hog = "python -c 'b = bytearray(800 * 2**20)'"
    plan = make_plan(command.format(hog=hog))
    starter = [sys.executable, "-c", STARTER, str(root), str(small_group)]
    await asyncio.to_thread(subprocess.run, starter, input=plan.model_dump_json().encode(), check=True, timeout=60)
    async with watching(engine) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, ended.status) == ("out-of-memory", 137)


@pytest.mark.asyncio
async def test_a_kill_from_elsewhere_is_not_called_out_of_memory(engine: LocalEngine, make_plan: MakePlan) -> None:
    ended = await run(engine, make_plan("kill -KILL $$"))
    assert (ended.reason, ended.signal) == ("signalled", 9)


@pytest.mark.asyncio
async def test_a_program_that_listens_at_the_other_loopback_alone_is_reached(
    engine: LocalEngine, make_plan: MakePlan
) -> None:
    """To Node.js since version 17 `localhost` is `::1` alone."""
    lines = ["import socket", 'server = socket.create_server(("::1", 0), family=socket.AF_INET6)']
    lines += ["print(server.getsockname()[1], flush=True)", "peer = server.accept()[0]", "peer.sendall(peer.recv(99))"]
    plan = make_plan(f"python -c '{'; '.join(lines)}'")
    async with watching(engine) as watch:
        await engine.start(plan)
        port = int(await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)))
        connection = await engine.dial(plan.placement, plan.uid, port)
        connection.writer.write(b"hello")
        assert await connection.reader.readexactly(5) == b"hello"
        connection.writer.close()
        await watch.state(plan.uid, TaskState.EXITED)
        with pytest.raises(EngineError, match=f"nothing answers on port {port} .*127.0.0.1"):
            await engine.dial(plan.placement, plan.uid, port)
