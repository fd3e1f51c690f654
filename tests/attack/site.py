"""A backend of several users, started as its operator would, and the ways to it that users and strangers have."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from argon2 import PasswordHasher

from pai_backend.access.keys import make_ed25519
from tests.support.backend_process import Backend, backend, until

PYTHON = os.environ.get("PAI_ATTACK_PYTHON", sys.executable)
ADMIN, OWNER, OTHER, VICTIM = "ada", "bob", "eve", "vic"
PASSWORD = "correct horse battery"
PROXY = "127.0.0.9"
"""Where a proxy of the operator's connects from."""
MEDIA_TYPE = "application/vnd.jupyter-pai+json"
NODES = '[{"name": "carol", "cpus": 64, "memory_mb": 65536, "gpus": {"type": "TITANX", "count": 4}}]'
QUOTA_BYTES = 3_000_000
SETTINGS = ("--gateway-max-channels", "20", "--storage-quota-bytes", str(QUOTA_BYTES))
DESCRIPTORS = 1_024
"""That a program may have open unless it asks for more, on most machines."""
LIMIT_S = 60
"""In which anything here is done. It ends what hangs, and nothing else."""


@dataclass
class Site:
    """The backend and its users: an administrator, an owner of jobs, another user, and one whom others attack."""

    backend: Backend
    path: Path
    keys: dict[str, Path] = field(default_factory=dict)

    @property
    def address(self) -> tuple[str, int]:
        """Where the API listens."""
        url = urlsplit(self.backend.url)
        return url.hostname or "", url.port or 80

    @property
    def seen(self) -> Path:
        """Where the task of the job ``echo`` notes the headers of each request that reaches it."""
        return self.path / "seen"

    def http(self, user: str | None) -> httpx.Client:
        """An HTTP client of this user, or of a stranger."""
        headers = {"Accept": MEDIA_TYPE} | ({"Authorization": f"Bearer {token_of(user)}"} if user else {})
        return httpx.Client(base_url=self.backend.url, headers=headers, timeout=LIMIT_S, verify=False)

    def gateway(self) -> tuple[str, int]:
        """Where SSH clients go."""
        with self.http(OWNER) as client:
            said = client.get("/api/v2/gateway").json()
        return said["host"], said["port"]

    def key(self, user: str) -> Path:
        """The private key of a user, registered when it is asked for first."""
        if user not in self.keys:
            path = self.path / f"{user}-key"
            public = new_key(path)
            with self.http(user) as client:
                ok(client.post("/api/v2/keys", json={"publicKey": public}))
            self.keys[user] = path
        return self.keys[user]

    def job(self, name: str, command: str, user: str = OWNER, **changes: Any) -> dict[str, Any]:
        """Submit a job of one task without GPUs and wait until it runs. Gives its detail."""
        with self.http(user) as client:
            ok(client.post("/api/v2/jobs", content=document(name, command, **changes)))
            until(lambda: client.get(f"/api/v2/jobs/{name}").json()["state"] != "WAITING", LIMIT_S)
            detail: dict[str, Any] = ok(client.get(f"/api/v2/jobs/{name}")).json()
        assert detail["state"] == "RUNNING", detail
        return detail

    def stop(self, name: str, user: str = OWNER) -> None:
        """Stop a job and wait until it has ended."""
        with self.http(user) as client:
            ok(client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"}))
            until(lambda: client.get(f"/api/v2/jobs/{name}").json()["completedTime"] is not None, LIMIT_S)

    def known_hosts(self) -> Path:
        """What a user pins: the gateway, under any name of a job."""
        host, port = self.gateway()
        with self.http(OWNER) as client:
            key = client.get("/api/v2/gateway").json()["hostKey"]
        path = self.path / "known_hosts"
        path.write_text(f"[{host}]:{port} {key}\n")
        return path

    def ssh_options(self, key: Path, *more: str) -> list[str]:
        """Options of OpenSSH's programs that leave the real user's files alone."""
        return [
            *(word for option in more for word in ("-o", option)),
            *("-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "IdentityAgent=none"),
            *("-o", f"UserKnownHostsFile={self.known_hosts()}", "-o", "GlobalKnownHostsFile=/dev/null"),
            *("-o", "IdentitiesOnly=yes", "-i", str(key)),
        ]

    def ssh(
        self, user: str, alias: str, *words: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run OpenSSH's ``ssh`` with a user's key to its end."""
        host, port = self.gateway()
        line = ["ssh", *self.ssh_options(self.key(user), *options), "-p", str(port), f"{alias}@{host}", *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)


def token_of(user: str) -> str:
    """The bearer token of a user of the configuration."""
    return f"{user}-token-{user * 8}"


def new_key(path: Path) -> str:
    """Make a key pair; gives the public line."""
    private, public = make_ed25519("attack")
    path.write_text(private)
    path.chmod(0o600)
    path.with_suffix(".pub").write_text(public + "\n")
    return public


def ok(answer: httpx.Response) -> httpx.Response:
    """The answer, when it is not a refusal."""
    assert answer.status_code < 400, answer.text
    return answer


def document(name: str, command: str, **changes: Any) -> bytes:
    """An OpenPAI v1 document of one task without GPUs."""
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": command}
    fields = {"jobName": name, "image": "example/any:1", "virtualCluster": "default", "retryCount": 0, **changes}
    role |= fields.pop("role", {})
    return json.dumps({**fields, "taskRoles": [role]}).encode()


@contextmanager
def running_site(path: Path) -> Iterator[Site]:
    """Start it; stop its jobs and end it afterwards."""
    users = [ADMIN, OWNER, OTHER]
    settings = {
        "PAI_BACKEND_API__TOKENS": json.dumps(
            [{"user": user, "token": token_of(user), "admin": user == ADMIN} for user in [*users, VICTIM]]
        ),
        "PAI_BACKEND_API__USERS": json.dumps([{"name": VICTIM, "password_hash": PasswordHasher().hash(PASSWORD)}]),
    }
    if sys.executable == PYTHON:  # earlier revisions do not know it, and ask for no such word
        settings["PAI_BACKEND_ENGINE__TRUST_ALL_USERS"] = "true"
        settings["PAI_BACKEND_API__PROXIES"] = json.dumps([PROXY])
    python = path / "python"
    python.write_text(f'#!/bin/sh\nulimit -Sn {DESCRIPTORS} && exec {shlex.quote(PYTHON)} "$@"\n')
    python.chmod(0o755)
    with backend(path / "data", (*SETTINGS, "--engine-nodes", NODES), settings, str(python)) as running:
        site = Site(running, path)
        try:
            yield site
        finally:
            with site.http(ADMIN) as client:
                names = [job["id"] for job in client.get("/api/v2/jobs?state=WAITING,RUNNING").json()]
            for name in names:
                site.stop(name, ADMIN)
