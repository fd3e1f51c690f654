"""Persistent terminals: the programs that hold them, by their frames. Every program has to pass the same tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pai_backend.engine.local import processes
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.terminals import boot_file
from tests.integration.engine.conftest import MakePlan
from tests.integration.engine.test_agent_ssh import Client, client, served, start_agent
from tests.support.backend_process import until
from tests.support.local_engine import LocalBehind
from tests.support.terminal_client import OWNER, PATIENCE_S, TerminalClient, requesting

__all__ = ["client"]  # fixtures

SCROLLBACK_BYTES = 1 << 20
BASH = shutil.which("bash") or "/bin/bash"
# Bash's own traps wait for the next key when the signal comes just before it reads.
TELL_SIZES = (
    f"{sys.executable} -c 'import os, signal; of = {{signal.SIGWINCH}}; signal.pthread_sigmask(signal.SIG_BLOCK, of);"
    """ print("re" + "ady", flush=True); sizes = iter(lambda: signal.sigwait(of) and os.get_terminal_size(), None);"""
    """ [print("now", size.lines, size.columns, flush=True) for size in sizes]'\n"""
)
Ask = Callable[..., AbstractContextManager[TerminalClient]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory whose name is longer than the address of a socket may be."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    return folder


@pytest.fixture
def program() -> list[str | Path]:
    """The program that serves terminals."""
    return [sys.executable, "-I", "-S", boot_file()]


@pytest.fixture
def ask(program: list[str | Path], place: Path) -> Iterator[Ask]:
    """Sends a request to the program; ends all sessions with the test."""
    command = [*map(str, program), str(place / "terminals"), BASH, "--norc"]
    env = {"PATH": os.environ["PATH"], "PS1": "> ", "SSH_AUTH_SOCK": "/nowhere", "OF_TASK": "yes"}
    (place / "work").mkdir()

    def requested(do: str = "attach", name: str = "one", **more: object) -> AbstractContextManager[TerminalClient]:
        return requesting(command, cwd=place / "work", env=env, do=do, name=name, **more)

    yield requested
    for owner in {path.name for path in (place / "terminals").glob("*")}:
        with requested("list", owner=owner) as client:
            names = [session["name"] for session in client.answer(b"L")]
        for name in names:
            with requested("end", name, owner=owner) as client:
                client.answer(b"L")


def sockets(place: Path, owner: str = OWNER) -> list[str]:
    return [path.name for path in (place / "terminals" / owner).iterdir() if path.is_socket()]


def test_a_shell_outlives_its_connection_and_its_output_is_replayed(ask: Ask) -> None:
    with ask() as first:
        assert first.next() == (b"R", b"")
        first.type("kept=here; echo pid=$$ size=$(stty size) of=$OF_TASK agent=${SSH_AUTH_SOCK-none} $TERM\n")
        first.until(b"size=24 80 of=yes agent=none xterm-256color\r\n")
        pid = first.number("pid")
        first.type("(sleep 0.2; echo while nobody ''looked) &\n")
        first.until(b"nobody ''looked")
    with ask(rows=40, cols=132, term="vt100") as second:
        kind, replay = second.next() or (b"", b"")
        assert (kind, b"pid=" in replay) == (b"R", True)
        second.until(b"while nobody looked")
        second.type("echo $kept $$ $TERM $(stty size)\n")
        second.until(f"here {pid} xterm-256color 40 132\r\n".encode())
        second.type("pwd; test -t 0 && tty | grep -c pts; test $(tty) = $SSH_TTY && echo its own ''tty\n")
        second.until(b"its own tty")
        second.type("for each in /proc/$$/fd/*; do echo fd=${each##*/}; done; echo do''ne\n")
        second.until(b"done\r\n")
        assert {int(number) for number in re.findall(rb"fd=(\d+)\r", second.screen)} == {0, 1, 2, 3, 255}, (
            "3 is that of the listing itself"
        )
        assert b"/work\r\n" in second.screen


def test_the_client_that_resized_last_decides_the_size(ask: Ask) -> None:
    with ask() as one, ask(rows=30, cols=100) as two:
        two.type(TELL_SIZES)
        two.until(b"ready\r\n")
        one.resize(50, 190)
        two.until(b"now 50 190\r\n")
        one.until(b"now 50 190\r\n")
        two.resize(20, 60)
        one.until(b"now 20 60\r\n")


def test_an_attach_at_the_same_size_has_full_screen_programs_repaint(ask: Ask) -> None:
    with ask() as one:
        one.type(TELL_SIZES)
        one.until(b"ready\r\n")
    with ask() as two:
        two.until(b"now 24 80\r\n")


@pytest.mark.parametrize(("end", "told"), [("exit 3", {"code": 3}), ("kill -9 $$", {"signal": 9})])
def test_the_end_is_told_with_all_output_before_it(ask: Ask, place: Path, end: str, told: dict[str, int]) -> None:
    with ask() as client:
        client.type(f"head -c 3000000 /dev/zero | tr '\\0' x; echo las''t; {end}\n")
        assert client.answer(b"X") == told
        assert b"last\r\n" in client.screen
        assert sum(len(content) for kind, content in client.frames if kind == b"O") > 3_000_000
        assert client.next() is None
    until(lambda: sockets(place) == [], PATIENCE_S)


def test_an_end_that_nobody_saw_is_told_to_the_next_client_once(ask: Ask, place: Path) -> None:
    with ask() as client:
        client.type("echo before; sleep 0.3; exit 5\n")
        client.until(b"before\r\n")
    until(lambda: _ended(ask) == {"code": 5}, PATIENCE_S)
    with ask() as client:
        assert client.answer(b"X") == {"code": 5}
        assert b"before\r\n" in client.screen
    until(lambda: sockets(place) == [], PATIENCE_S)
    with ask(start=False) as client:
        assert client.answer(b"E")["error"] == "gone"


def _ended(ask: Ask) -> object:
    with ask("list") as client:
        return client.answer(b"L")[0]["ended"]


def test_a_job_that_keeps_the_terminal_open_does_not_keep_the_session(ask: Ask) -> None:
    with ask() as client:
        client.type("trap '' HUP; (trap '' HUP; exec sleep 600) & echo pid=$!.; exit 0\n")
        assert client.answer(b"X") == {"code": 0}
        os.kill(client.number("pid"), signal.SIGKILL)


def test_sessions_are_listed_and_ended_and_those_of_another_user_are_apart(ask: Ask, place: Path) -> None:
    with ask(name="a") as one, ask(name="b") as two, ask(name="a", owner="feedbeef") as other:
        for client in (one, two, other):
            client.until(b"> ")
        with ask("list") as listing:
            said = listing.answer(b"L")
        assert [(each["name"], each["clients"], each["ended"]) for each in said] == [("a", 1, None), ("b", 1, None)]
        assert all(abs(each["since"] - os.stat(place).st_ctime) < 3600 for each in said)
        two.type("trap '' HUP; echo re''ady\n")
        two.until(b"ready\r\n")
        with ask("end", "b") as ending:
            assert ending.answer(b"L") == []
        assert two.answer(b"X") == {"signal": 9}
        with ask("list") as listing:
            assert [each["name"] for each in listing.answer(b"L")] == ["a"]
        other.type("echo still ''here\n")
        other.until(b"still here")
    with ask("end", "nothing") as ending:
        assert ending.answer(b"E")["error"] == "gone"


@pytest.mark.parametrize(
    "request_",
    [
        {"name": "../x"}, {"name": ".lock"}, {"name": "a/b"}, {"name": "a" * 33}, {"name": ""}, {"name": "a\n"},
        {"owner": "../../etc"}, {"owner": ""}, {"owner": "ABCDEF012"}, {"do": "open"}, {"rows": "x"}, {"rows": 1e400},
        {"term": "a\0b"}, {"cols": None},
    ],
)  # fmt: skip
def test_what_names_no_session_is_refused(ask: Ask, place: Path, request_: dict[str, object]) -> None:
    with ask(**request_) as client:
        assert client.answer(b"E")["error"] == "invalid"
    assert not (place / "terminals").exists()


@pytest.mark.parametrize(
    "sent", [b"", b"H\0\0", b"GET / HTTP/1.1\r\n\r\n", b"H\xff\xff\xff\xff", b"I\0\0\0\1x", b"H\0\0\0\1["]
)
def test_what_is_no_request_is_refused(program: list[str | Path], place: Path, sent: bytes) -> None:
    client = TerminalClient([*map(str, program), str(place / "terminals"), BASH], cwd=place)
    assert client.process.stdin is not None
    client.process.stdin.write(sent)
    client.process.stdin.close()
    assert client.answer(b"E")["error"] == "invalid"
    client.close()


def test_a_client_that_sends_no_frames_is_dropped_and_the_others_stay(ask: Ask) -> None:
    with ask() as good, ask() as bad:
        bad.until(b"")
        bad.send(b"Z", b"unknown kinds are ignored")
        bad.send(b"S", b"not four bytes")
        os.write(bad._to, b"I\xff\xff\xff\xffendless")
        while bad.next() is not None:
            pass
        good.type("echo sti''ll\n")
        good.until(b"still")


def test_scrollback_is_bounded_and_begins_with_a_line(ask: Ask) -> None:
    with ask() as client:
        client.type("seq 1000000; echo do''ne\n")
        client.until(b"done\r\n")
    with ask() as again:
        kind, replay = again.next() or (b"", b"")
        assert kind == b"R"
        assert SCROLLBACK_BYTES - 40_000 < len(replay) < SCROLLBACK_BYTES + 300_000
        lines = replay.split(b"\r\n")
        assert int(lines[1]) == int(lines[0]) + 1
        again.until(b"done\r\n")


def test_a_client_that_takes_nothing_does_not_stop_the_shell_and_is_sent_all_again(ask: Ask) -> None:
    with ask() as deaf, ask() as good:
        good.type("seq 400000; echo do''ne\n")
        good.until(b"done\r\n")
        deaf.until(b"done\r\n")
        assert [kind for kind, _ in deaf.frames].count(b"R") > 1, "it was so far behind that it got a replay"


def test_two_that_start_the_same_session_at_once_get_the_same_shell(ask: Ask) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ask()) for _ in range(8)]
        clients[0].until(b"> ")
        clients[0].type("echo pid=$$.\n")
        assert len({client.number("pid") for client in clients}) == 1


