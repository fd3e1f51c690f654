r"""Windows' own OpenSSH, written for from the Linux below it (WSL). Pure but for :func:`profile`.

VS Code and PyCharm on Windows run Windows' ``ssh``, which reads ``C:\Users\me\.ssh`` and nothing of WSL's
home. The files go there, name each other as Windows spells paths, and the key is one of their own: copying
a private key would make one key open two machines.
"""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

ANSWER_TIMEOUT_S = 20.0
_MOUNTS = PurePosixPath("/mnt")  # the default of wsl.conf(5), [automount] root
_OF_WSL = "microsoft"  # in the kernel's release, of WSL 1 and 2


@dataclass(frozen=True)
class Profile:
    """A Windows user's directory, as Windows and as WSL spell it."""

    windows: PureWindowsPath
    here: Path


def is_wsl(release: str) -> bool:
    """Whether a kernel's release is that of WSL."""
    return _OF_WSL in release.lower()


def mounted(path: PureWindowsPath) -> PurePosixPath:
    """Where WSL shows a path of a Windows drive. Raises ValueError for one that is on no drive."""
    drive = path.drive.rstrip(":")
    if len(drive) != 1 or not drive.isalpha() or not path.root:
        raise ValueError(Text("not a path on a drive of Windows: {path}", path=path))
    return _MOUNTS.joinpath(drive.lower(), *path.parts[1:])


def private_command(key: PureWindowsPath) -> str:
    """What to type in PowerShell when Windows' ``ssh`` calls the key's permissions too open.

    Source: OpenSSH for Windows takes a private key only when its owner, SYSTEM and administrators alone may
    read it; ``icacls`` with ``/inheritance:r`` takes everybody else's rights away.
    """
    return f'icacls "{key}" /inheritance:r /grant:r "${{env:USERNAME}}:F"'


def profile(given: str, release: str | None = None) -> Profile:
    """The Windows user's directory: ``given``, or what Windows itself says when that is empty.

    Raises ClientError outside of WSL, and when Windows does not answer.
    """
    if not is_wsl(platform.release() if release is None else release):
        raise ClientError(
            "This is not Linux in Windows (WSL), so --windows has no effect.",
            code="InvalidParametersError",
            hint="On Windows itself, run `pai ssh-config` without --windows.",
        )
    windows = PureWindowsPath(given or _asked())
    try:
        return Profile(windows, Path(mounted(windows)))
    except ValueError as error:
        raise ClientError(
            Text("{windows} is not the directory of a Windows user.", windows=windows),
            code="InvalidParametersError",
            hint=r"Name it, such as --windows 'C:\Users\me'.",
        ) from error


def _asked() -> str:
    """``%USERPROFILE%`` as Windows' shell prints it; /u makes that UTF-16 whatever the code page."""
    command = ["cmd.exe", "/d", "/u", "/c", "echo %USERPROFILE%"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=ANSWER_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ClientError(
            Text("Windows does not say where its user's directory is: {error}", error=error),
            code="InvalidParametersError",
            hint=r"Name it: --windows 'C:\Users\me'.",
        ) from error
    # Above the answer there may be a complaint about the directory that it was started in.
    lines = done.stdout.decode("utf-16-le", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
