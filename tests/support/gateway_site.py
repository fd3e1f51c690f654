"""A backend whose roles are processes of their own, with two of the gateway, and a job to log in to."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from pai_backend.testing.free_ports import free_ports
from tests.conformance.clients.entry import LIMIT_S, Done, Entry
from tests.conformance.engines.documents import Document
from tests.support.backend_process import Backend, backend, role_of, until
from tests.support.warm_start import run_pai

ECHO = "echo started; cat"
_BOB = "a-token-of-bob-alone"
_MOST_LOGINS = 60
"""Until every process has one: of two, this many miss one once in 2**59 times."""


@dataclass(frozen=True)
class Person:
    """A user with a home of their own, and a key that is registered."""

    endpoint: Endpoint
    entry: Entry

    def pai(self, *words: str) -> str:
        """Run ``pai``; gives what it has printed."""
        ours = {"PAI_URL": self.endpoint.url, "PAI_TOKEN": self.endpoint.token, "HOME": str(self.entry.home)}
        done = run_pai(*words, env={**os.environ, **ours})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def openssh(self, program: str, *words: str, given: bytes = b"") -> Done:
        """Run a program of OpenSSH to its end."""
        return self.entry.run(self.entry.openssh(program, *words), given)

    def ssh(self, command: str) -> Done:
        """Run a command in the job."""
        return self.openssh("ssh", self.entry.address(), command)


class Session:
    """A login whose command sends back what it is sent."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def echoes(self, text: str) -> bool:
        """Whether the login is alive and sends this line back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{text}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return self.process.stdout.readline() == f"{text}\n".encode()

    def cut(self) -> str:
        """What it says when it ends by itself."""
        assert self.process.stderr is not None
        assert self.process.wait(LIMIT_S) == 255
        return self.process.stderr.read().decode()

    @property
    def port(self) -> int:
        """Where the client's end of the connection is."""
        (connection,) = psutil.Process(self.process.pid).net_connections("tcp")
        return int(connection.laddr.port)


@contextmanager
def session(who: Person, command: str = ECHO) -> Iterator[Session]:
    """A login that has begun; it does not outlive the block."""
    line = who.entry.openssh("ssh", who.entry.address(), command)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == b"started\n", process.stderr.read()
            yield Session(process)
        finally:
            process.kill()


@dataclass
class GatewaySite:
    """The running backend."""

    backend: Backend
    job: str
    alice: Person
    bob: Person
    metrics_port: int

    @property
    def port(self) -> int:
        """Where users log in."""
        return self.alice.entry.port

    def processes(self, role: str) -> list[psutil.Process]:
        """The processes with this role, by their numbers."""
        found = {}
        for child in psutil.Process(self.backend.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # ended, and perhaps not yet reaped
                if role_of(child) == role:
                    found["--copy" in " ".join(child.cmdline())] = child
        return [found[copy] for copy in sorted(found)]

    def figures(self, copy: int) -> dict[str, float]:
        """What one process of the gateway tells Prometheus: the sums of its figures, by their names."""
        answer = httpx.get(f"http://127.0.0.1:{self.metrics_port + copy - 1}/metrics", timeout=60)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        families = text_string_to_metric_families(answer.text)
        return {family.name: sum(sample.value for sample in family.samples) for family in families}

    @contextmanager
    def sessions(self, who: Person) -> Iterator[dict[int, Session]]:
        """A login in each process of the gateway, by the process's id."""
        with ExitStack() as opened:
            found: dict[int, Session] = {}
            for _ in range(_MOST_LOGINS):
                made = opened.enter_context(session(who))
                found.setdefault(self._process_of(made), made)
                if len(found) == 2:
                    break
            else:
                raise AssertionError(f"all of {_MOST_LOGINS} logins are in one process")
            yield found

    def _process_of(self, made: Session) -> int:
        port = made.port
        for process in self.processes("gateway"):
            for connection in process.net_connections("tcp"):
                if connection.raddr and connection.raddr.port == port:
                    return int(process.pid)
        raise AssertionError("a login is in no process of the gateway")


@contextmanager
def gateway_site(directory: Path, document: Document, drain_s: float = 10) -> Iterator[GatewaySite]:
    """Start the backend and the job, whose user is alice. End both afterwards, if the backend still runs."""
    port, metrics_port, _of_second_process = free_ports(3)
    directory.mkdir(exist_ok=True)
    config = directory / "backend.yaml"
    config.touch(0o600)
    config.write_text(
        json.dumps(
            {
                "user": "alice",
                "api": {"tokens": [{"user": "bob", "token": _BOB}]},
                "engine": {"trust_all_users": True},
                "processes": [["api"], ["controller"], ["gateway"], ["agent"]],
                "gateway": {"processes": 2, "port": port, "metrics_port": metrics_port, "drain_s": drain_s},
            }
        )
    )
    with backend(directory / "data", ["--config", str(config)]) as running:
        alice, bob = Endpoint(running.url, running.token), Endpoint(running.url, _BOB)
        with Client(alice) as client, Client(bob) as of_bob:
            job = client.submit(json.dumps(document).encode(), name="demo", filename="job.json")["uid"]
            until(lambda: client.job(job)["state"] == "RUNNING")
            yield GatewaySite(
                running,
                job,
                Person(alice, _entry(client, client, job, directory / "alice")),
                Person(bob, _entry(client, of_bob, job, directory / "bob")),
                metrics_port,
            )
            if running.process.poll() is None:
                client.stop(job)
                until(lambda: client.job(job)["state"] == "STOPPED")


def _entry(client: Client, holder: Client, job: str, home: Path) -> Entry:
    home.mkdir()
    key = make_key(home / "id_ed25519")
    holder.add_key(key.with_suffix(".pub").read_text().strip())
    answer = client.ssh(job)
    host_key = " ".join(answer["gatewayHostKey"].split()[:2])
    return Entry(answer["host"], answer["port"], client.job(job)["alias"], host_key, key, home)


def make_key(path: Path, words: Sequence[str] = ("-t", "ed25519")) -> Path:
    """A new key pair in files."""
    subprocess.run(["ssh-keygen", "-q", *words, "-N", "", "-C", "", "-f", str(path)], check=True, timeout=LIMIT_S)
    return path