def test_a_dead_holder_leaves_a_name_that_can_be_used(ask: Ask, place: Path) -> None:
    folder = place / "terminals" / OWNER
    with ask(name="other") as client:
        client.until(b"> ")
    left = socket.socket(socket.AF_UNIX)
    home = os.getcwd()
    os.chdir(folder)
    left.bind("one")
    os.chdir(home)
    left.close()
    with ask("list") as listing:
        assert [each["name"] for each in listing.answer(b"L")] == ["other"]
    with ask(start=False) as client:
        assert client.answer(b"E")["error"] == "gone"
    with ask() as client:
        client.until(b"> ")


def test_a_folder_that_others_may_read_is_not_used(ask: Ask, place: Path) -> None:
    (place / "terminals").mkdir(mode=0o755)
    with ask() as client:
        assert client.answer(b"E")["error"] == "unsafe"
    (place / "terminals").rmdir()
    (place / "terminals").symlink_to(place / "work")
    with ask() as client:
        assert client.answer(b"E")["error"] == "unsafe"


def test_there_is_a_most_of_sessions_and_of_clients(ask: Ask) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ask()) for _ in range(17)]
        ends = [client for client in clients if (client.next() or (b"", b""))[0] == b"E"]
        assert len(ends) == 1
    for number in range(31):
        with ask(name=f"n{number}") as client:
            client.until(b"> ")
    with ask(name="last") as client:
        assert client.answer(b"E")["error"] == "full"


