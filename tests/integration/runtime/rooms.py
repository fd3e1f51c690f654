"""Containers without a container runtime: a root directory, namespaces, and the real launcher as process 1.

What is in an image is its root directory; the other half of a pod (plan, job, state) is written as the engine does it,
by the engine's own builders where they are pure.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pai_backend.engine.bundle.plan_files import compressed, entries
from pai_backend.engine.bundle.record import ExitRecord, record_of

HERE = Path(__file__).parent
LIMIT_S = 60.0
LASTING = "coproc { read; }; wait"  # no program but bash is needed for it
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def until(holds: Callable[[], object], what: str | Callable[[], str], limit_s: float = LIMIT_S) -> None:
    """Wait for a condition, looking often. Raises AssertionError when it does not come."""
    deadline = time.monotonic() + limit_s
    while not holds():
        late = time.monotonic() > deadline
        assert not late, f"not within {limit_s:.0f} s: {what if isinstance(what, str) else what()}"
        time.sleep(0.02)


@dataclass
class Room:
    """A container that has not begun: its image, user and plan."""

    directory: Path  # of the test; a short path
    root: Path  # what the image has
    bundle: Path
    command: str = LASTING
    uid: int = 0
    groups: Sequence[int] = ()
    drop_all: bool = False
    read_only_root: bool = False
    ssh_port: int = 0
    keep: bool = False
    hosts_wait_s: float | None = None
    options: Sequence[tuple[str, str]] = ()
    environ: dict[str, str] = field(default_factory=dict)
    image_environ: dict[str, str] = field(default_factory=dict)
    authorized: Sequence[str] = ()
    files: dict[str, str] = field(default_factory=dict)  # of the plan, beside or instead of those made here
    job_info: object = field(default_factory=lambda: {"job": "first"})

    def write(self) -> None:
        """Lay out plan, job and state, as kubelet and init container do."""
        for name in ("plan", "job", "state", "work"):
            (self.directory / name).mkdir()
        for name in ("state", "work"):
            (self.directory / name).chmod(0o1777)
        plan = self.directory / "plan"
        options = [("uid", "j1-a0-t1-0"), ("keep", "1" if self.keep else "0"), ("unknown", "x"), *self.options]
        if self.ssh_port:
            options.append(("ssh_port", str(self.ssh_port)))
            _keygen(self.directory / "host")
            (plan / "host_key").write_bytes((self.directory / "host").read_bytes())
            self.authorize(*self.authorized)
        if self.hosts_wait_s is not None:
            options.append(("hosts_wait_s", str(self.hosts_wait_s)))
        environ = {"PAI_TASK_UID": "j1-a0-t1-0", "PWD": "/pai/work", **self.environ}
        (plan / "command.gz").write_bytes(compressed(self.command.encode()))
        (plan / "environ.gz").write_bytes(compressed(entries(environ.items())))
        (plan / "options").write_bytes(entries(options))
        for name, text in self.files.items():
            (plan / name).write_text(text)
        for file in plan.iterdir():
            file.chmod(0o444)
        self.share(self.job_info, "")
        (self.directory / "state/hosts").touch()
        (self.directory / "state/hosts").chmod(0o666)
        (self.directory / "termination-log").touch()
        (self.directory / "termination-log").chmod(0o666)

    def authorize(self, *keys: str) -> None:
        """Replace the keys that may log in."""
        draft = self.directory / "plan/.keys"
        draft.write_text("".join(f"{key}\n" for key in keys))
        draft.chmod(0o444)
        draft.rename(self.directory / "plan/authorized_keys")

    def share(self, job_info: object, hosts: str) -> None:
        """Replace the ConfigMap's files as the kubelet does: a new directory, then one rename of a link."""
        job = self.directory / "job"
        version = Path(tempfile.mkdtemp(prefix="..version-", dir=job))
        version.chmod(0o755)
        (version / "job-info.json.gz").write_bytes(gzip.compress(json.dumps(job_info).encode()))
        (version / "hosts").write_text(hosts)
        (job / "..new").symlink_to(version.name)
        (job / "..new").rename(job / "..data")
        for name in ("job-info.json.gz", "hosts"):
            if not (job / name).is_symlink():
                (job / name).symlink_to(f"..data/{name}")

    def described(self) -> dict[str, Any]:
        """For ``enter.py``."""
        own = {f"/pai/{name}": str(self.directory / name) for name in ("plan", "job", "state", "work")}
        mounts = {"/pai/runtime": str(self.bundle), **own}
        if self.hosts_wait_s is not None:
            mounts["/etc/hosts"] = str(self.directory / "state/hosts")
        read_only = ["/pai/runtime", "/pai/plan", "/pai/job"]
        return {
            "root": str(self.root),
            "mounts": mounts,
            "read_only": [*read_only, "/"] if self.read_only_root else read_only,
            "termination_log": str(self.directory / "termination-log"),
            "uid": self.uid,
            "groups": list(self.groups),
            "drop_all": self.drop_all,
            "env": {"PATH": PATH, "HOME": "/", "PAI_POD_IP": "10.0.0.9", **self.image_environ},
        }


