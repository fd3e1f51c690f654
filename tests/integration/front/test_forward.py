"""``pai forward`` with everything real: a local port leads to a service wherever its task runs, for whom it may."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jupyter_pai import broker
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from jupyter_pai.wire import tasks_of
from tests.support.backend_process import until
from tests.support.private_backend import private_backend
from tests.support.raw_requests import exchange
from tests.support.ssh_people import BOB, CONFIG, Person, runs

WAIT_S = 90
# Says its attempt, then all that it was sent once the client has sent all: both half-closes pass.
SERVER = """\
import os, socket
listener = socket.create_server(("127.0.0.1", int(os.environ["PAI_PORT_LIST_main_0_echo"])))
while True:
    connection, _ = listener.accept()
    data = b""
    while part := connection.recv(65536):
        data += part
    connection.sendall(os.environ["PAI_TASK_INDEX"].encode() + b":" + data)
    connection.close()
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("forward")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        yield client


@pytest.fixture
def alice(backend: Client, tmp_path: Path) -> Person:
    return Person(backend.api.endpoint, tmp_path / "alice")


@pytest.fixture
def job(backend: Client, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A job with an echo, which has the name of its test."""
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    role = {
        "name": "main",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 100,
        "gpuNumber": 0,
        "portList": [
            {"label": "echo", "beginAt": 0, "portNumber": 1},
            {"label": "other", "beginAt": 0, "portNumber": 1},
        ],
        "command": f"exec {sys.executable} {program}",
    }
    name = request.node.name.removeprefix("test_")[:40].replace("_", "-")
    document = {"jobName": name, "image": "none", "taskRoles": [role]}
    uid = backend.submit(json.dumps(document).encode())["uid"]
    runs(backend, uid)
    yield name
    backend.stop(uid)


@contextmanager
def forwarding(person: Person, *words: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """``pai forward`` as a process of its own, and the port that it says."""
    ours = {
        "PAI_URL": person.endpoint.url,
        "PAI_TOKEN": person.endpoint.token,
        "PAI_SSH_DIR": str(person.home / "ssh"),
    }
    person.home.mkdir(parents=True, exist_ok=True)
    with (person.home / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_pai.cli", "forward", "--json", *words],
            env={**os.environ, **ours},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], WAIT_S)
        line = process.stdout.readline() if readable else ""
        assert line, (person.home / "errors").read_text()
        yield json.loads(line)["port"], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)


def asked(port: int, data: bytes, address: str = "127.0.0.1") -> bytes:
    """What the echo answers to all of it; empty when the connection was closed or could not be made."""
    try:
        return exchange((address, port), data, WAIT_S)
    except ConnectionError:
        return b""


def echoed(port: int) -> bool:
    return asked(port, b"x") == b"0:x"


def test_a_local_port_leads_to_the_service_both_ways_to_its_end(alice: Person, job: str) -> None:
    with forwarding(alice, job, "echo") as (port, process):
        until(lambda: echoed(port), WAIT_S)
        large = os.urandom(3_000_000)
        assert asked(port, large) == b"0:" + large
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130
    assert asked(port, b"x") == b"", "it has ended"


def test_it_follows_the_job_through_a_restart(alice: Person, backend: Client, job: str) -> None:
    with forwarding(alice, job, "echo") as (port, _):
        until(lambda: echoed(port), WAIT_S)
        backend.stop(job)
        for _ in backend.follow_events(job):
            pass
        backend.start(job)
        until(lambda: echoed(port), WAIT_S)
        assert tasks_of(backend.job(job))[0]["attempt"] == 1


def test_it_waits_for_a_job_that_does_not_run_and_says_why(alice: Person, backend: Client, job: str) -> None:
    backend.stop(job)
    for _ in backend.follow_events(job):
        pass
    with forwarding(alice, job, "echo") as (port, _):
        assert f"Task main-0 of {job} is STOPPED" in (alice.home / "errors").read_text()
        backend.start(job)
        until(lambda: echoed(port), WAIT_S)


def test_a_service_that_does_not_listen_is_told(alice: Person, job: str) -> None:
    with forwarding(alice, job, "other") as (port, _):
        assert asked(port, b"x") == b""
        until(lambda: f"Service other of {job} does not answer" in (alice.home / "errors").read_text(), WAIT_S)


def test_what_is_not_there_is_refused_at_once(alice: Person, job: str) -> None:
    for words, code, said in (
        ((job, "nothing"), 2, "has no service nothing"),
        ((job, "ssh"), 2, "has no service ssh"),
        ((job, "echo", "--index", "7"), 2, "has no such task"),
        (("nojob", "echo"), 2, "There is no job"),
        ((job, "echo", "65536"), 2, "is not a port"),
    ):
        done = alice.pai("forward", *words)
        assert (done.returncode, said in done.stderr + done.stdout) == (code, True), done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = alice.pai("forward", job, "echo", str(taken.getsockname()[1]))
        assert (done.returncode, "cannot be listened at" in done.stderr) == (2, True)


def test_a_user_with_a_share_of_one_port_forwards_that_one_until_it_ends(
    alice: Person, backend: Client, job: str, tmp_path: Path
) -> None:
    bob = Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")
    alias = backend.job(job)["alias"]
    assert "There is no job" in bob.pai("forward", alias, "echo").stderr
    backend.thread.run(broker.share(backend.api, job, "bob", only=["port:echo"]))
    assert "has no service other that you may forward" in bob.pai("forward", alias, "other").stderr
    with forwarding(bob, alias, "echo") as (port, _):
        until(lambda: echoed(port), WAIT_S)
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as open_one:
            open_one.sendall(b"held")
            backend.thread.run(broker.unshare(backend.api, job, "bob"))
            assert open_one.recv(1) == b"", "the end of the share ends what is open"
        assert asked(port, b"x") == b""
        until(lambda: "There is no job" in (bob.home / "errors").read_text(), WAIT_S)


def test_a_service_is_shared_and_opened_by_command_and_so_is_a_link(
    alice: Person, backend: Client, job: str, tmp_path: Path
) -> None:
    bob = Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")
    assert bob.pai("open", f"alice~{job}", "--print").returncode == 2
    assert alice.pai("share", job, "--with", "bob", "--only", "port:echo").returncode == 0
    address = bob.pai("open", f"alice~{job}", "--print").stdout
    assert urlsplit(address).hostname == f"{backend.job(job)['services'][0]['alias']}.localhost"
    local = bob.pai("open", f"alice~{job}", "echo", "--local")
    assert (local.returncode != 0, "pai forward JOB LABEL" in local.stderr) == (True, True)
    assert bob.pai("open", f"alice~{job}", "other", "--print").returncode != 0
    told = alice.pai("share", job, "--link", "echo", "--for", "2h").stdout.splitlines()
    name = told[1].split()[1]
    assert ("/.pai/link#" in told[0], name[:5]) == (True, "link:"), told
    both = alice.pai("shares").stdout
    assert (name in both, "reading echo" in both, " bob " in both) == (True, True, True), both
    assert told[0].partition("#")[2] not in both, "it is shown once"
    for whom in (name, "bob"):
        assert alice.pai("unshare", job, "--with", whom).returncode == 0
    assert alice.pai("shares").stdout == "Nothing is shared.\n"
    assert alice.pai("share", "--link", "echo").returncode == 2
