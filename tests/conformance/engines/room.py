"""A backend with one of the engines, and jobs in it as their users see them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from jupyter_pai.client import LogChunk
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from jupyter_pai.wire import ACTIVE_STATES, FINAL_STATES
from jupyter_pai.wire_types import Event, JobDetail, TaskExitWire, TaskWire
from tests.conformance.clients.entry import Entry
from tests.conformance.engines.documents import Document, with_image
from tests.support.backend_process import Backend, backend, kill, until

JOB_S = 150.0
"""Any state of a job is waited for so long: others may use the machine, and its nodes, at the same time."""
SSH_S = 60.0
AGAIN = b"Try again in a moment"


class Job:
    """A job that was submitted."""

    def __init__(self, room: Room, uid: str) -> None:
        self.room, self.uid = room, uid

    @property
    def detail(self) -> JobDetail:
        """What the REST interface says of it now."""
        return self.room.client.job(self.uid)

    @property
    def tasks(self) -> list[TaskWire]:
        """Tasks of the current attempt, by role and index."""
        return [task for role in self.detail["taskRoles"] for task in role["taskStatuses"]]

    def task(self, role: str = "main", index: int = 0) -> TaskWire:
        """One of them."""
        return next(task for task in self.tasks if (task["role"], task["index"]) == (role, index))

    def exit(self, role: str = "main", index: int = 0) -> TaskExitWire:
        """How a task has ended."""
        found = self.task(role, index)["exit"]
        assert found is not None, f"{role}-{index} has not ended"
        return found

    def until(self, holds: Callable[[JobDetail], bool]) -> JobDetail:
        """The job once this holds."""
        try:
            until(lambda: holds(self.detail), JOB_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.story()}") from None
        return self.detail

    def ended(self, *states: str) -> JobDetail:
        """The job when it has ended, in one of these states when some are named."""
        found = self.until(lambda detail: detail["state"] in FINAL_STATES)
        assert not states or found["state"] in states, self.story()
        return found

    def running(self) -> JobDetail:
        """The job when all its tasks run."""
        return self.until(lambda _: all(task["phase"] == "running" for task in self.tasks))

    def log(self, role: str = "main", index: int = 0, stream: str = "stdout") -> str:
        """What a task has written so far."""
        return self.chunk(role, index, stream).data.decode()

    def chunk(self, role: str = "main", index: int = 0, stream: str = "stdout", offset: int = 0) -> LogChunk:
        """The same as bytes, from an offset on."""
        return self.room.client.log(self.uid, role=role, index=index, stream=stream, offset=offset)

    def until_said(self, text: str, role: str = "main", index: int = 0) -> None:
        """Wait until a task has written this on its standard output."""
        try:
            until(lambda: text in self.log(role, index), JOB_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {role}-{index} never said {text!r}: {self.story()}") from None

    def stop(self) -> None:
        """Ask it to stop."""
        self.room.client.stop(self.uid)

    def events(self) -> list[Event]:
        """Its history."""
        return self.room.client.events(self.uid)

    def story(self) -> str:
        """What happened, for whoever reads a failure."""
        lines = [f"{event['type']} {json.dumps(event['payload'])[:300]}" for event in self.events()]
        logs = [f"log of {task['role']}-{task['index']}: {self._end_of_log(task)!r}" for task in self.tasks]
        return "\n".join(["", *lines, *logs])

    def _end_of_log(self, task: TaskWire) -> bytes:
        if task["startedTime"] is None:
            return b""
        return self.chunk(task["role"], task["index"], "all").data[-1000:]


@dataclass
class Room:
    """A running backend with one engine."""

    engine: str
    image: str
    files: Path
    """A directory that the machine of the backend and every task have under this path: the default file system."""
    directory: Path
    arguments: Sequence[str]
    jobs: dict[str, Job] = field(default_factory=dict)
    """Jobs of tests, by the names of these."""
    _backend: Backend = field(init=False)
    _client: Client = field(init=False)
    _open: ExitStack = field(init=False, default_factory=ExitStack)
    _given: int = 0

    @property
    def client(self) -> Client:
        """The backend's user."""
        return self._client

    @property
    def backend(self) -> Backend:
        """The processes."""
        return self._backend

    @property
    def local(self) -> bool:
        """Whether tasks are processes of this machine."""
        return self.engine == "local"

    @property
    def reads_pipes(self) -> bool:
        """Whether it is the backend that keeps what tasks write, byte by byte and each stream by itself."""
        return self.engine != "kubernetes"

    def start(self) -> None:
        """Start the backend; also again, after ``kill``, with what it had."""
        self._backend = self._open.enter_context(backend(self.directory / "backend", self.arguments))
        self._client = self._open.enter_context(Client(Endpoint(self._backend.url, self._backend.token)))

    def kill(self) -> None:
        """``kill -9`` all processes of the backend; its tasks go on."""
        for process in (psutil.Process(self._backend.process.pid), *self._backend.children().values()):
            kill(process)
        self._backend.process.wait()
        self.close()

    def close(self) -> None:
        """End the backend as its administrator would, when it has not been killed."""
        self._open.close()

    def submit(self, document: Document, image: str = "") -> Job:
        """Submit a document with this room's image, or with another."""
        return self.submit_as_it_is(json.dumps(with_image(document, image or self.image)).encode())

    def submit_as_it_is(self, text: bytes) -> Job:
        """Submit a document under a name of its own."""
        self._given += 1
        name = f"conformance{self._given}"
        return Job(self, self.client.submit(text, name=name, filename="job.json")["uid"])

    def end_jobs(self) -> None:
        """Stop what still runs, and wait for its end."""
        rows = self.client.jobs(state=",".join(ACTIVE_STATES))
        for row in rows:
            self.client.stop(row["uid"])
        for row in rows:
            Job(self, row["uid"]).ended()

    def ssh_options(self, job: Job) -> list[str]:
        """Of real OpenSSH: nothing of this machine's user, strict about the host, one key."""
        answer = self.client.ssh(job.uid)
        known = self.directory / "known_hosts"
        known.write_text("".join(f"{line}\n" for line in answer["knownHosts"]))
        given: dict[str, object] = {
            "IdentityFile": self.key(),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": known,
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": answer["hostKeyAlias"],
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "Port": answer["port"],
            "HostName": answer["host"],
            "ConnectTimeout": 20,
        }
        return ["-F", "none", *(word for name, value in given.items() for word in ("-o", f"{name}={value}"))]

    def ssh(self, job: Job, *words: str, login: str = "", given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command in a task by its login name, by default the job's first one.

        On a busy machine a task's server may answer too late for the gateway, which then says so: it is tried again.
        """
        line = ["ssh", *self.ssh_options(job), "-l", login or job.detail["alias"], "gateway", *words]
        done: list[subprocess.CompletedProcess[bytes]] = []

        def answered() -> bool:
            done.append(subprocess.run(line, input=given, capture_output=True, timeout=SSH_S))
            return AGAIN not in done[-1].stderr

        until(answered, JOB_S)
        return done[-1]

    def entry(self, job: Job, login: str = "") -> Entry:
        """The way into a task by its login name, for any client; by default into the job's first task."""
        answer = self.client.ssh(job.uid)
        host_key = " ".join(answer["gatewayHostKey"].split()[:2])
        name = login or job.detail["alias"]
        return Entry(answer["host"], answer["port"], name, host_key, self.key(), self.directory / f"home-{name}")

    def key(self) -> Path:
        """The user's private key, registered; made when it is first asked for."""
        key = self.directory / "id_ed25519"
        if not key.exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True, timeout=SSH_S
            )
            self.client.add_key(key.with_suffix(".pub").read_text().strip())
        return key


@contextmanager
def opened(engine: str, image: str, directory: Path, arguments: Sequence[str]) -> Iterator[Room]:
    """A room until the block ends; then its jobs are ended, and it is."""
    files = directory / "files"
    files.mkdir()
    room = Room(engine, image, files, directory, [*arguments, "--storage-default-uri", str(files)])
    room.start()
    try:
        yield room
    finally:
        try:
            room.end_jobs()
        finally:
            room.close()


def facts(said: str) -> dict[str, Any]:
    """The JSON object on the first line of a log."""
    found: dict[str, Any] = json.loads(said.splitlines()[0])
    return found
