"""Workspace names with everything real: OpenSSH and ``pai`` find whichever job holds the name."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from tests.support.private_backend import delete_jobs, private_backend
from tests.support.ssh_people import BOB, CONFIG, Person, runs

ASK = "echo $PAI_JOB_NAME"
STRICT = ("-o", "StrictHostKeyChecking=yes")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("names")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        yield client


@pytest.fixture
def backend(running: Client) -> Iterator[Client]:
    """The backend, which has no jobs yet."""
    yield running
    delete_jobs(running)


def document(directory: Path, name: str, **more: object) -> str:
    role = {
        "name": "main",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 100,
        "gpuNumber": 0,
        "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
        "command": "exec sleep 600",
    }
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"jobName": name, "image": "none", "taskRoles": [role], **more}))
    return str(path)


def test_editors_find_whichever_job_holds_the_name(backend: Client, tmp_path: Path) -> None:
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    told = alice.json("submit", document(tmp_path, "first", address="work"))
    assert isinstance(told, dict)
    assert (told["alias"], told["address"]) == ("work", "work")
    runs(backend, told["uid"])
    assert alice.pai("ssh-config", "--jump").returncode == 0
    known, config = alice.files.known_hosts.read_text(), alice.files.config.read_text()
    assert alice.ssh(*STRICT, "work", ASK).stdout == "first\n"

    held = alice.pai("submit", document(tmp_path, "second"), "--address", "work")
    assert (held.returncode, "--replace" in held.stderr, "--address OTHER" in held.stderr) == (2, True, True)
    for name in ("second", "third"):
        told = alice.json("submit", document(tmp_path, name), "--address", "work", "--replace")
        assert isinstance(told, dict)
        runs(backend, told["uid"])
        assert [alice.ssh(*STRICT, each, ASK).stdout for each in ("work", "work.jump")] == [f"{name}\n"] * 2
        assert alice.pai("ssh", "work", ASK).stdout == f"{name}\n"
    assert (alice.files.known_hosts.read_text(), alice.files.config.read_text()) == (known, config)

    names = alice.json("addresses")
    assert isinstance(names, list)
    (work,) = names
    assert (work["name"], work["job"], work["state"]) == ("work", "alice~third", "RUNNING")
    assert work["services"][0]["url"].startswith("http://work--web.")
    assert "answers at the workspace name work" in alice.pai("show", "work").stdout
    assert alice.pai("addresses").stdout.splitlines()[1].split()[:4] == ["work", "alice~third", "RUNNING", "ssh"]
    refused = alice.pai("addresses", "release", "work")
    assert (refused.returncode, "has not ended" in refused.stderr) == (2, True)
    assert alice.pai("stop", "work").returncode == 0
    for _ in backend.follow_events(told["uid"]):
        pass
    assert alice.pai("addresses", "release", "work").stdout == "The workspace name work is released.\n"
    assert alice.json("addresses") == []
    assert alice.pai("addresses", "release", "work").returncode == 2


def test_two_users_have_a_name_each(backend: Client, tmp_path: Path) -> None:
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    bob = Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")
    told = {}
    for person, name in ((alice, "hers"), (bob, "his")):
        shown = person.json("submit", document(tmp_path, name), "--address", "work")
        assert isinstance(shown, dict)
        told[name] = shown
        runs(backend, shown["uid"])
    assert told["his"]["alias"].startswith("work-")
    for person, name in ((alice, "hers"), (bob, "his")):
        assert person.pai("ssh-config").returncode == 0
        assert person.ssh(*STRICT, "work", ASK).stdout == f"{name}\n"
        assert person.ssh(*STRICT, "-l", "work", "work", ASK).stdout == f"{name}\n", "as the login's user, too"
        assert person.pai("ssh", "work", ASK).stdout == f"{name}\n"
        listed = person.json("addresses")
        assert isinstance(listed, list)
        assert [each["name"] for each in listed] == ["work"]
    assert bob.pai("addresses", "release", "hers").returncode == 2


def test_a_name_that_is_none_is_refused(backend: Client, tmp_path: Path) -> None:
    alice = Person(backend.api.endpoint, tmp_path / "alice")
    path = document(tmp_path, "job")
    for name in ("root", "a--b", "-a", "A", "j" + "0" * 16, "x" * 25, "a_b"):
        done = (
            alice.pai("submit", path, "--address", name)
            if name[0] != "-"
            else alice.pai("submit", path, f"--address={name}")
        )
        assert (done.returncode, "address" in done.stderr) == (2, True), name
        faulty = alice.pai("validate", document(tmp_path, "faulty", address=name))
        assert (faulty.returncode, "address" in faulty.stderr) == (2, True), name


@contextmanager
def losing_the_first_answer(url: str) -> Iterator[str]:
    """The address of a relay that carries the first submission out and cuts the connection before its answer."""
    parts = urlsplit(url)
    lost = threading.Event()

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection((parts.hostname or "", parts.port or 80)) as server:
            request = client.recv(65536)
            server.sendall(request)
            forward = threading.Thread(target=pump, args=(client, server), daemon=True)
            forward.start()
            answer = server.recv(65536)
            if request.startswith(b"POST /api/v2/jobs?") and not lost.is_set():
                lost.set()
                client.shutdown(socket.SHUT_RDWR)
                return
            client.sendall(answer)
            pump(server, client)

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert lost.is_set()
        listener.shutdown(socket.SHUT_RDWR)


def test_a_submission_whose_answer_is_lost_makes_one_job(backend: Client, tmp_path: Path) -> None:
    first = backend.submit(Path(document(tmp_path, "job")).read_bytes())
    with losing_the_first_answer(backend.api.endpoint.url) as url:
        alice = Person(Endpoint(url, backend.api.endpoint.token), tmp_path / "alice")
        told = alice.json("submit", document(tmp_path, "job"), "--replace")
    assert isinstance(told, dict)
    assert {job["uid"] for job in backend.jobs()} == {first["uid"], told["uid"]}
    assert [event["type"] for event in backend.events(told["uid"])].count("job.replaced") == 0
