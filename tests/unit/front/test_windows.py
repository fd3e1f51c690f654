"""Files for Windows' OpenSSH, written from WSL: exact texts, and where they go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from jupyter_pai.connect import files as ssh_files
from jupyter_pai.connect import windows
from jupyter_pai.connect.files import ClusterFiles
from jupyter_pai.connect.ssh_config import HostEntry, config_text
from jupyter_pai.errors import ClientError

WSL = "5.15.167.4-microsoft-standard-WSL2"
HOME = PureWindowsPath(r"C:\Users\Li Lei")


def of_windows(root: Path) -> ClusterFiles:
    return ClusterFiles(root / ".ssh", "local", HOME / ".ssh")


def test_the_texts_spell_paths_as_windows_does(tmp_path: Path) -> None:
    files = of_windows(tmp_path)
    assert config_text([HostEntry("train--w-0", "gateway.example.org", 2222, "pai-local")], files.places) == (
        "Host train--w-0\n"
        "    HostName gateway.example.org\n"
        "    Port 2222\n"
        "    User train--w-0\n"
        '    IdentityFile "C:/Users/Li Lei/.ssh/pai/local/id_ed25519"\n'
        "    IdentitiesOnly yes\n"
        '    UserKnownHostsFile "C:/Users/Li Lei/.ssh/pai/local/known_hosts"\n'
        "    StrictHostKeyChecking yes\n"
        "    HostKeyAlias pai-local\n"
        "    ServerAliveInterval 30\n"
        "    ServerAliveCountMax 4\n"
    )
    changes = ssh_files.install(files, "Host a\n", "k\n")
    assert [change.path.relative_to(tmp_path).as_posix() for change in changes] == [
        ".ssh/pai/local/known_hosts",
        ".ssh/pai/local/config",
        ".ssh/config",
    ]
    assert changes[-1].after == (
        '# jupyter-pai: names of running tasks\nInclude "C:/Users/Li Lei/.ssh/pai/local/config"\n'
    )


def test_openssh_reads_the_texts_for_windows(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_text([HostEntry("a", "127.0.0.1", 2201, "pai-local")], of_windows(tmp_path).places))
    shown = subprocess.run(
        ["ssh", "-G", "-F", str(config), "a"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert "identityfile C:/Users/Li Lei/.ssh/pai/local/id_ed25519" in shown


def test_removal_finds_the_line_as_windows_spells_it(tmp_path: Path) -> None:
    files = of_windows(tmp_path)
    files.root.mkdir()
    files.user_config.write_bytes(b"Host mine\r\n")
    for change in ssh_files.install(files, "Host a\n", "k\n"):
        change.apply()
    assert files.user_config.read_bytes().startswith(b"# jupyter-pai")
    for change in ssh_files.remove(files):
        change.apply()
    assert files.user_config.read_bytes() == b"Host mine\r\n"


@pytest.mark.parametrize(
    ("path", "shown"),
    [(r"C:\Users\me", "/mnt/c/Users/me"), (r"D:\Li Lei", "/mnt/d/Li Lei"), ("c:/Users/me", "/mnt/c/Users/me")],
)
def test_where_wsl_shows_a_drive(path: str, shown: str) -> None:
    assert windows.mounted(PureWindowsPath(path)) == PurePosixPath(shown)


@pytest.mark.parametrize("path", [r"\\server\share\me", r"Users\me", "C:Users", "/home/me", ""])
def test_a_path_on_no_drive_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not a path on a drive"):
        windows.mounted(PureWindowsPath(path))
    if path:
        with pytest.raises(ClientError, match="is not the directory of a Windows user"):
            windows.profile(path, WSL)


def test_permissions_are_told_for_powershell() -> None:
    assert windows.private_command(HOME / ".ssh" / "id") == (
        r'icacls "C:\Users\Li Lei\.ssh\id" /inheritance:r /grant:r "${env:USERNAME}:F"'
    )


@pytest.mark.parametrize(
    ("release", "below"), [(WSL, True), ("4.4.0-19041-Microsoft", True), ("6.1.0-31-amd64", False), ("23.5.0", False)]
)
def test_what_is_wsl(release: str, below: bool) -> None:
    assert windows.is_wsl(release) is below
    if not below:
        with pytest.raises(ClientError, match="not Linux in Windows"):
            windows.profile("", release)


def test_windows_is_asked_for_its_users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = tmp_path / "answer"
    answer.write_bytes("UNC paths are not supported.\r\nC:\\Users\\李雷\r\n".encode("utf-16-le"))
    program = tmp_path / "cmd.exe"
    program.write_text(f'#!/bin/sh\n[ "$*" = "/d /u /c echo %USERPROFILE%" ] && exec cat {answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = windows.profile("", WSL)
    assert found == windows.Profile(PureWindowsPath(r"C:\Users\李雷"), Path("/mnt/c/Users/李雷"))
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClientError, match="Windows does not say"):
        windows.profile("", WSL)
