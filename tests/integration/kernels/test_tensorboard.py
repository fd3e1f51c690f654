"""``pai tensorboard``: a program in a task at a local port, which ends with the command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil

from jupyter_pai.sync import Client
from tests.support.ssh_people import runs, submitted

LIMIT_S = 120.0
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 500, "gpuNumber": 0, "command": "exec sleep 3600"}
PLAYED = """\
#!{python}
import http.server, os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
open({pid!r}, "w").write(str(os.getpid()))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(options["--logdir"].encode())
http.server.HTTPServer((options["--host"], int(options["--port"])), Answer).serve_forever()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def pai(*words: str) -> list[str]:
    return [sys.executable, "-m", "jupyter_pai.cli", "tensorboard", *words]


def test_it_answers_at_a_local_port_and_ends_with_the_command(alice: Client, tmp_path: Path) -> None:
    pid, program, port = tmp_path / "pid", tmp_path / "tensorboard", free_port()
    program.write_text(PLAYED.format(python=sys.executable, pid=str(pid)))
    program.chmod(0o755)
    runs(alice, submitted(alice, "boarded", [ROLE]))
    words = pai("boarded", "--program", str(program), "--logdir", "the logs", "--port", str(port))
    deadline = time.monotonic() + LIMIT_S
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        try:
            while True:
                try:
                    assert httpx.get(f"http://127.0.0.1:{port}/", timeout=LIMIT_S).text == "the logs"
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline
                    assert running.poll() is None
                    time.sleep(0.1)
        finally:
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=LIMIT_S)[0]
    assert f"http://127.0.0.1:{port}/" in said
    assert running.returncode == 0
    while psutil.pid_exists(int(pid.read_text())):
        assert time.monotonic() < deadline, "it goes on in the task"
        time.sleep(0.1)


def test_a_task_without_it_and_a_job_that_has_ended_say_what_to_do(alice: Client) -> None:
    job = submitted(alice, "boardless", [ROLE])
    runs(alice, job)
    lacking = subprocess.run(
        pai("boardless", "--program", "no-such-board", "--port", str(free_port())),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
    )
    assert lacking.returncode == 2
    assert "The task has no program no-such-board." in lacking.stderr
    assert "pip install tensorboard" in lacking.stderr
    alice.stop(job)
    list(alice.follow_events(job))
    ended = subprocess.run(pai("boardless"), capture_output=True, text=True, timeout=LIMIT_S)
    assert ended.returncode == 2
    assert "has ended (STOPPED)" in ended.stderr
    assert f"Output/alice/{job}" in ended.stderr
