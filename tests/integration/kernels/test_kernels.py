"""Kernels in tasks with everything real: OpenSSH, the gateway, tasks of the local engine, ipykernel, nbclient."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill
import psutil
import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from jupyter_pai.kernels.provisioner import JobProvisioner
from jupyter_pai.kernels.remote import KernelFailed
from jupyter_pai.kernels.specs import install
from jupyter_pai.sync import Client
from tests.integration.kernels.conftest import BOB
from tests.support.ssh_people import runs, submitted

ROLE = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 2000, "gpuNumber": 0, "command": "exec sleep 3600"}
LIMIT_S = 120.0


@pytest.fixture
def train(alice: Client, request: pytest.FixtureRequest) -> str:
    """A job that runs, by a name of the test's own."""
    name = "train-" + request.node.name.removeprefix("test_")[:40].replace("_", "-").replace("[", "-").strip("-]")
    runs(alice, submitted(alice, name, [{"name": "main", **ROLE}]))
    return name


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A directory whose name leaves room for those of Unix sockets."""
    with tempfile.TemporaryDirectory(prefix="pk-") as name:
        yield Path(name)


@asynccontextmanager
async def kernel(job: str, python: str = "") -> AsyncIterator[AsyncKernelManager]:
    """A kernel in the job, as programs without a Jupyter server start it."""
    install(job, python)
    manager = AsyncKernelManager(kernel_name=f"pai:{job}")
    await manager.start_kernel()
    try:
        yield manager
    finally:
        await manager.shutdown_kernel(now=True)


@asynccontextmanager
async def client_of(manager: AsyncKernelManager) -> AsyncIterator[AsyncKernelClient]:
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=LIMIT_S)
        yield client
    finally:
        client.stop_channels()


async def says(client: AsyncKernelClient, code: str, seen: Callable[[str], None] = lambda text: None) -> str:
    """What code prints, or the name of what it raises."""
    said: list[str] = []

    def output(message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            said.append(content["text"])
            seen(content["text"])

    reply = await client.execute_interactive(code, output_hook=output, timeout=LIMIT_S, allow_stdin=False)
    return "".join(said) if reply["content"]["status"] == "ok" else str(reply["content"]["ename"])


def provisioner_of(manager: AsyncKernelManager) -> JobProvisioner:
    assert isinstance(manager.provisioner, JobProvisioner)
    return manager.provisioner


def sessions_of(manager: AsyncKernelManager) -> list[psutil.Process]:
    """The ssh programs that carry this kernel."""
    remote = provisioner_of(manager).remote
    assert remote is not None
    local = str(Path(remote.ip).parent)
    found = []
    for process in psutil.Process().children():
        try:
            if any(local in word for word in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110  # processes and files tell nothing
            await asyncio.sleep(0.05)


def test_a_notebook_runs_in_a_job_by_its_name(
    alice: Client, train: str, monkeypatch: pytest.MonkeyPatch, short_tmp: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_tmp))
    install(train)
    notebook = nbformat.v4.new_notebook()
    cells = ["import os; print(os.environ['PAI_JOB_NAME'], 'PAI_TOKEN' in os.environ)", "import ipywidgets; 6 * 7"]
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    NotebookClient(notebook, kernel_name=f"pai:{train}", timeout=LIMIT_S).execute()
    first, second = (cell.outputs for cell in notebook.cells)
    assert first[0]["text"] == f"{train} False\n", "nothing of this process's environment is there"
    assert second[0]["data"]["text/plain"] == "42"
    assert alice.job(train)["state"] == "RUNNING", "the end of the kernel is not the end of the job"
    assert list(short_tmp.iterdir()) == [], "nothing is left here"
    notebook.cells = [
        nbformat.v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("import os; print(os.environ['PAI_JOB_NAME'], 6 * n)"),
    ]
    nbformat.write(notebook, short_tmp / "in.ipynb")
    done = papermill.execute_notebook(
        short_tmp / "in.ipynb", None, {"n": 7}, kernel_name=f"pai:{train}", progress_bar=False
    )
    assert done.cells[-1].outputs[0]["text"] == f"{train} 42\n"


@pytest.mark.asyncio
async def test_interrupt_restart_completion_and_debugger(train: str) -> None:
    async with kernel(train) as manager:
        async with client_of(manager) as client:
            pid = await says(client, "import os; x = 1; print(os.getpid())")
            began = asyncio.Event()
            sleeping = asyncio.create_task(
                says(client, "import time; print('began', flush=True); time.sleep(3600)", lambda text: began.set())
            )
            await asyncio.wait_for(began.wait(), LIMIT_S)
            await manager.interrupt_kernel()
            assert await sleeping == "KeyboardInterrupt"
            completed = await client.complete("os.getp", reply=True, timeout=LIMIT_S)
            assert "getpid" in completed["content"]["matches"]
            request = client.session.msg("debug_request", {"type": "request", "seq": 1, "command": "debugInfo"})
            client.control_channel.send(request)
            answer = await client.get_control_msg(timeout=LIMIT_S)
            assert answer["content"]["command"] == "debugInfo"
            await manager.restart_kernel()
        async with client_of(manager) as client:
            assert await says(client, "print(x)") == "NameError"
            assert await says(client, "import os; print(os.getpid())") != pid


@pytest.mark.asyncio
async def test_nothing_is_lost_when_the_connection_breaks_in_a_running_cell(train: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    async with kernel(train) as manager, client_of(manager) as client:
        broken: set[int] = set()

        def break_it(text: str) -> None:
            for process in sessions_of(manager):
                if process.pid not in broken and len(broken) < 3:
                    broken.add(process.pid)
                    process.kill()
            if len(broken) == 3:  # it was connected again twice, and broke again
                enough.touch()

        cell = f"""
