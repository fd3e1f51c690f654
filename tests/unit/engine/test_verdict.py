"""How the end of a command is judged: by what was seen, and no further."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from pai_backend.engine.local.shim.command import Launch
from pai_backend.engine.local.shim.supervise import ProgramEnd, judge, taken_port
from pai_backend.testing.free_ports import free_port

FULL = OSError(errno.ENOSPC, "No space left on device")
GONE = OSError(errno.ENOENT, "No such file or directory")
BROKEN = OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("end", "reason", "causer", "words"),
    [
        (ProgramEnd(0), "exited", "user", "exited with status 0"),
        (ProgramEnd(7), "exited", "user", "exited with status 7"),
        (ProgramEnd(127), "exited", "user", "exited with status 127"),
        (ProgramEnd(-11), "signalled", "user", "ended by signal 11 (SIGSEGV)"),
        (ProgramEnd(-64), "signalled", "user", "ended by signal 64"),
        (ProgramEnd(-9), "signalled", "user", "ended by signal 9 (SIGKILL)"),
        (ProgramEnd(-9, oom_kills=1), "out-of-memory", "user", "for lack of memory"),
        (ProgramEnd(137, oom_kills=1), "out-of-memory", "user", "exited with status 137 while the kernel killed"),
        (ProgramEnd(1, oom_kills=1), "exited", "user", "exited with status 1"),
        (ProgramEnd(-9, stopped=True, oom_kills=1), "stopped", "user", "stopped on request; ended by signal 9"),
        (ProgramEnd(0, stopped=True), "stopped", "user", "stopped on request; exited with status 0"),
        (ProgramEnd(-15, capture_error=FULL), "disk-full", "resource", "make room"),
        (ProgramEnd(-15, capture_error=GONE), "vanished", "platform", "removed"),
        (ProgramEnd(-15, capture_error=BROKEN), "lost", "platform", "Input/output error"),
        (ProgramEnd(3, survivors=2), "exited", "user", "2 of its processes could not be killed"),
    ],
)
def test_ends_and_their_verdicts(end: ProgramEnd, reason: str, causer: str, words: str) -> None:
    found, message, charged = judge(end, Launch("j0-0-0-0", 1000, "true", {}))
    assert (found, charged) == (reason, causer)
    assert words in message


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_failure_while_another_program_has_its_port_is_a_conflict(taken: int) -> None:
    launch = Launch("j0-0-0-0", 1000, "true", {}, ports={"http": (taken,)})
    reason, message, causer = judge(ProgramEnd(1), launch)
    assert (reason, causer) == ("port-conflict", "platform")
    assert message == f"exited with status 1; another program listens on its port {taken} (http)"


@pytest.mark.parametrize(
    "end",
    [ProgramEnd(0), ProgramEnd(1, stopped=True), ProgramEnd(1, survivors=1), ProgramEnd(1, visited=True)],
    ids=lambda end: end.how,
)
def test_no_conflict_is_claimed_that_is_not_proven(taken: int, end: ProgramEnd) -> None:
    """A survivor, or what somebody started by SSH, may be who listens."""
    reason, _, _ = judge(end, Launch("j0-0-0-0", 1000, "true", {}, ports={"http": (taken,)}))
    assert reason != "port-conflict"


def test_a_port_whose_connections_have_just_ended_is_not_taken() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()
        assert taken_port({"a": (port,)}) == f"port {port} (a)"
    assert taken_port({"a": (port,)}) == ""
