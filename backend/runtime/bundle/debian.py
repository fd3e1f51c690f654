"""What of the bundle is Debian's: programs, the libraries that they need, and the licences of both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIMIT_S: Final = 300  # of one program that is run; a cold compiler on a busy machine takes one of these minutes

SERVER: Final = "bin/sshd"
BASH: Final = "commands/bash"
PROGRAMS: Final[Mapping[str, str]] = {
    SERVER: "/usr/sbin/sshd",
    "commands/sftp-server": "/usr/lib/openssh/sftp-server",
    "commands/ssh": "/usr/bin/ssh",
    "commands/scp": "/usr/bin/scp",
    "commands/sftp": "/usr/bin/sftp",
    "commands/ssh-keygen": "/usr/bin/ssh-keygen",
    "commands/ssh-agent": "/usr/bin/ssh-agent",
    "commands/ssh-add": "/usr/bin/ssh-add",
    BASH: "/bin/bash-static",
}
"""Where each program is in the bundle, and where Debian's packages have it."""
PACKAGES: Final = "openssh-server openssh-sftp-server openssh-client bash-static patchelf gcc golang-go"
SPLIT_SERVER: Final = Path("/usr/lib/openssh/sshd-session")
"""Since OpenSSH 9.8 the server runs parts of itself by absolute path."""


class BuildFailed(Exception):
    """The bundle could not be built; the text says why, and what helps."""


@dataclass(frozen=True, order=True)
class Package:
    """An installed Debian package."""

    name: str
    version: str
    licence: Path


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises BuildFailed with what it says instead."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise BuildFailed(f"{words[0]} is not installed; on Debian: apt-get install {PACKAGES}")
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    if done.returncode:
        raise BuildFailed(
            f"{' '.join(words[:3])} … failed with status {done.returncode}: {done.stderr[-2000:].strip()}"
        )
    return done.stdout


def check() -> None:
    """Raise BuildFailed when this machine's packages are not what the bundle can be made of."""
    missing = [path for path in PROGRAMS.values() if not Path(path).is_file()]
    if missing or shutil.which("dpkg-query") is None:
        raise BuildFailed(
            f"the bundle is made of Debian's packages, and {', '.join(missing) or 'dpkg-query'} is not here; "
            f"on Debian 12: apt-get install {PACKAGES}"
        )
    if SPLIT_SERVER.exists():
        raise BuildFailed(
            f"{SPLIT_SERVER} is there: the server of OpenSSH 9.8 and newer is several programs, which this recipe does "
            "not know; build on Debian 12"
        )


def libraries(programs: Iterable[str]) -> dict[str, Path]:
    """The shared libraries that programs need, by the names that they are looked up by."""
    found: dict[str, Path] = {}
    for program in programs:
        for name, path in re.findall(r"^\s*(\S+) => (/\S+) \(0x", run("ldd", program), re.MULTILINE):
            found[name] = Path(path)
    return found


def loader(program: str) -> Path:
    """The dynamic loader that a program asks for."""
    return Path(run("patchelf", "--print-interpreter", program).strip())


def packages(files: Iterable[Path]) -> list[Package]:
    """The packages that installed files are from. Raises BuildFailed for a file of none, or without its licence."""
    found = {}
    for file in files:
        name = _owner(file)
        version = run("dpkg-query", "--show", "--showformat=${Version}", name)
        licence = Path("/usr/share/doc") / name.partition(":")[0] / "copyright"
        if not licence.is_file():
            raise BuildFailed(
                f"{licence} is missing, and the licence of what is in the bundle must be; on Debian: "
                f"apt-get install --reinstall {name}, with no path-exclude for it in /etc/dpkg/dpkg.cfg.d"
            )
        found[name] = Package(name, version, licence)
    return sorted(found.values())


def _owner(file: Path) -> str:
    """The package of a file: dpkg knows it by the path in the package, which may be from before /usr was merged."""
    real = file.resolve()
    names = [file, real, *(Path("/", *each.parts[2:]) for each in (file, real) if each.parts[1] == "usr")]
    for name in dict.fromkeys(names):
        try:
            said = run("dpkg-query", "--search", name)
        except BuildFailed:
            continue  # the next name
        owner = said.partition(": ")[0]
        return owner.removesuffix(":amd64").removesuffix(":arm64")
    raise BuildFailed(
        f"{file} belongs to no Debian package, so its licence is not known; remove it, and install the package's"
    )
