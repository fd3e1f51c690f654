"""``pai debug``: a real client of debugpy stops at a breakpoint in a task, over the configuration that is printed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_pai.sync import Client
from tests.support.ssh_people import runs, submitted

LIMIT_S = 120.0
PROGRAM = "def area(width, height):\n    result = width * height\n    return result\n\n\nprint(area(6, 7))\n"


def role(command: str) -> dict[str, object]:
    return {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1000, "gpuNumber": 0, "command": command}


class Debugger:
    """A client of the Debug Adapter Protocol."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._number = 0

    def send(self, command: str, arguments: object = None) -> None:
        self._number += 1
        message = {"seq": self._number, "type": "request", "command": command, "arguments": arguments or {}}
        body = json.dumps(message).encode()
        self._connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message for which it holds. Fails on an answer that is a failure."""
        while True:
            length = 0
            while (line := self._file.readline()) != b"\r\n":
                assert line, "the debugger's connection ended"
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            message: dict[str, Any] = json.loads(self._file.read(length))
            assert message.get("success", True), message
            if holds(message):
                return message

    def answer(self, command: str) -> dict[str, Any]:
        return self.until(lambda message: message["type"] == "response" and message["command"] == command)

    def event(self, name: str) -> dict[str, Any]:
        return self.until(lambda message: message["type"] == "event" and message["event"] == name)


def connected(port: int) -> tuple[Debugger, socket.socket]:
    """A debugger whose first question debugpy has answered: the task may not listen yet."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
            found = Debugger(connection)
            found.send("initialize", {"adapterID": "debugpy", "linesStartAt1": True, "pathFormat": "path"})
            found.answer("initialize")
            return found, connection
        except (OSError, AssertionError):
            assert time.monotonic() < deadline, "debugpy is not reached"
            time.sleep(0.1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def placed(tmp_path: Path, program: str) -> Iterator[tuple[Path, Path]]:
    """Two folders with the same program: here, and in the task."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        (place / "area.py").write_text(program)
    there.chmod(0o755)
    yield here, there


def stop_at_breakpoint(debugger: Debugger, launch: object, source: Path) -> int:
    """Attach, and stop where a result is known. Returns the thread's number."""
    debugger.send("attach", launch)
    debugger.event("initialized")
    breakpoints = {"source": {"path": str(source)}, "breakpoints": [{"line": 3}]}
    debugger.send("setBreakpoints", breakpoints)
    assert debugger.answer("setBreakpoints")["body"]["breakpoints"][0]["verified"]
    debugger.send("configurationDone")
    stopped = debugger.event("stopped")["body"]
    assert stopped["reason"] == "breakpoint"
    debugger.send("stackTrace", {"threadId": stopped["threadId"]})
    frame = debugger.answer("stackTrace")["body"]["stackFrames"][0]
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("area", 3, str(source))
    debugger.send("evaluate", {"expression": "result", "frameId": frame["id"], "context": "watch"})
    assert debugger.answer("evaluate")["body"]["result"] == "42"
    return int(stopped["threadId"])


@contextmanager
def leading(*words: str) -> Iterator[list[str]]:
    """``pai debug`` until the end of the block; then the list has all that it said."""
    said: list[str] = []
    pai = [sys.executable, "-m", "jupyter_pai.cli", "debug", *words]
    with subprocess.Popen(pai, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as forwarding:
        try:
            yield said
        finally:
            forwarding.send_signal(signal.SIGINT)
            said += forwarding.communicate(timeout=LIMIT_S)
    assert forwarding.returncode == 0


def test_a_breakpoint_in_a_task_is_hit_over_the_printed_configuration(alice: Client, tmp_path: Path) -> None:
    port, local = free_port(), free_port()
    with placed(tmp_path, PROGRAM) as (here, there):
        python = shlex.quote(sys.executable)
        listen = f"-Xfrozen_modules=off -m debugpy --listen 127.0.0.1:{port} --wait-for-client area.py"
        uid = submitted(alice, "debugged", [role(f"cd {there} && exec {python} {listen}")])
        runs(alice, uid)
        words = ["debugged", "--port", str(port), "--local-port", str(local), "--local-root", str(here)]
        words += ["--remote-root", str(there)]
        pai = [sys.executable, "-m", "jupyter_pai.cli", "debug", *words, "--write", "--json"]
        told = subprocess.run(pai, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        written = json.loads((here / ".vscode" / "launch.json").read_text())
        (launch,) = written["configurations"]
        assert json.loads(told.stdout)["launch"] == launch
        with leading(*words) as said:
            debugger, connection = connected(launch["connect"]["port"])
            with connection:
                thread = stop_at_breakpoint(debugger, launch, here / "area.py")
                debugger.send("continue", {"threadId": thread})
                debugger.event("terminated")
    assert f"Connection target  tcp://localhost:{local}" in said[0]
    assert "Attach to DAP" in said[0]


LOOP = """\
def area(width, height):
    result = width * height
    return result


import subprocess, sys, time
subprocess.run([sys.executable, "-c", ""], check=True)
while not sys.flags.interactive:
    area(6, 7)
    time.sleep(0.05)
"""


@pytest.mark.attack(40, "another user of the machine runs code in a task by its debugger's port")
def test_a_document_has_its_programs_debugged_and_no_port_of_theirs_takes_a_debugger(
    alice: Client, tmp_path: Path
) -> None:
    local = free_port()
    with placed(tmp_path, LOOP) as (here, there):
        command = f"python3 -c 'print(\"first\")'; cd {there} && python3 area.py"
        uid = submitted(alice, "debuggable", [role(command)], debug=True)
        runs(alice, uid)
        words = ("debuggable", "--local-port", str(local), "--local-root", str(here), "--remote-root", str(there))
        pai = [sys.executable, "-m", "jupyter_pai.cli", "debug", *words, "--json"]
        told = json.loads(subprocess.run(pai, capture_output=True, timeout=LIMIT_S, check=True).stdout)
        deadline = time.monotonic() + LIMIT_S
        while (log := alice.log(uid).data).count(b"waits for debuggers: pai debug") < 2:  # the first one has ended
            assert time.monotonic() < deadline, log
            time.sleep(0.1)
        with leading(*words) as said:
            # Twice: who detaches may attach again.
            for _ in range(2):
                debugger, connection = connected(local)
                with connection:
                    stop_at_breakpoint(debugger, told["launch"], here / "area.py")
                    debugger.send("disconnect")
                    debugger.answer("disconnect")
            of_task = [process for process in psutil.process_iter() if mark(process).startswith(uid)]
            listening = {each.laddr.port for process in of_task for each in listeners(process)}
            assert listening, "the adapter has a port for the programs that it debugs"
            for port in listening:
                assert not is_debugger(port)
    alice.stop(uid)
    assert "debugpy listens in the first Python program that runs" in said[0]


def mark(process: psutil.Process) -> str:
    """The uid of the task that a process belongs to; empty when it is of none, or has ended."""
    with suppress(psutil.Error):
        return process.environ().get("PAI_TASK_UID", "")
    return ""


def listeners(process: psutil.Process) -> list[Any]:
    with suppress(psutil.Error):
        return [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    return []


def is_debugger(port: int) -> bool:
    """Whether what listens at a port answers a debugger."""
    with suppress(OSError, AssertionError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        debugger = Debugger(connection)
        debugger.send("initialize", {"adapterID": "debugpy", "pathFormat": "path"})
        debugger.answer("initialize")
        debugger.send("attach", {"connect": {"host": "127.0.0.1", "port": port}})
        debugger.event("initialized")
        return True
    return False


@pytest.mark.parametrize(("words", "says"), [(["--port", "0"], "0 is not a port"), (["--write"], "is left as it is")])
def test_what_cannot_be_is_refused(alice: Client, tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "launch.json").write_text("{}")
    name = f"refused-{words[0].strip('-')}"
    runs(alice, submitted(alice, name, [role("sleep 600")]))
    pai = [sys.executable, "-m", "jupyter_pai.cli", "debug", name, "--local-root", str(tmp_path), *words]
    done = subprocess.run(pai, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert (tmp_path / ".vscode" / "launch.json").read_text() == "{}"
