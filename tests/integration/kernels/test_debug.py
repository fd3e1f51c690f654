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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai.sync import Client
from tests.support.ssh_people import runs, submitted

LIMIT_S = 120.0
PROGRAM = "def area(width, height):\n    result = width * height\n    return result\n\n\nprint(area(6, 7))\n"


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


def test_a_breakpoint_in_a_task_is_hit_over_the_printed_configuration(alice: Client, tmp_path: Path) -> None:
    here, there, port, local = tmp_path / "here", tmp_path / "there", free_port(), free_port()
    for place in (here, there):
        place.mkdir()
        (place / "area.py").write_text(PROGRAM)
    there.chmod(0o755)
    python = shlex.quote(sys.executable)
    listen = f"-Xfrozen_modules=off -m debugpy --listen 127.0.0.1:{port} --wait-for-client area.py"
    command = f"cd {there} && exec {python} {listen}"
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1000, "gpuNumber": 0, "command": command}
    uid = submitted(alice, "debugged", [role])
    runs(alice, uid)
    words = ["debug", "debugged", "--port", str(port), "--local-port", str(local), "--local-root", str(here)]
    pai = [sys.executable, "-m", "jupyter_pai.cli", *words, "--remote-root", str(there)]
    told = subprocess.run([*pai, "--write", "--json"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    written = json.loads((here / ".vscode" / "launch.json").read_text())
    (launch,) = written["configurations"]
    assert json.loads(told.stdout)["launch"] == launch
    with subprocess.Popen(pai, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as forwarding:
        try:
            debugger, connection = connected(launch["connect"]["port"])
            with connection:
                debugger.send("attach", launch)
                debugger.event("initialized")
                source = {"path": str(here / "area.py")}
                debugger.send("setBreakpoints", {"source": source, "breakpoints": [{"line": 3}]})
                assert debugger.answer("setBreakpoints")["body"]["breakpoints"][0]["verified"]
                debugger.send("configurationDone")
                stopped = debugger.event("stopped")["body"]
                assert stopped["reason"] == "breakpoint"
                debugger.send("stackTrace", {"threadId": stopped["threadId"]})
                frame = debugger.answer("stackTrace")["body"]["stackFrames"][0]
                assert (frame["name"], frame["line"], frame["source"]["path"]) == ("area", 3, str(here / "area.py"))
                debugger.send("evaluate", {"expression": "result", "frameId": frame["id"], "context": "watch"})
                assert debugger.answer("evaluate")["body"]["result"] == "42"
                debugger.send("continue", {"threadId": stopped["threadId"]})
                debugger.event("terminated")
        finally:
            forwarding.send_signal(signal.SIGINT)
            said = forwarding.communicate(timeout=LIMIT_S)[0]
    assert f"Connection target  tcp://localhost:{local}" in said
    assert "Attach to DAP" in said
    assert forwarding.returncode == 0


@pytest.mark.parametrize(("words", "says"), [(["--port", "0"], "0 is not a port"), (["--write"], "is left as it is")])
def test_what_cannot_be_is_refused(alice: Client, tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "launch.json").write_text("{}")
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "sleep 600"}
    name = f"refused-{words[0].strip('-')}"
    runs(alice, submitted(alice, name, [role]))
    pai = [sys.executable, "-m", "jupyter_pai.cli", "debug", name, "--local-root", str(tmp_path), *words]
    done = subprocess.run(pai, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert (tmp_path / ".vscode" / "launch.json").read_text() == "{}"
