"""Users with homes of their own who reach jobs by ``pai`` and OpenSSH."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from jupyter_pai.connect.files import ClusterFiles
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.following import observe
from jupyter_pai.sync import Client
from jupyter_pai.wire_types import JobDetail
from tests.support.warm_start import run_pai

BOB = "a-token-of-bob-alone"
CONFIG = f"""\
user: alice
cluster_name: lab
api:
  tokens: [{{user: bob, token: {BOB}}}]
engine:
  trust_all_users: true
  nodes:
    - {{name: carol, simulated: true, gpus: {{type: TITANX, count: 1}}}}
"""
"""A backend of alice's own, with bob and one node of one GPU."""


@dataclass
class Person:
    """A user with a home of their own, in which nothing is."""

    endpoint: Endpoint
    home: Path

    @property
    def files(self) -> ClusterFiles:
        return ClusterFiles(self.home / "ssh", "lab")

    def pai(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        ours = {"PAI_URL": self.endpoint.url, "PAI_TOKEN": self.endpoint.token, "PAI_SSH_DIR": str(self.home / "ssh")}
        return run_pai(*words, env={**os.environ, **ours, **environ})

    def json(self, *words: str) -> object:
        done = self.pai(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def ssh(self, *words: str, program: str = "ssh") -> subprocess.CompletedProcess[str]:
        return run(program, "-F", str(self.files.config), "-o", "BatchMode=yes", *words)


def run(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL
    )


def submitted(client: Client, name: str, roles: list[dict[str, object]], **own: object) -> str:
    """``own`` is what the document has in ``extras.jupyterPai``."""
    document = {"jobName": name, "image": "none", "taskRoles": roles, "extras": {"jupyterPai": own}}
    return client.submit(json.dumps(document).encode())["uid"]


def runs(client: Client, uid: str) -> JobDetail:
    """The job when it runs."""
    for item in client.iterate(observe(client.api, uid, log=False)):
        if not isinstance(item, bytes) and item["state"] == "RUNNING":
            return item
    raise AssertionError("the job never ran")
