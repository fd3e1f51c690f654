"""SSH files on disk: private, whole, and the user's own lines untouched."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from jupyter_pai.connect import files as ssh_files
from jupyter_pai.connect import keys
from jupyter_pai.connect.files import ClusterFiles


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def apply(changes: list[ssh_files.FileChange]) -> None:
    for change in changes:
        change.apply()


def test_everything_is_private_to_the_user(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / "ssh", "local")
    apply(ssh_files.install(files, "Host a\n", "pai key\n"))
    assert files.config.read_text() == "Host a\n"
    assert files.known_hosts.read_text() == "pai key\n"
    assert [mode(path) for path in (files.config, files.known_hosts, files.user_config)] == [0o600] * 3
    assert mode(files.directory) == 0o700


def test_a_dry_run_shows_the_change_and_makes_none(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path, "local")
    files.user_config.write_text("Host mine\n")
    change = ssh_files.install(files, "Host a\n", "")[-1]
    assert f"+Include {files.config}\n" in change.diff
    assert " Host mine\n" in change.diff
    assert files.user_config.read_text() == "Host mine\n"


def test_writing_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path, "local")
    apply(ssh_files.install(files, "Host a\n", "k\n"))
    before = files.config.stat().st_ino
    again = ssh_files.install(files, "Host a\n", "k\n")
    assert [change.diff for change in again] == ["", "", ""]
    apply(again)
    assert files.config.stat().st_ino == before


def test_names_of_jobs_that_have_ended_go_with_the_next_writing(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path, "local")
    other = ClusterFiles(tmp_path, "other")
    apply(ssh_files.install(files, "Host a\n\nHost b\n", "k\n"))
    apply(ssh_files.install(other, "Host c\n", "k\n"))
    later = ssh_files.install(files, "Host b\n", "k\n")
    assert "-Host a\n" in "".join(change.diff for change in later)
    apply(later)
    assert (files.config.read_text(), other.config.read_text()) == ("Host b\n", "Host c\n")


def test_removal_gives_back_the_users_bytes_even_odd_ones(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path, "local")
    user = b"Host caf\xe9\r\n  User x\r\n"
    files.user_config.write_bytes(user)
    apply(ssh_files.install(files, "Host a\n", "k\n"))
    assert files.user_config.read_bytes() != user
    apply(ssh_files.remove(files))
    assert files.user_config.read_bytes() == user
    assert not files.config.exists()
    assert not files.known_hosts.exists()


def test_a_linked_configuration_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles"
    real.write_text("Host mine\n")
    files = ClusterFiles(tmp_path / "ssh", "local")
    files.root.mkdir()
    files.user_config.symlink_to(real)
    apply(ssh_files.install(files, "", ""))
    assert files.user_config.is_symlink()
    assert real.read_text().endswith("\nHost mine\n")


def test_a_failed_write_leaves_no_draft_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        ssh_files.replace(tmp_path / "config", "text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with space", "100%d", "O'Neil", "a#b", "[lab]", "a*b?", "$HOME", "plain"])
def test_openssh_reads_the_names_through_the_include_line(tmp_path: Path, name: str) -> None:
    from jupyter_pai.connect.ssh_config import HostEntry, config_text

    files = ClusterFiles(tmp_path / name, "local")
    text = config_text([HostEntry("train--w-0", "127.0.0.1", 2201, "pai-local")], files.places)
    apply(ssh_files.install(files, text, ""))
    command = ["ssh", "-G", "-F", str(files.user_config), "train--w-0"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert {"hostname 127.0.0.1", "port 2201", "user train--w-0", "hostkeyalias pai-local"} <= set(shown)
    assert "stricthostkeychecking true" in shown
    assert f"userknownhostsfile {files.known_hosts}" in "\n".join(shown).replace('"', "").replace("%%", "%")


@pytest.mark.parametrize("openssh", [True, False])
def test_a_key_is_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openssh: bool) -> None:
    if not openssh:
        monkeypatch.setattr("shutil.which", lambda _: None)
    identity = tmp_path / "pai" / "local" / "id_ed25519"
    public = keys.ensure_key(identity, "me@here")
    assert public.startswith("ssh-ed25519 ")
    assert public.endswith(" me@here")
    assert mode(identity) == 0o600
    assert keys.ensure_key(identity, "other") == public
    assert sorted(path.name for path in identity.parent.iterdir()) == ["id_ed25519", "id_ed25519.pub"]
    identity.with_name("id_ed25519.pub").unlink()
    assert keys.ensure_key(identity, "x").split()[:2] == public.split()[:2]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="No SSH key could be made at"):
        keys.ensure_key(tmp_path / "file" / "id_ed25519", "me")
