"""``pai tensorboard`` and ``pai code``: a program in a task at a local port, which ends with the command."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil

from jupyter_pai.sync import Client
from tests.support import event_file
from tests.support.ssh_people import runs, submitted

LIMIT_S = 120.0
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 500, "gpuNumber": 0, "command": "exec sleep 3600"}
VSCODE = """\
#!{python}
import http.server, json, os, re, sys
open({pid!r}, "w").write(str(os.getpid()))
kept = {{path: (open(path).read(), os.stat(path).st_mode & 0o777) for path in sys.argv[1:] if os.path.isfile(path)}}
ports = [*re.findall("bind-addr: .*:(.*)", str([*kept.values()]).replace(chr(92) + "n", chr(10))), *sys.argv]
port = ports[0] if ports[0].isdigit() else sys.argv[sys.argv.index("--port") + 1]
said = json.dumps([sys.argv[1:], kept, dict(os.environ), os.getcwd()]).encode()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(said)
server = http.server.HTTPServer(("127.0.0.1", int(port)), Answer)
print("HTTP server listening on", port, flush=True)
server.serve_forever()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def pai(*words: str, verb: str = "tensorboard") -> list[str]:
    return [sys.executable, "-m", "jupyter_pai.cli", verb, *words]


def answered(running: subprocess.Popen[str], port: int, deadline: float) -> str:
    """What is answered at the local port once something is."""
    while True:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/", timeout=LIMIT_S).text
        except httpx.TransportError:
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.1)


def test_it_answers_at_a_local_port_and_ends_with_the_command(alice: Client, tmp_path: Path) -> None:
    program, port = tmp_path / "tensorboard", free_port()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tensorboard.main "$@"\n')
    program.chmod(0o755)
    logs = tmp_path / "the logs"
    event_file.write(str(logs))
    runs(alice, submitted(alice, "boarded", [ROLE]))
    words = pai("boarded", "--program", str(program), "--logdir", str(logs), "--port", str(port))
    deadline = time.monotonic() + LIMIT_S
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        try:
            assert "TensorBoard" in answered(running, port, deadline)
            tags = httpx.get(f"http://127.0.0.1:{port}/data/plugin/scalars/tags", timeout=LIMIT_S).json()
            assert [*tags["."]] == [event_file.TAG]
            board = next(
                each
                for each in psutil.process_iter(["cmdline"])
                if {"tensorboard.main", str(logs)} <= {*(each.info["cmdline"] or [])}
            )
        finally:
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=LIMIT_S)[0]
    assert f"http://127.0.0.1:{port}/" in said
    assert running.returncode == 0
    board.wait(LIMIT_S)


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


def test_vs_code_is_served_with_a_secret_of_its_own_and_ends_with_the_command(alice: Client, tmp_path: Path) -> None:
    job = submitted(alice, "coded", [ROLE])
    runs(alice, job)
    lacking = subprocess.run(pai("coded", verb="code"), capture_output=True, text=True, timeout=LIMIT_S)
    assert lacking.returncode == 2
    assert "The task has no code-server or openvscode-server." in lacking.stderr
    assert "pai connect coded" in lacking.stderr
    for name in ("code-server", "openvscode-server"):
        pid, program, port = tmp_path / f"{name}-pid", tmp_path / name, free_port()
        program.write_text(VSCODE.format(python=sys.executable, pid=str(pid)))
        program.chmod(0o755)
        words = pai("coded", "--program", str(program), "--directory", "/tmp", "--port", str(port), verb="code")
        deadline = time.monotonic() + LIMIT_S
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
            try:
                given, kept, environ, directory = json.loads(answered(running, port, deadline))
            finally:
                running.send_signal(signal.SIGINT)
                said = running.communicate(timeout=LIMIT_S)[0]
        (found,) = re.findall(r"(?:Password: |\?tkn=)([0-9a-f]{48})$", said, re.MULTILINE)
        ((path, (text, mode)),) = kept.items()
        assert (directory, mode, found in text, "/tmp" in given) == ("/tmp", 0o600, True, True)
        assert found not in "".join([*given, *environ.values()]), "neither a list of processes nor a child has it"
        assert (f"http://127.0.0.1:{port}/" in said, running.returncode) == (True, 0)
        while psutil.pid_exists(int(pid.read_text())) or Path(path).exists():
            assert time.monotonic() < deadline, "it goes on in the task, or its secret is left"
            time.sleep(0.1)
    # Behind the service proxy it runs once, until the task ends.
    program = tmp_path / "code-server"
    told = [json.loads(web("coded", "--program", str(program), "--directory", "/tmp").stdout) for _ in range(2)]
    assert told[0]["password"] == told[1]["password"]
    url = httpx.URL(told[1]["url"])  # browsers find names below localhost by themselves
    with httpx.Client(follow_redirects=True, timeout=LIMIT_S, headers={"Host": url.netloc.decode()}) as browser:
        given, kept, _, directory = browser.get(url.copy_with(host="127.0.0.1")).json()
    ((text, mode),) = kept.values()
    assert (directory, mode, told[0]["password"] in text, given[0]) == ("/tmp", 0o600, True, "--config")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho that is no option; exit 3\n")
    broken.chmod(0o755)
    server = psutil.Process(int((tmp_path / "code-server-pid").read_text()))
    server.kill()
    psutil.wait_procs([server], timeout=LIMIT_S)
    assert "does not start in the task: that is no option" in web("coded", "--program", str(broken)).stdout
    assert "The task has no code-server." in web("coded").stdout
    alice.stop(job)


def web(*words: str) -> subprocess.CompletedProcess[str]:
    """What ``pai code --web`` says."""
    command = pai(*words, "--web", "--json", verb="code")
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
