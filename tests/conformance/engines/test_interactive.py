"""What people keep open in a task: terminals and kernels that outlive their connections."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from jupyter_pai.kernels.provisioner import JobProvisioner
from jupyter_pai.kernels.specs import install
from jupyter_pai.terminals.link import asked
from jupyter_pai.terminals.login import TaskPlace, logged_in
from jupyter_pai.terminals.persistent import PersistentTerminal
from pai_backend.engine.local.control_groups import control_groups
from tests.conformance.clients.entry import Entry
from tests.conformance.engines.documents import commands, submitted, v2, v2_role
from tests.conformance.engines.room import JOB_S, Job, Room
from tests.integration.kernels.conftest import entry_points
from tests.integration.kernels.test_debug import LOOP, connected, free_port, leading, stop_at_breakpoint
from tests.integration.kernels.test_kernels import client_of, provisioner_of, says
from tests.integration.kernels.test_tensorboard import VSCODE, web
from tests.kubernetes import notebook_image
from tests.support.backend_process import until
from tests.support.terminal_client import requesting

__all__ = ["entry_points"]  # a fixture
pytestmark = pytest.mark.asyncio


@dataclass
class Window:
    """What a user sees."""

    seen: bytearray = field(default_factory=bytearray)
    losses: int = 0
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def show(self, data: bytes) -> None:
        """Output."""
        self.seen += data
        self._more.set()

    async def lost(self, reason: str) -> None:
        """The connection is lost, and will be made again."""
        self.losses += 1

    async def until(self, text: str, times: int = 1) -> None:
        """Wait until the shell has written this, so many times in all."""
        async with asyncio.timeout(JOB_S):
            while self.seen.count(text.encode()) < times:
                self._more.clear()
                await self._more.wait()


@submitted(commands("exec sleep 1000"))
async def test_a_terminal_outlives_the_backend_and_ends_with_its_task(
    room: Room, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_SSH_DIR", str(tmp_path / "ssh"))
    await asyncio.to_thread(job.running)
    place, window = TaskPlace(job.uid, "main", 0, tmp_path / "ssh"), Window()
    terminal = PersistentTerminal(lambda: logged_in(lambda: room.client.api.endpoint, place), "one", window, (30, 99))
    running = asyncio.create_task(terminal.run())
    await terminal.type(b"kept=yes; echo $(stty size) $PAI_JOB_NAME''.\n")
    await window.until(f"30 99 {job.detail['name']}.")
    await terminal.resize(41, 111)
    await terminal.type(b"until test \"$(stty size)\" = '41 111'; do sleep 0.1; done; echo lar''ger\n")
    await window.until("larger")
    shown = window.seen.count(b"\x1bc")  # a prompt that was there before the first connection, too
    await asyncio.to_thread(room.kill)
    await asyncio.to_thread(room.start)
    await window.until("\x1bc", shown + 1)  # what was written before is shown again
    await terminal.type(b"echo $kept ag''ain\n")
    await window.until("yes again")
    assert b"larger" in window.seen[window.seen.rindex(b"\x1bc") :]
    await asyncio.to_thread(a_removed_key_leaves_the_shell_alone, room, job, tmp_path)
    with logged_in(lambda: room.client.api.endpoint, place) as login:
        (listed,) = await asked(login.command, do="list", owner=login.folder)
    assert (listed["name"], listed["clients"], listed["ended"]) == ("one", 1, None)
    await asyncio.to_thread(job.stop)
    ending = await asyncio.wait_for(running, JOB_S)
    assert "STOPPED" in ending.reason or "has ended" in ending.reason, ending


def a_removed_key_leaves_the_shell_alone(room: Room, job: Job, tmp_path: Path) -> None:
    """Its connection ends at once, for unit/gateway/test_cut_in_time.py adds up how soon."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    added = room.client.add_key(key.with_suffix(".pub").read_text().strip())
    way = room.entry(job)
    line = Entry(way.host, way.port, way.login, way.host_key, key, tmp_path / "home").openssh(
        "ssh", "-T", "-s", way.address(), "pai-terminal"
    )
    with requesting(line, do="attach", name="two") as client:
        client.type("echo i''n\n")
        client.until(b"in\r\n")
        room.client.delete_key(added["fingerprint"])
        while client.next() is not None:
            pass
    with requesting(
        [*line[:1], *room.ssh_options(job), "-l", way.login, "-T", "-s", "gateway", "pai-terminal"], do="list"
    ) as other:
        (session,) = other.answer(b"L")
    assert (session["name"], session["clients"], session["ended"]) == ("two", 0, None)


