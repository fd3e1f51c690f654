"""What somebody needs to log in to a task, and what each program's command line makes of it.

Each program finds its files below ``home``, so that nothing of this machine's user is read or written.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 90.0
"""Any client has ended by then, on a busy machine too."""


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    status: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Entry:
    """A task's login name at the gateway, the gateway's host key and the user's own key."""

    host: str
    port: int
    login: str
    host_key: str
    """The gateway's, as ``type base64``."""
    key: Path
    """A private key of OpenSSH's form."""
    home: Path

    def __post_init__(self) -> None:
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True, exist_ok=True)
        # Dropbear knows hosts without their ports, OpenSSH and sshj this way.
        (ssh / "known_hosts").write_text(
            f"[{self.host}]:{self.port} {self.host_key}\n{self.host} {self.host_key}\n", encoding="utf-8"
        )

    @property
    def known_hosts(self) -> Path:
        """The file with the gateway's host key and no other."""
        return self.home / ".ssh" / "known_hosts"

    @property
    def fingerprint(self) -> str:
        """The host key's, as PuTTY is given it."""
        said = subprocess.run(
            ["ssh-keygen", "-l", "-f", "-"], input=self.host_key.encode(), capture_output=True, check=True
        )
        return said.stdout.decode().split()[1]

    def openssh(self, program: str, *words: str) -> list[str]:
        """A command line of ``ssh``, ``scp``, ``sftp`` or ``sshfs``, with what follows the options."""
        return [program, *self.openssh_options(), *words]

    def openssh_options(self) -> list[str]:
        """Options that all programs of OpenSSH take."""
        given: dict[str, object] = {
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "Port": self.port,
            "ConnectTimeout": 20,
        }
        return ["-F", "/dev/null", *(word for name, value in given.items() for word in ("-o", f"{name}={value}"))]

    def address(self, path: str = "") -> str:
        """``user@host``, with a path behind it when one is named."""
        return f"{self.login}@{self.host}" + (f":{path}" if path else "")

    def putty(self, program: str, *words: str) -> list[str]:
        """A command line of ``plink``, ``pscp`` or ``psftp`` that takes this host key only and asks nobody."""
        return [
            *(program, "-batch", "-P", str(self.port), "-hostkey", self.fingerprint),
            *("-i", str(self._converted("puttygen", "-O", "private", "-o")), *words),
        ]

    def dropbear(self, *words: str) -> list[str]:
        """A command line of ``dbclient``; it looks for known hosts below ``home``."""
        key = self.home / "id_dropbear"
        if not key.exists():
            self.run(["dropbearconvert", "openssh", "dropbear", str(self.key), str(key)])
        return ["dbclient", "-i", str(key), "-p", str(self.port), *words]

    def _converted(self, *words: str) -> Path:
        key = self.home / "id.ppk"
        if not key.exists():
            self.run([words[0], str(self.key), *words[1:], str(key)])
        return key

    def run(self, line: Sequence[str], given: bytes = b"", **variables: str) -> Done:
        """Run a program of this user to its end; kill it after ``LIMIT_S``."""
        hidden = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "DISPLAY")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        done = subprocess.run(
            line,
            input=given,
            capture_output=True,
            timeout=LIMIT_S,
            env={**environment, "HOME": str(self.home), **variables},
        )
        return Done(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