def test_input_that_nothing_reads_waits_and_an_interrupt_ends_what_does_not_end(ask: Ask) -> None:
    with ask() as client:
        client.until(b"> ")
        client.type("yes\n")
        client.until(b"y\r\ny\r\n")
        client.type("\x03")
        client.type("echo o''ver\n")
        client.until(b"over\r\n")


@pytest.mark.asyncio
async def test_a_terminal_of_a_task_outlives_the_agent_and_ends_with_the_task(
    root: Path, engine: LocalEngine, client: Client, make_plan: MakePlan, behind: LocalBehind
) -> None:
    command = client.command("pai-terminal", options=("-T", "-s"))
    plan = make_plan("sleep 1000", ssh=client.plan)
    first_agent = start_agent(root)
    await engine.start(plan)
    await served(client.port)
    with requesting(command, do="attach", name="one") as first:
        first.type("kept=here; echo pid=$$; pwd; echo uid=$PAI_TASK_UID\n")
        pid = await asyncio.to_thread(first.number, "pid")
        await asyncio.to_thread(first.until, f"/tasks/{plan.uid}/work\r\nuid={plan.uid}\r\n".encode())
        first_agent.kill()
        first_agent.wait(PATIENCE_S)
        assert await asyncio.to_thread(ending, first) is None
    second_agent = start_agent(root)
    try:
        await served(client.port)
        with requesting(command, do="attach", name="one", start=False) as second:
            second.type("echo $kept $$\n")
            await asyncio.to_thread(second.until, f"here {pid}\r\n".encode())
            assert pid in {found for found, _ in processes.marked(plan.uid)}
            await engine.stop(plan.uid, 0)
            assert await asyncio.to_thread(ending, second) is None
        until(lambda: not processes.marked(plan.uid), PATIENCE_S)
    finally:
        second_agent.terminate()
        second_agent.wait(PATIENCE_S)


def ending(client: TerminalClient) -> object:
    """How the shell ended; None when the connection broke first."""
    while (found := client.next()) is not None:
        if found[0] == b"X":
            return found
    return None
