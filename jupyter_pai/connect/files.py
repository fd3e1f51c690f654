"""Writes the SSH files of a cluster below an SSH directory, and shows beforehand what would change.

Every write is a new file renamed into place with mode 0600: a reader sees the old or the new text,
never half of one.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from jupyter_pai.connect.ssh_config import ConfigFiles, with_include, without_include


def ssh_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The SSH directory: ``PAI_SSH_DIR``, or ``~/.ssh``."""
    return Path(environ.get("PAI_SSH_DIR") or "~/.ssh").expanduser().absolute()


@dataclass(frozen=True)
class ClusterFiles:
    """Where the files of one cluster are.

    ``named`` is the SSH directory as the programs that read the files spell it, where that is another
    spelling than ours: Windows' OpenSSH knows ``C:/Users/me/.ssh`` and no ``/mnt/c``.
    """

    root: Path
    cluster: str
    named: PurePath | None = None

    def spelt(self, path: Path) -> PurePath:
        """One of these paths in the spelling of those who read it."""
        return path if self.named is None else self.named.joinpath(*path.relative_to(self.root).parts)

    @property
    def directory(self) -> Path:
        """Everything of this cluster."""
        return self.root / "pai" / self.cluster

    @property
    def config(self) -> Path:
        """The included file."""
        return self.directory / "config"

    @property
    def known_hosts(self) -> Path:
        """Host keys of this cluster's gateway."""
        return self.directory / "known_hosts"

    @property
    def identity(self) -> Path:
        """The user's private key for this cluster."""
        return self.directory / "id_ed25519"

    def certificate(self, job_alias: str) -> Path:
        """The certificate by which ``pai ssh`` logs in to a job; no configuration names it."""
        return self.directory / "certificates" / f"{job_alias}-cert.pub"

    def jump_certificate(self, job_alias: str) -> Path:
        """The certificate that a job's tasks themselves take, for jumps."""
        return self.directory / "jumps" / f"{job_alias}-cert.pub"

    @property
    def certificates(self) -> list[Path]:
        """All of both kinds that are there."""
        return sorted(path for kind in ("certificates", "jumps") for path in self.directory.glob(f"{kind}/*-cert.pub"))

    @property
    def user_config(self) -> Path:
        """The user's own configuration."""
        return self.root / "config"

    @property
    def places(self) -> ConfigFiles:
        """What host blocks name."""
        return ConfigFiles(identity=self.spelt(self.identity), known_hosts=self.spelt(self.known_hosts))


@dataclass(frozen=True)
class FileChange:
    """One file as it is and as it shall be; ``after`` None removes it."""

    path: Path
    before: str | None
    after: str | None
    encoding: str = "utf-8"

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty when there is none."""
        before = (self.before or "").splitlines(keepends=True)
        after = (self.after or "").splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, f"{self.path} (now)", f"{self.path} (then)"))

    def apply(self) -> None:
        """Make it so; nothing is touched when nothing changes."""
        if self.after == self.before:
            return
        if self.after is None:
            self.path.unlink(missing_ok=True)
        else:
            replace(self.path, self.after, self.encoding)


def read(path: Path, encoding: str = "utf-8") -> str | None:
    """A file's text with its line ends as they are, or None when there is no such file."""
    errors = "surrogateescape" if encoding == "utf-8" else "replace"  # only UTF-8 gives every byte back
    try:
        return path.read_bytes().decode(encoding, errors)
    except FileNotFoundError:
        return None


def replace(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a private file so that it is seen whole or not at all. A link is followed, not replaced."""
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode(encoding, "surrogateescape" if encoding == "utf-8" else "strict"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def install(files: ClusterFiles, config: str, known_hosts: str) -> list[FileChange]:
    """What writing these texts would change, the user's own Include line last."""
    user = read(files.user_config)
    return [
        FileChange(files.known_hosts, read(files.known_hosts), known_hosts),
        FileChange(files.config, read(files.config), config),
        FileChange(files.user_config, user, with_include(user or "", files.spelt(files.config))),
    ]


def remove(files: ClusterFiles) -> list[FileChange]:
    """What taking it all back would change; the key stays, it may be in use elsewhere."""
    user = read(files.user_config)
    rest = None if user is None else without_include(user, files.spelt(files.config))
    return [
        FileChange(files.user_config, user, rest),
        *(FileChange(path, read(path), None) for path in (files.config, files.known_hosts, *files.certificates)),
    ]