import itertools, os, time
for number in itertools.count():
    print(number, flush=True)
    if number > 1000:
        time.sleep(0.01)
        if os.path.exists({str(enough)!r}):
            break
"""
        said = await says(client, cell, break_it)
        assert said.split() == [str(number) for number in range(len(said.split()))]
        assert len(broken) == 3
        assert await manager.is_alive()
        assert await says(client, "print('on')") == "on\n"


@pytest.mark.asyncio
async def test_another_process_takes_a_kernel_over(train: str) -> None:
    install(train)
    manager = AsyncKernelManager(kernel_name=f"pai:{train}")
    await manager.start_kernel()
    async with client_of(manager) as client:
        await says(client, "x = 41")
    first = provisioner_of(manager)
    assert first.remote is not None
    place, key = first.remote.place, manager.session.key.decode()
    await first.leave()

    spec = KernelSpecManager().get_kernel_spec(f"pai:{train}")
    later = AsyncKernelManager(kernel_name=f"pai:{train}")
    second = JobProvisioner(job=train, kernel_spec=spec, kernel_id="later", parent=later)
    later.provisioner = second
    later.load_connection_info(await second.attach(place, key))
    async with client_of(later) as client:
        assert await says(client, "print(x + 1)") == "42\n"
        holder = int(await says(client, "import os; print(os.getppid())"))
        await later.interrupt_kernel()
    await later.shutdown_kernel()
    await until(lambda: not psutil.pid_exists(holder))
    await until(lambda: not os.path.lexists(place.directory))


@pytest.mark.asyncio
async def test_a_kernel_dies_with_its_job_and_says_so(alice: Client, train: str) -> None:
    async with kernel(train) as manager:
        async with client_of(manager) as client:
            pid = int(await says(client, "import os; print(os.getpid())"))
        alice.stop(train)
        async with asyncio.timeout(LIMIT_S):
            while await manager.is_alive():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with pytest.raises(KernelFailed, match=f"Job {train} has ended"):
            await manager.restart_kernel(now=True)
        await until(lambda: not psutil.pid_exists(pid))
    with pytest.raises(KernelFailed, match=r"has ended \(STOPPED\)"):
        async with kernel(train):
            pass


@pytest.mark.asyncio
async def test_a_kernel_waits_for_its_job_and_says_why(
    alice: Client, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    blocker = submitted(alice, "all-the-gpus", [{"name": "main", **ROLE, "gpuNumber": 4}])
    runs(alice, blocker)
    submitted(alice, "waiting-kernel", [{"name": "main", **ROLE, "gpuNumber": 1}])
    starting = asyncio.create_task(_started("waiting-kernel"))
    await until(lambda: "The kernel waits for job waiting-kernel" in caplog.text or starting.done())
    await asyncio.to_thread(alice.stop, blocker)
    manager = await starting
    async with client_of(manager) as client:
        assert await says(client, "import os; print(os.environ['PAI_JOB_NAME'])") == "waiting-kernel\n"
    await manager.shutdown_kernel()


async def _started(job: str) -> AsyncKernelManager:
    install(job)
    manager = AsyncKernelManager(kernel_name=f"pai:{job}")
    manager.log.propagate = True
    await manager.start_kernel()
    return manager


@pytest.mark.asyncio
async def test_a_task_without_ipykernel_or_python_says_what_is_missing(train: str, tmp_path: Path) -> None:
    await asyncio.to_thread(venv.create, tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(KernelFailed, match=r"has no package ipykernel \(.*/bare/bin/python.*pip install ipykernel"):
        async with kernel(train, bare):
            pass
    with pytest.raises(KernelFailed, match="has no program no-such-python"):
        async with kernel(train, "no-such-python"):
            pass


@pytest.mark.asyncio
async def test_the_job_of_another_user_has_no_kernels(train: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_TOKEN", BOB)
    with pytest.raises(KernelFailed, match="There is no job"):
        async with kernel(train):
            pass


def test_the_verb_writes_a_spec_that_jupyter_client_finds(alice: Client, train: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jupyter_pai.cli", "kernel", "install", train, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kernelName"] == f"pai:{train}"
    found = KernelSpecManager().get_kernel_spec(f"pai:{train}")
    assert found.display_name == f"Python on {train}"
    command[5] = "no-such-job"
    refused = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=dict(os.environ))
    assert refused.returncode == 2


@pytest.mark.asyncio
async def test_a_job_is_idle_when_its_kernel_is_however_long_a_silent_cell_computes(
    alice: Client, tmp_path: Path
) -> None:
    document = {
        "jobName": "idle-kernel",
        "image": "none",
        "taskRoles": [{"name": "main", **ROLE}],
        "extras": {"idleTimeout": "10s"},
    }
    uid = (await asyncio.to_thread(alice.submit, json.dumps(document).encode()))["uid"]
    await asyncio.to_thread(runs, alice, uid)
    async with kernel("idle-kernel") as manager, client_of(manager) as client:
        await says(client, "import os, time")
        client.hb_channel.stop()  # it is a program's that watches a kernel all the time: a Jupyter server has none
        silent = asyncio.create_task(
            says(client, f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(.1)")
        )
        seen: set[str] = set()
        while len(seen) < 4:  # uses that were written down while nothing was typed or printed
            idle = (await asyncio.to_thread(alice.job, uid))["idle"]
            if idle is not None and idle["usedBy"] == "ssh" and idle["since"] is not None:
                seen.add(idle["since"])
            assert not silent.done()
            await asyncio.sleep(0.2)
        (tmp_path / "go").touch()
        assert await silent == ""
        await until(lambda: alice.job(uid)["state"] == "STOPPED")