@pytest.fixture
def at_home(room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is the user, with a home of its own; the backend is asked for at each connection, for it moves."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "PAI_SSH_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    now_at(room, monkeypatch)
    with tempfile.TemporaryDirectory(prefix="pk-") as short:  # leaves room for the names of Unix sockets
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield


def now_at(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the backend where it is now."""
    monkeypatch.setenv("PAI_URL", room.backend.url)
    monkeypatch.setenv("PAI_TOKEN", room.backend.token)


@contextmanager
def with_jupyter(room: Room, request: pytest.FixtureRequest, *commands: str, **fields: object) -> Iterator[Job]:
    """A job whose image has ipykernel and debugpy, until the end of the block."""
    role = v2_role(*commands)
    role["resourcePerInstance"]["memoryMB"] = 300
    request.getfixturevalue("scm_images")
    job = room.submit(v2({"main": role}, **fields), notebook_image.REFERENCES[0])
    job.running()
    yield job
    job.stop()


@pytest.fixture
def computing(room: Room, request: pytest.FixtureRequest) -> Iterator[Job]:
    with with_jupyter(room, request, "exec sleep 1000") as job:
        yield job


@pytest.fixture
def debuggable(room: Room, request: pytest.FixtureRequest) -> Iterator[Job]:
    commands = [f"cat >area.py <<'PROGRAM'\n{LOOP}PROGRAM", "echo in $PWD.", "exec python3 area.py"]
    with with_jupyter(room, request, *commands, extras={"jupyterPai": {"debug": True}}) as job:
        yield job


async def test_a_breakpoint_in_a_program_of_the_image_is_hit(debuggable: Job, at_home: None, tmp_path: Path) -> None:
    (tmp_path / "area.py").write_text(LOOP)
    await asyncio.to_thread(until, lambda: "waits for debuggers: pai debug" in debuggable.log(stream="all"), JOB_S)
    local, there = free_port(), debuggable.log().partition("in ")[2].partition(".\n")[0]
    words = (debuggable.detail["alias"], "--local-port", str(local), "--local-root", str(tmp_path))
    with leading(*words, "--remote-root", there):
        debugger, connection = connected(local)
        with connection:
            mappings = [{"localRoot": str(tmp_path), "remoteRoot": there}]
            stop_at_breakpoint(debugger, {"pathMappings": mappings}, tmp_path / "area.py")
            debugger.send("disconnect")
            debugger.answer("disconnect")


async def test_a_kernel_outlives_the_backend_and_says_that_it_lacked_memory(
    room: Room,
    computing: Job,
    entry_points: Path,
    at_home: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = computing.detail["alias"]
    install(name)
    manager = AsyncKernelManager(kernel_name=f"pai:{name}")
    await manager.start_kernel()
    async with client_of(manager) as client:
        told = await says(client, "import os; x = 1; print(os.environ['PAI_JOB_NAME'], 'PAI_TOKEN' in os.environ)")
        assert told == f"{computing.detail['name']} False\n"
        began = asyncio.Event()
        code = "import time; print('began', flush=True); time.sleep(3600)"
        sleeping = asyncio.create_task(says(client, code, lambda text: began.set()))
        await asyncio.wait_for(began.wait(), JOB_S)
        await asyncio.to_thread(room.kill)
        await asyncio.to_thread(room.start)
        now_at(room, monkeypatch)
        await manager.interrupt_kernel()
        assert await sleeping == "KeyboardInterrupt", "it was interrupted by the next backend"
    first = provisioner_of(manager)
    assert first.remote is not None
    await manager.restart_kernel()
    async with client_of(manager) as client:
        assert await says(client, "print(x)") == "NameError"
        await says(client, "x = 41")
    place, key = first.remote.place, manager.session.key.decode()
    await first.leave()
    later = AsyncKernelManager(kernel_name=f"pai:{name}")
    spec = KernelSpecManager().get_kernel_spec(f"pai:{name}")
    later.provisioner = second = JobProvisioner(job=name, kernel_spec=spec, kernel_id="later", parent=later)
    later.load_connection_info(await second.attach(place, key))
    async with client_of(later) as client:
        assert await says(client, "print(x + 1)") == "42\n", "another process has taken it over"
        if not room.local or holds_memory():
            client.execute("held = bytearray(1 << 30)")
            async with asyncio.timeout(JOB_S):
                while await later.is_alive():  # noqa: ASYNC110  # a manager does not tell
                    await asyncio.sleep(0.05)
            assert second.remote is not None
            # Where cgroup v2 ends all of a container at once, the job has ended, too.
            assert "memory" in second.remote.died + second.remote.reason, second.description()
    await later.shutdown_kernel()


def holds_memory() -> bool:
    """Whether the local engine can hold tasks to their memory on this machine."""
    return "memory" not in control_groups().reasons


SERVED = VSCODE.format(python="/usr/bin/env python3", pid="pid")


@submitted(commands(f"cat >code-server <<'PROGRAM'\n{SERVED}PROGRAM", "chmod +x code-server", "pwd", "exec sleep 1000"))
async def test_vs_code_is_served_at_an_address_of_the_job(job: Job, at_home: None) -> None:
    await asyncio.to_thread(job.until_said, "\n")
    there = job.log().strip()
    words = (job.detail["alias"], "--program", f"{there}/code-server", "--directory", there)
    told = json.loads(web(*words).stdout)
    url = httpx.URL(told["url"])  # browsers find names below localhost by themselves
    headers = {"Host": url.netloc.decode()}
    async with httpx.AsyncClient(follow_redirects=True, timeout=JOB_S, headers=headers) as browser:
        given, kept, _, directory = (await browser.get(url.copy_with(host="127.0.0.1"))).json()
    ((text, mode),) = kept.values()
    assert (directory, mode, told["password"] in text, given[0]) == (there, 0o600, True, "--config")
    assert json.loads(web(*words).stdout)["password"] == told["password"], "it runs once"
