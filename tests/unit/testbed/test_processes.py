"""Processes of a cluster are found again by their notes, and never taken for others."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.kubernetes.cluster import processes
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.processes import Daemon

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(sys.platform != "linux", reason="clusters need Linux")]

FIRST_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").is_dir()


async def test_what_was_killed_is_gone_and_its_log_stays(tmp_path: Path) -> None:
    part = Daemon(tmp_path, "part")
    part.start(["sh", "-c", "echo begun; exec sleep 600"], tmp_path)
    pid = part.pid
    assert pid is not None
    assert exists(pid)
    await part.kill(signal.SIGTERM)
    assert part.pid is None
    assert not exists(pid)
    await part.kill()  # once more is nothing
    assert part.tail().startswith("# sh -c")


async def test_another_process_finds_it_by_its_note(tmp_path: Path) -> None:
    part = Daemon(tmp_path, "part")
    part.start(["sleep", "600"], tmp_path)
    try:
        assert Daemon(tmp_path, "part").pid == part.pid
        assert processes.running(tmp_path)
    finally:
        processes.kill_all(tmp_path.parent)
    await part.kill()
    assert not processes.running(tmp_path)


async def test_a_note_of_an_earlier_process_with_the_same_id_is_not_believed(tmp_path: Path) -> None:
    part = Daemon(tmp_path, "part")
    part.start(["sleep", "600"], tmp_path)
    note = tmp_path / "part.process"
    pid, boot, born = note.read_text().split()
    note.write_text(f"{pid} {boot} {int(born) - 1}\n")
    assert Daemon(tmp_path, "part").pid is None
    processes.kill_all(tmp_path)
    note.write_text(f"{pid} {boot} {born}\n")
    assert Daemon(tmp_path, "part").pid == int(pid)
    await part.kill()


async def test_what_ended_by_itself_does_not_run(tmp_path: Path) -> None:
    part = Daemon(tmp_path, "part")
    part.start(["true"], tmp_path)
    await part.kill()
    assert part.pid is None


async def test_what_has_threads_is_not_gone_when_its_first_has_ended(tmp_path: Path) -> None:
    part = Daemon(tmp_path, "part")
    part.start([sys.executable, "-c", FIRST_THREAD_ENDS], tmp_path)
    pid = part.pid
    assert pid is not None

    async def first_thread_has_ended() -> bool:
        text = await asyncio.to_thread(Path(f"/proc/{pid}/stat").read_text)
        return text.rpartition(")")[2].split()[0] == "Z"

    try:
        await until(first_thread_has_ended, "the end of the first thread", 20, 0.02)
        assert part.pid == pid
    finally:
        await part.kill()
    assert part.pid is None