class Container:
    """A running room."""

    def __init__(self, room: Room) -> None:
        self.room = room
        room.write()
        self.out, self.err = room.directory / "stdout", room.directory / "stderr"
        words = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--propagation", "private"]
        command = [*words, sys.executable, str(HERE / "enter.py"), json.dumps(room.described())]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def launcher(self) -> int:
        """The launcher's process id, as seen from outside."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(lambda: children.read_text().split(), "the launcher to be there")
        return int(children.read_text().split()[0])

    def signal(self, number: int) -> None:
        """Send the launcher a signal, as a kubelet does."""
        os.kill(self.launcher, number)

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """The container's exit status."""
        return self.process.wait(limit_s)

    def record(self) -> ExitRecord:
        """What the launcher left for the kubelet; it is what SSH sessions read too."""
        text = (self.room.directory / "termination-log").read_text()
        assert text == self.state("exit.json").read_text()
        found = record_of(text)
        assert found is not None, text
        return found

    def state(self, name: str) -> Path:
        """A file below /pai/state."""
        return self.room.directory / "state" / name

    def work(self, name: str) -> Path:
        """A file in the working directory."""
        return self.room.directory / "work" / name

    def said(self) -> str:
        """What is on its standard error."""
        return self.err.read_text()

    def until_up(self) -> None:
        """Wait until its SSH server lets clients in. A container that has ended is a failure."""

        def answers() -> bool:
            assert self.process.poll() is None, self.said()
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.room.ssh_port)):
                    return False
                try:
                    return probe.recv(4) == b"SSH-"
                except ConnectionResetError:  # it ends; why, the next look tells
                    return False

        until(answers, lambda: f"the SSH server to answer; {self.said()}")

    def close(self) -> None:
        """End it, whatever it does: with process 1 of its namespace all others end."""
        # unshare's --kill-child ends who is still root: changing the user takes that off (prctl(2), PR_SET_PDEATHSIG).
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended by itself
            for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        self.process.kill()
        self.process.wait()


@contextmanager
def running(room: Room) -> Iterator[Container]:
    """A container from its start; it is ended however the test ends."""
    container = Container(room)
    try:
        yield container
    finally:
        container.close()


@dataclass(frozen=True)
class Client:
    """Real OpenSSH with one key, which trusts nothing but the room's host key."""

    directory: Path

    @property
    def key(self) -> Path:
        """The private key; made when it is first asked for."""
        path = self.directory / "key"
        if not path.exists():
            _keygen(path)
        return path

    @property
    def public(self) -> str:
        """The line for authorized_keys."""
        _ = self.key
        return (self.directory / "key.pub").read_text().strip()

    def options(self, room: Room) -> list[str]:
        """Options that ssh, scp and sftp have in common."""
        known = self.directory / "known_hosts"
        host_key = (room.directory / "host.pub").read_text()
        known.write_text(f"[127.0.0.1]:{room.ssh_port} {host_key}")
        given = {
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": known,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "Port": room.ssh_port,
            "ConnectTimeout": 10,
        }
        return ["-F", "none", *(word for name, value in given.items() for word in ("-o", f"{name}={value}"))]

    def ssh(self, room: Room, *words: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run ``ssh OPTIONS WORDS``; words hold the destination."""
        return run("ssh", *self.options(room), *words, **given)


def run(*command: str | Path, given: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its status."""
    return subprocess.run(
        [str(word) for word in command], input=given or "", capture_output=True, text=True, timeout=LIMIT_S, **options
    )


def skeleton(root: Path) -> Path:
    """Directories that a container runtime makes in any image."""
    for name in ("pai/runtime", "pai/plan", "pai/job", "pai/state", "pai/work", "proc", "dev", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/hosts").touch()
    return root


def copy_programs(root: Path, *programs: str) -> None:
    """Copy programs of this machine into a root, with their libraries."""
    files = {Path(program) for program in programs}
    for program in programs:
        said = run("ldd", program).stdout
        files |= {Path(word) for word in said.split() if word.startswith("/")}
    for file in files:
        target = root / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def _keygen(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
