"""Somebody's machine after installation: a home, the examples, and a shell in which ``pai`` is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from jupyter_pai.wire import ACTIVE_STATES
from tests.docs.pages import ROOT

COMMAND_TIMEOUT_S = 90
PATIENCE_S = 120
END_TIMEOUT_S = 60
CHECK_INTERVAL_S = 0.2

USER = "ada"


class Place:
    """Runs commands one after the other; variables that one exports are there for the next."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.work = root / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "examples").symlink_to(ROOT / "examples")
        self._variables = root / "variables"
        self._variables.write_text("")
        programs = root / "bin"
        programs.mkdir()
        self._write_ssh("ssh", programs)
        self._write_ssh("scp", programs)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER", "XDG_"))}
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), kept["PATH"]])
        self._environ = {**kept, "HOME": str(self.home), "PATH": path, "PAI_BACKEND_USER": USER}

    def _write_ssh(self, name: str, programs: Path) -> None:
        """OpenSSH takes the home directory from the user database, not from HOME: it is told the file."""
        real = shutil.which(name)
        assert real is not None, f"{name} is missing"
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {real} -F "$HOME/.ssh/config" "$@"\n')
        script.chmod(0o755)

    @property
    def data_dir(self) -> Path:
        """Where ``pai`` keeps the private backend of this home."""
        parts = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
        return self.home / parts / "jupyter-pai" / "backend"

    def run(self, command: str) -> tuple[int, str]:
        """Exit code, and stdout and stderr together in the order in which they came."""
        script = f'. "{self._variables}"\n{command}\ncode=$?\nexport -p > "{self._variables}"\nexit $code\n'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.work,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def run_until(self, command: str, right: Callable[[str], bool]) -> str:
        """The output of a command that only looks, repeated until it is right; the last one when it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            _, output = self.run(command)
            if right(output) or time.monotonic() > deadline:
                return output
            time.sleep(CHECK_INTERVAL_S)

    def client(self) -> Client:
        """A client of the private backend, which must run."""
        return Client(Embedded(self.data_dir).require())

    def end(self) -> None:
        """Stop jobs and backend; jobs outlive the backend, but must not outlive the test."""
        private = Embedded(self.data_dir)
        try:
            endpoint = private.find()
            if endpoint is not None:
                with Client(endpoint) as client:
                    _end_jobs(client)
        finally:
            private.stop()


def _end_jobs(client: Client) -> None:
    for job in client.jobs(state=",".join(ACTIVE_STATES)):
        client.stop(job["uid"])
    deadline = time.monotonic() + END_TIMEOUT_S
    while client.active_count():
        assert time.monotonic() < deadline, f"jobs did not stop within {END_TIMEOUT_S} s"
        time.sleep(CHECK_INTERVAL_S)
