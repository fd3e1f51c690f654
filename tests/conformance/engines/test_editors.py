"""The steps by which editors come in, each with a real client: VS Code's with OpenSSH, JetBrains' with its library."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_backend.testing.free_ports import free_port
from tests.conformance.clients import jvm
from tests.conformance.clients.entry import LIMIT_S, Entry
from tests.conformance.engines.documents import v2, v2_role
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import until

ECHO = f"python3 - <<'END'\n{(Path(__file__).parent / 'programs' / 'echo.py').read_text()}\nEND"

# What VS Code sends to bash's standard input: start a server that outlives the login, and say where it listens.
INSTALL = """set -e
tar --version >/dev/null
mkdir -p .editor && cd .editor
if ! kill -0 "$(cat pid 2>/dev/null)" 2>/dev/null; then
cat >server.py <<'END'
import os, socket
server = socket.create_server(("127.0.0.1", 0))
with open("port", "w") as told:
    print(server.getsockname()[1], file=told)
os.rename("port", "listening")
while True:
    connection, _ = server.accept()
    connection.sendall(b"%d %s" % (os.getpid(), connection.recv(100)))
    connection.close()
END
nohup python3 server.py >log 2>&1 </dev/null & echo $! >pid
until test -e listening; do sleep 0.05; done
fi
echo "listeningOn==$(cat listening)=="
while read -r; do :; done
"""


@pytest.fixture(scope="module")
def job(room: Room) -> Iterator[Job]:
    """A task that answers on a port until it is stopped."""
    made = room.submit(v2({"main": v2_role(ECHO, ports={"echo": 1})}))
    made.until_said("listening")
    until(lambda: AGAIN not in room.ssh(made, "true").stderr)
    yield made
    made.stop()


@contextmanager
def editor(entry: Entry) -> Iterator[tuple[int, int]]:
    """``ssh -T -D port host bash`` with the script on its input: the port of this machine, and the server's there."""
    socks = free_port()
    line = entry.openssh("ssh", "-T", "-D", f"127.0.0.1:{socks}", "-o", "ConnectTimeout=15", entry.address(), "bash")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(INSTALL.encode())
            process.stdin.flush()
            said = process.stdout.readline().decode()
            assert said.startswith("listeningOn=="), said
            yield socks, int(said.split("==")[1])
            process.stdin.close()
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()


def by_socks(socks: int, port: int, text: bytes) -> bytes:
    """What a server of the task answers that is reached as SOCKS 5 has it (RFC 1928), by its number."""
    with socket.create_connection(("127.0.0.1", socks), LIMIT_S) as connection:
        connection.sendall(b"\x05\x01\x00")
        assert connection.recv(2) == b"\x05\x00"
        connection.sendall(b"\x05\x01\x00\x01" + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big"))
        reply = connection.recv(10, socket.MSG_WAITALL)
        if reply[1:2] != b"\0":  # OpenSSH closes instead of answering
            raise ConnectionRefusedError(reply)
        connection.sendall(text)
        return connection.makefile("rb").read()


def test_vs_codes_two_connections_reach_the_server_that_the_first_has_started(entry: Entry, tmp_path: Path) -> None:
    with editor(entry) as (socks, port):
        server, said = by_socks(socks, port, b"by the first").split(b" ", 1)
        with editor(entry) as (second, same):
            assert (said, same) == (b"by the first", port)
            assert by_socks(second, port, b"by the second") == server + b" by the second"
        with pytest.raises(ConnectionError):
            by_socks(socks, 1, b"to nobody")
        assert by_socks(socks, port, b"after that") == server + b" after that"
    with editor(entry) as (again, same):  # the window is opened again: the server is still there
        assert by_socks(again, same, b"again") == server + b" again"
    killed = entry.run(entry.openssh("ssh", entry.address(), "kill $(cat .editor/pid)"))
    assert (killed.status, killed.err) == (0, "")


def test_jetbrains_library_takes_the_steps_of_an_ide(room: Room, job: Job, entry: Entry, tmp_path: Path) -> None:
    backend = tmp_path / "backend"
    backend.mkdir()
    for number in range(200):
        (backend / str(number)).write_bytes(os.urandom(number * 20))
    port = job.task()["ports"]["echo"][0]
    words = [entry.host, entry.port, entry.login, entry.key, entry.known_hosts, backend, port]
    done = entry.run(jvm.command(*map(str, words)))
    assert done.status == 0, done.err
    system = room.ssh(job, "uname -sm").stdout.decode().strip()
    assert done.out.decode().splitlines() == [
        f"probe 0 {system}",
        "failed 7 told",
        "killed TERM",
        "uploaded 200",
        "same true",
        "echoed through the tunnel",
        "refused CONNECT_FAILED",
        "called back by the debugger",
        "told 0 go on",
    ]
