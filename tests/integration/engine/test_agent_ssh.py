"""The node agent with real OpenSSH clients, strict host checking on throughout."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio
from asyncssh.channel import SSHClientChannel
from asyncssh.packet import String
from pydantic import SecretStr

from pai_backend.engine.asyncssh_private.task_connection import MOST_CHANNELS
from pai_backend.engine.base import SshPlan, TaskPlan, TaskState
from pai_backend.engine.local.agent import serve_agent
from pai_backend.engine.local.control_groups import control_groups
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.processes import limit_mark
from pai_backend.testing.engine_contract import PATIENCE_S, watching
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.conftest import MakePlan
from tests.support.local_engine import NODE, LocalBehind


class Client:
    """OpenSSH programs that know one task's host key and hold one of its user keys."""

    def __init__(self, folder: Path, name: str = "key") -> None:
        self.folder = folder
        self.port = free_port()
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._key = folder / name
        user_key = asyncssh.generate_private_key("ssh-ed25519")
        user_key.write_private_key(self._key)
        self._key.chmod(0o600)
        self.public = user_key.export_public_key().decode().strip()
        public_host = self._host_key.export_public_key().decode().strip()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public_host}\n")

    @property
    def plan(self) -> SshPlan:
        """What the task is to serve."""
        host_key = SecretStr(self._host_key.export_private_key().decode())
        return SshPlan(port=self.port, host_key=host_key, authorized_keys=(self.public,))

    @property
    def options(self) -> list[str]:
        """What all three programs understand."""
        settings = {
            "IdentityFile": self._key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
            "Port": self.port,
        }
        return ["-F", "none", *(word for k, v in settings.items() for word in ("-o", f"{k}={v}"))]

    def command(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        """``ssh`` with some remote command."""
        return ["ssh", *self.options, *options, "anybody@127.0.0.1", *words]

    def connected(self) -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
        """A client that is asyncssh: it can do what OpenSSH's command line cannot."""
        known = str(self.folder / "known_hosts")
        keys = [str(self._key)]
        return asyncssh.connect(
            "127.0.0.1", self.port, client_keys=keys, known_hosts=known, config=None, agent_path=None
        )

    async def ssh(
        self, *words: str, options: tuple[str, ...] = (), stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``ssh`` to its end."""
        return await run(*self.command(*words, options=options), stdin=stdin)


async def run(*argv: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end; TimeoutExpired when it hangs."""
    return await asyncio.to_thread(
        subprocess.run, argv, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
    )


@pytest_asyncio.fixture
async def agent(root: Path, behind: LocalBehind) -> AsyncIterator[subprocess.Popen[bytes]]:
    """The agent as a process of its own."""
    process = start_agent(root)
    yield process
    process.terminate()
    assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0


def start_agent(root: Path) -> subprocess.Popen[bytes]:
    """Start the agent for a root."""
    return subprocess.Popen([sys.executable, "-m", "pai_backend.engine.local.agent", str(root)])


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client with the right keys."""
    return Client(tmp_path)


@pytest_asyncio.fixture
async def task(
    engine: LocalEngine, agent: subprocess.Popen[bytes], make_plan: MakePlan, client: Client
) -> AsyncIterator[TaskPlan]:
    """A running task that serves SSH."""
    plan = make_plan("sleep 1000", ssh=client.plan, PAI_JOB_NAME="job with 'quotes'")
    await engine.start(plan)
    await served(client.port)
    yield plan
    await engine.stop(plan.uid, 0)


async def served(port: int) -> None:
    """Return when an SSH server answers there. A connection alone may be one to itself, or to another test's."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await _greets(port):
                return
            await asyncio.sleep(0.02)


async def _greets(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        async with asyncio.timeout(PATIENCE_S / 10):
            return (await reader.readline()).startswith(b"SSH-")
    except (OSError, ValueError, TimeoutError):
        return False
    finally:
        writer.close()


@pytest.mark.asyncio
async def test_a_command_runs_in_the_tasks_directory_with_its_environment(
    client: Client, task: TaskPlan, root: Path
) -> None:
    done = await client.ssh('pwd; echo "$PAI_JOB_NAME"; echo "$PAI_TASK_UID"; command -v python')
    where, name, uid, python = done.stdout.decode().splitlines()
    assert where == str(root / "tasks" / task.uid / "work")
    assert (name, uid) == ("job with 'quotes'", task.uid)
    assert python == str(root / "tasks" / task.uid / "python" / "bin" / "python")
    assert (done.stderr, done.returncode) == (b"", 0)


@pytest.mark.asyncio
async def test_bytes_go_both_ways_unchanged_and_input_can_end(client: Client, task: TaskPlan) -> None:
    data = bytes(range(256)) * 8192
    done = await client.ssh("cat; printf end; printf err >&2", stdin=data)
    assert done.stdout == data + b"end"
    assert done.stderr == b"err"


@pytest.mark.asyncio
async def test_standard_input_is_a_pipe_that_programs_can_open(client: Client, task: TaskPlan) -> None:
    assert (await client.ssh("cat /dev/stdin", stdin=b"abc")).stdout == b"abc"


@pytest.mark.asyncio
@pytest.mark.parametrize(("command", "status"), [("exit 0", 0), ("exit 41", 41), ("kill -9 $$", 255)])
async def test_the_exit_status_is_the_commands(client: Client, task: TaskPlan, command: str, status: int) -> None:
    """OpenSSH's client shows an exit by signal as 255."""
    assert (await client.ssh(command)).returncode == status


@pytest.mark.asyncio
async def test_a_session_lasts_until_its_output_is_closed(client: Client, task: TaskPlan) -> None:
    done = await client.ssh("(sleep 0.3; echo late) & echo early")
    assert done.stdout == b"early\nlate\n"


@pytest.mark.asyncio
async def test_a_shell_without_a_terminal_reads_commands(client: Client, task: TaskPlan) -> None:
    done = await client.ssh(stdin=b"echo $((6*7))\nexit 3\n")
    assert (done.stdout, done.stderr, done.returncode) == (b"42\n", b"", 3)


@pytest.mark.asyncio
@pytest.mark.parametrize("options", [(), ("-tt",)], ids=["pipes", "terminal"])
async def test_what_a_session_starts_at_once_is_in_the_tasks_groups_and_has_its_mark(
    root: Path, agent: subprocess.Popen[bytes], make_plan: MakePlan, client: Client, options: tuple[str, ...]
) -> None:
    groups = control_groups()
    if not groups.v1 and groups.v2 is None:
        pytest.skip(f"this machine lets us make no control groups: {dict(groups.reasons)}")
    engine = LocalEngine(root, [NODE], most_processes=100, groups=lambda: groups)
    plan = make_plan("sleep 1000", ssh=client.plan)
    await engine.start(plan)
    await served(client.port)
    ask = "cat /proc/self/cgroup; grep locks /proc/self/limits & wait"
    said = [(await client.ssh(ask, options=options)).stdout.decode() for _ in range(5)]
    await engine.stop(plan.uid, 0)
    assert [(f"pai-task-{plan.uid}" in each, str(limit_mark(plan.uid)) in each) for each in said] == [(True, True)] * 5


@pytest.mark.asyncio
async def test_a_shell_has_the_tasks_python_whatever_its_start_file_puts_first(
    engine: LocalEngine,
    agent: subprocess.Popen[bytes],
    make_plan: MakePlan,
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the start files do that conda and pyenv write. What else the file says counts."""
    other = tmp_path / "home" / "other"
    other.mkdir(parents=True)
    shutil.copy("/bin/true", other / "pip")
    (tmp_path / "home" / ".bashrc").write_text(
        f"PS1=; PATH={other}:$PATH; VIRTUAL_ENV={other}; alias mine='echo of the start file'\n"
    )
    bash = shutil.which("bash") or ""
    plan = make_plan("sleep 1000", ssh=client.plan, HOME=str(tmp_path / "home"), SHELL=bash)
    await engine.start(plan)
    await served(client.port)
    monkeypatch.setenv("TERM", "dumb")
    asked = b"command -v pip; echo env=$VIRTUAL_ENV; type -P -a pip | grep -c other; mine; exit\n"
    said = (await client.ssh(options=("-tt",), stdin=asked)).stdout.decode().split("\r\n")
    await engine.stop(plan.uid, 0)
    place = tmp_path / "engine" / "tasks" / plan.uid
    assert f"{place}/python/commands/pip" in said
    assert {f"env={place}/python", "1", "of the start file"} <= set(said)


@pytest.mark.asyncio
async def test_a_terminal_is_a_terminal_of_the_asked_type(
    client: Client, task: TaskPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It controls its session: a program can open /dev/tty."""
    monkeypatch.setenv("TERM", "vt220")
    done = await client.ssh("tty; echo $TERM; echo through > /dev/tty; exit 5", options=("-tt",))
    tty, term, through = done.stdout.decode().split()
    assert tty.startswith("/dev/pts/")
    assert term == "vt220"
    assert (through, done.returncode) == ("through", 5)


@pytest.mark.asyncio
async def test_window_changes_and_modes_reach_the_terminal(client: Client, task: TaskPlan) -> None:
    async with open_connection(client) as connection:
        process = await connection.create_process(
            "trap 'stty size; exit' WINCH; stty -a; echo ready; while :; do sleep 0.02; done",
            term_type="xterm-256color",
            term_size=(97, 31, 0, 0),
            term_modes={asyncssh.constants.PTY_ECHO: 0, asyncssh.constants.PTY_VINTR: 7},
            encoding="utf-8",
        )
        settings = await process.stdout.readuntil("ready\r\n")
        assert "rows 31; columns 97;" in settings
        assert "intr = ^G;" in settings
        assert " -echo " in settings
        process.change_terminal_size(120, 40)
        assert (await process.stdout.read()).strip() == "40 120"


@pytest.mark.asyncio
async def test_a_signal_request_reaches_the_programs_group(client: Client, task: TaskPlan) -> None:
    async with open_connection(client) as connection:
        process = await connection.create_process("trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.02; done")
        assert await process.stdout.readline() == "up\n"
        process.send_signal("USR1")
        done = await process.wait()
    assert (done.stdout, done.exit_status) == ("got\n", 9)


def open_connection(client: Client) -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
    """asyncssh's own client, for what OpenSSH's program cannot be asked to do."""
    return asyncssh.connect(
        "127.0.0.1",
        client.port,
        username="x",
        client_keys=[str(client.folder / "key")],
        known_hosts=str(client.folder / "known_hosts"),
        config=None,
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("terminal", [None, "xterm"], ids=["pipes", "terminal"])
async def test_what_cannot_be_run_is_told_and_the_login_goes_on(
    client: Client, task: TaskPlan, terminal: str | None
) -> None:
    async with open_connection(client) as connection:
        done = await connection.run("echo a\0b", term_type=terminal)
        assert done.exit_status == 255
        assert "cannot start in the task: embedded null byte" in f"{done.stdout!r}{done.stderr!r}"
        assert (await connection.run("echo in")).stdout == "in\n"


@pytest.mark.asyncio
async def test_variables_of_the_client_reach_the_command(client: Client, task: TaskPlan) -> None:
    sent = "SetEnv=LC_MEANING=42 PAI_TASK_UID=forged"
    done = await client.ssh("echo $LC_MEANING $PAI_TASK_UID", options=("-o", sent))
    assert done.stdout.decode() == f"42 {task.uid}\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("protocol", ["-s", "-O"], ids=["sftp", "scp"])
async def test_scp_copies_both_ways_below_the_working_directory(
    client: Client, task: TaskPlan, tmp_path: Path, root: Path, protocol: str
) -> None:
    data = os.urandom(300_000)
    local = tmp_path / "local.bin"
    local.write_bytes(data)
    up = await run("scp", protocol, *client.options, str(local), "x@127.0.0.1:remote.bin")
    assert (up.returncode, up.stderr) == (0, b"")
    assert (root / "tasks" / task.uid / "work" / "remote.bin").read_bytes() == data
    down = await run("scp", protocol, *client.options, "x@127.0.0.1:remote.bin", str(tmp_path / "back.bin"))
    assert down.returncode == 0
    assert (tmp_path / "back.bin").read_bytes() == data


@pytest.mark.asyncio
async def test_sftp_starts_in_the_working_directory(client: Client, task: TaskPlan, root: Path) -> None:
    done = await run("sftp", *client.options, "-b", "-", "x@127.0.0.1", stdin=b"pwd\nmkdir d\nls\n")
    assert str(root / "tasks" / task.uid / "work") in done.stdout.decode()
    assert "\nd" in done.stdout.decode()


@pytest.mark.asyncio
async def test_connections_can_be_forwarded_both_ways(client: Client, task: TaskPlan) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    here = server.sockets[0].getsockname()[1]
    async with server:
        there = await run(*client.command(options=("-W", f"127.0.0.1:{here}")), stdin=b"to the task")
        assert there.stdout == b"TO THE TASK"
        remote = free_port()
        code = (
            f"import socket; s = socket.create_connection(('127.0.0.1', {remote})); s.sendall(b'from the task'); "
            "s.shutdown(1); print(s.recv(99).decode())"
        )
        back = await client.ssh(f'python -c "{code}"', options=("-R", f"{remote}:127.0.0.1:{here}"))
        assert back.stdout == b"FROM THE TASK\n"


@pytest.mark.asyncio
async def test_dropbears_client_whose_guess_is_wrong_logs_in(client: Client, task: TaskPlan, tmp_path: Path) -> None:
    """It begins the key exchange with what it likes best, which is not what the server does."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/known_hosts").write_text(
        (client.folder / "known_hosts").read_text().replace(f"[127.0.0.1]:{client.port}", "127.0.0.1")
    )
    key = str(tmp_path / "id_dropbear")
    await run("dropbearconvert", "openssh", "dropbear", str(client.folder / "key"), key)
    line = ["dbclient", "-i", key, "-p", str(client.port), "anybody@127.0.0.1", "cat; echo in; exit 3"]
    done = await run("env", f"HOME={tmp_path}", *line, stdin=b"going ")
    assert (done.stdout, done.returncode) == (b"going in\n", 3), done.stderr


@pytest.mark.asyncio
async def test_only_the_tasks_own_keys_are_let_in(client: Client, task: TaskPlan, tmp_path: Path) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    stranger = Client(folder)
    stranger.port = client.port
    shutil.copy(client.folder / "known_hosts", folder / "known_hosts")
    done = await stranger.ssh("echo in")
    assert (done.stdout, done.returncode) == (b"", 255)
    assert b"Permission denied" in done.stderr


@pytest.mark.asyncio
async def test_the_task_presents_the_planned_host_key(client: Client, task: TaskPlan) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    (client.folder / "known_hosts").write_text(f"[127.0.0.1]:{client.port} {other}\n")
    done = await client.ssh("echo in")
    assert (done.stdout, done.returncode) == (b"", 255)
    assert b"verification failed" in done.stderr


@pytest.mark.asyncio
async def test_sessions_end_with_the_task_and_so_do_their_daemons(
    client: Client, task: TaskPlan, engine: LocalEngine, behind: LocalBehind
) -> None:
    background = await client.ssh("nohup setsid sleep 1000 > /dev/null 2>&1 & echo started")
    assert background.stdout == b"started\n"
    session = await asyncio.create_subprocess_exec(
        *client.command("echo up; sleep 1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert session.stdout
    assert await session.stdout.readline() == b"up\n"
    assert len(behind.processes(task.uid)) >= 3
    async with watching(engine) as watch:
        await engine.stop(task.uid, 0)
        await watch.state(task.uid, TaskState.EXITED)
    assert behind.processes(task.uid) == []
    assert await asyncio.wait_for(session.wait(), PATIENCE_S) == 255
    await refused(client.port)


async def refused(port: int) -> None:
    """Return when nothing accepts connections there any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return
            writer.close()
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_terminal_whose_client_goes_away_is_hung_up(client: Client, task: TaskPlan) -> None:
    async with open_connection(client) as connection:
        process = await connection.create_process(
            "trap 'echo hung > hung; exit' HUP; echo up; while :; do sleep 0.02; done", term_type="xterm"
        )
        await process.stdout.readuntil("up\r\n")
    done = await client.ssh("while ! [ -s hung ]; do sleep 0.02; done; cat hung")
    assert done.stdout == b"hung\n"


@pytest.mark.asyncio
async def test_a_killed_agent_is_replaced_and_the_task_never_notices(
    root: Path, engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, client: Client
) -> None:
    plan = make_plan("sleep 1000", ssh=client.plan)
    await engine.start(plan)
    first = start_agent(root)
    try:
        await served(client.port)
        first.send_signal(signal.SIGKILL)
    finally:
        first.wait()
    second = start_agent(root)
    try:
        await served(client.port)
        assert (await client.ssh("echo again")).stdout == b"again\n"
    finally:
        second.terminate()
        assert second.wait(PATIENCE_S) == 0
    await engine.stop(plan.uid, 0)


@pytest.mark.asyncio
async def test_a_taken_port_is_noted_and_tried_again(
    engine: LocalEngine, agent: subprocess.Popen[bytes], root: Path, make_plan: MakePlan, client: Client
) -> None:
    note = root / "tasks" / make_plan("").uid / "ssh.json"
    with socket.create_server(("127.0.0.1", client.port)):
        plan = make_plan("sleep 1000", ssh=client.plan)
        await engine.start(plan)
        state = await noted(note, "failed")
        assert "Address already in use" in state["error"]
    state = await noted(note, "listening")
    assert (await client.ssh("echo in")).stdout == b"in\n"
    await engine.stop(plan.uid, 0)


async def noted(path: Path, state: str) -> dict[str, str]:
    """The agent's note, once it says this state."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                note: dict[str, str] = json.loads(await asyncio.to_thread(path.read_bytes))
            except (FileNotFoundError, json.JSONDecodeError):
                note = {}
            if note.get("state") == state:
                return note
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_hint_of_the_shim_opens_and_closes_the_port(
    engine: LocalEngine,
    behind: LocalBehind,
    root: Path,
    make_plan: MakePlan,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without waiting for a scan, which never comes here."""
    monkeypatch.setattr("pai_backend.engine.local.agent.SCAN_S", 3600.0)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve_agent(root, stop))
    plan = make_plan("sleep 1000", ssh=client.plan)
    await engine.start(plan)
    await served(client.port)
    await engine.stop(plan.uid, 0)
    await refused(client.port)
    stop.set()
    await asyncio.wait_for(serving, PATIENCE_S)


@pytest.mark.asyncio
async def test_a_second_agent_of_the_same_root_is_refused(
    engine: LocalEngine, agent: subprocess.Popen[bytes], task: TaskPlan, root: Path
) -> None:
    with pytest.raises(BlockingIOError, match="already serves"):
        await serve_agent(root, asyncio.Event())


@pytest.mark.asyncio
async def test_a_connection_has_a_bounded_number_of_channels_and_one_program_on_each(
    client: Client, task: TaskPlan
) -> None:
    async with client.connected() as connection:

        async def opened() -> SSHClientChannel[bytes]:
            channel: SSHClientChannel[bytes] = SSHClientChannel(
                connection, asyncio.get_running_loop(), "strict", None, "strict", 1 << 21, 1 << 15
            )
            await channel._open(b"session")
            return channel

        async with asyncio.timeout(PATIENCE_S):
            first, *_ = [await opened() for _ in range(MOST_CHANNELS)]
            with pytest.raises(asyncssh.ChannelOpenError, match="channels open, the maximum"):
                await opened()
            assert await first._make_request(b"subsystem", String(b"sftp"))
            for name, args in ((b"subsystem", String(b"sftp")), (b"exec", String(b"true")), (b"shell", b"")):
                assert not await first._make_request(name, args)
