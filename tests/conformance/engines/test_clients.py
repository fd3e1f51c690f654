"""The programs that people log in with, each into a running task, strict about the gateway's key."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from tests.conformance.clients import jvm
from tests.conformance.clients.entry import Entry
from tests.conformance.engines.documents import v2, v2_role
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import until
from tests.support.lacking import needs, needs_device

ECHO = f"python3 - <<'END'\n{(Path(__file__).parent / 'programs' / 'echo.py').read_text()}\nEND"
FAR = 2**32 - 6
SAY = "printf 'to \\0 out'; printf 'to err' >&2; exit 3"


@pytest.fixture(scope="module")
def job(room: Room) -> Iterator[Job]:
    """A task that answers on a port until it is stopped."""
    made = room.submit(v2({"main": v2_role(ECHO, ports={"echo": 1})}))
    made.until_said("listening")
    until(lambda: AGAIN not in room.ssh(made, "true").stderr)
    yield made
    made.stop()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory of files to send, one with a name that shells would take apart, and one whose name is no UTF-8."""
    made = tmp_path / "files"
    made.mkdir()
    odd = os.fsdecode(b"caf\xe9") if sys.platform == "linux" else "café"
    for name, size in (("large", 1_000_000), ("empty", 0), ("with 'a' $name", 1000), (odd, 10)):
        (made / name).write_bytes(os.urandom(size))
    return made


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("protocol", ["-s", "-O"], ids=["over-sftp", "of-old"])
def test_scp_copies_directories_both_ways(entry: Entry, files: Path, tmp_path: Path, protocol: str) -> None:
    there, back = f"scp{protocol}", tmp_path / "back"
    sent = entry.run(entry.openssh("scp", protocol, "-r", "-q", str(files), entry.address(there)))
    assert (sent.status, sent.out, sent.err) == (0, b"", "")
    fetched = entry.run(entry.openssh("scp", protocol, "-r", "-q", entry.address(there), str(back)))
    assert (fetched.status, fetched.out, fetched.err) == (0, b"", "")
    assert contents(back) == contents(files)


def test_rsync_copies_both_ways_where_the_task_has_it(room: Room, entry: Entry, files: Path, tmp_path: Path) -> None:
    shell = shlex.join(entry.openssh("ssh"))
    sent = entry.run(["rsync", "-a", "-e", shell, f"{files}/", entry.address("rsynced/")])
    if not room.local:  # the image has none, and rsync says so itself: with the shell's status, or its own
        assert sent.status in (127, 12)
        assert "rsync: command not found" in sent.err
        return
    assert (sent.status, sent.out, sent.err) == (0, b"", "")
    (files / "large").write_bytes((files / "large").read_bytes()[:-10] + b"0123456789")
    again = entry.run(
        ["rsync", "-a", "--checksum", "--stats", "--no-whole-file", "-e", shell, f"{files}/", entry.address("rsynced/")]
    )
    assert "regular files transferred: 1" in again.out.decode()
    fetched = entry.run(["rsync", "-a", "-e", shell, entry.address("rsynced/"), f"{tmp_path / 'back'}/"])
    assert (fetched.status, fetched.err) == (0, "")
    assert contents(tmp_path / "back") == contents(files)


@contextlib.contextmanager
def mounted(entry: Entry, place: Path) -> Iterator[None]:
    """The task's directory, mounted here."""
    options = [word for word in entry.openssh_options() if word not in ("-F", "/dev/null")]
    mounting = entry.run(["sshfs", f"{entry.address()}:", str(place), "-F", "/dev/null", *options])
    assert mounting.status == 0, mounting.err
    try:
        yield
    finally:
        subprocess.run(["fusermount3", "-u", str(place)], check=True, timeout=60)


def test_a_directory_is_mounted_by_sshfs(room: Room, job: Job, entry: Entry, tmp_path: Path) -> None:
    needs("sshfs")
    needs_device("/dev/fuse", "that a task's directory is mounted by sshfs")
    place, data = tmp_path / "mounted", os.urandom(300_000)
    place.mkdir()
    with mounted(entry, place):
        (place / "by-sshfs").write_bytes(data)
        assert (place / "by-sshfs").read_bytes() == data
        (place / "by-sshfs").rename(place / "renamed")
        seen = room.ssh(job, "wc -c <renamed; echo over there >renamed")
        assert seen.stdout.split() == [b"300000"], seen.stderr
    with mounted(entry, place):
        assert (place / "renamed").read_bytes() == b"over there\n"
    assert not list(place.iterdir())


def test_puttys_plink_runs_commands(entry: Entry) -> None:
    told = entry.run(entry.putty("plink", "-ssh", entry.address(), SAY))
    assert (told.status, told.out, told.err) == (3, b"to \0 out", "to err")
    ended = entry.run(entry.putty("plink", "-ssh", entry.address(), "cat; echo done"), b"in")
    assert (ended.status, ended.out) == (0, b"indone\n")


@pytest.mark.parametrize("room", ["local"], indirect=True)
def test_puttys_plink_learns_how_a_command_ended_whose_output_had_ended_before(entry: Entry) -> None:
    """It closes the channel when both ends of the stream have ended; OpenSSH's server tells that end early, too."""
    told = entry.run(entry.putty("plink", "-ssh", entry.address(), "exec >&- 2>&-; sleep 0.2; exit 3"))
    assert told.status == 3


@pytest.mark.parametrize("protocol", ["-sftp", "-scp"])
def test_puttys_pscp_copies_both_ways(entry: Entry, files: Path, tmp_path: Path, protocol: str) -> None:
    there, back = f"by{protocol}", tmp_path / "back"
    for line in ((str(files / "large"), entry.address(there)), (entry.address(there), str(back))):
        copied = entry.run(entry.putty("pscp", "-q", protocol, *line))
        assert (copied.status, copied.err) == (0, "")
    assert back.read_bytes() == (files / "large").read_bytes()


def test_puttys_psftp_takes_a_batch(entry: Entry, files: Path, tmp_path: Path) -> None:
    batch = tmp_path / "batch"
    batch.write_text(f"lcd {tmp_path}\nmkdir kept\ncd kept\nput files/large sent\nget sent back\nls\nquit\n")
    done = entry.run(entry.putty("psftp", "-b", str(batch), entry.address()))
    assert done.status == 0, done.err
    assert (tmp_path / "back").read_bytes() == (files / "large").read_bytes()


def test_dropbears_client_runs_commands_and_forwards(job: Job, entry: Entry) -> None:
    told = entry.run(entry.dropbear(entry.address(), SAY))
    assert (told.status, told.out, told.err) == (3, b"to \0 out", "to err")
    ended = entry.run(entry.dropbear(entry.address(), "cat; echo done"), b"in")
    assert (ended.status, ended.out) == (0, b"indone\n")
    port = job.task()["ports"]["echo"][0]
    echoed = entry.run(entry.dropbear("-B", f"127.0.0.1:{port}", entry.address()), b"through")
    assert echoed.out == b"through"


@contextlib.contextmanager
def connected(entry: Entry) -> Iterator[paramiko.SSHClient]:
    """paramiko, which takes no host key but those of its file."""
    with paramiko.SSHClient() as client:
        client.load_host_keys(str(entry.known_hosts))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        key = {"key_filename": str(entry.key), "allow_agent": False, "look_for_keys": False}
        client.connect(entry.host, entry.port, entry.login, timeout=60, **key)
        yield client


def test_paramiko_runs_copies_and_forwards(job: Job, entry: Entry, files: Path, tmp_path: Path) -> None:
    with connected(entry) as client:
        _, out, err = client.exec_command(SAY, timeout=60)
        assert (out.read(), err.read(), out.channel.recv_exit_status()) == (b"to \0 out", b"to err", 3)
        with client.open_sftp() as sftp:
            sftp.put(str(files / "large"), "by-paramiko")
            sftp.get("by-paramiko", str(tmp_path / "back"))
            assert (tmp_path / "back").read_bytes() == (files / "large").read_bytes()
            with pytest.raises(FileNotFoundError):
                sftp.stat("never-put")
        transport = client.get_transport()
        assert transport is not None
        there = ("127.0.0.1", job.task()["ports"]["echo"][0])
        with contextlib.closing(transport.open_channel("direct-tcpip", there, ("127.0.0.1", 1), timeout=60)) as echo:
            echo.sendall(b"through")
            assert echo.recv(100) == b"through"


def test_a_file_of_more_than_four_gib_keeps_its_end(entry: Entry) -> None:
    """Where numbers of 32 bits begin again; what lies before is a hole, so that nothing is moved."""
    with connected(entry) as client, client.open_sftp() as sftp:
        with sftp.open("sparse", "wb") as there:
            there.seek(FAR)
            there.write(b"around the corner")
        assert sftp.stat("sparse").st_size == FAR + 17
        with sftp.open("sparse", "rb") as there:
            there.seek(FAR - 2)
            assert there.read(100) == b"\0\0around the corner"
            there.seek(0)
            assert there.read(8) == bytes(8)
        sftp.remove("sparse")


def test_a_window_keeps_its_columns_and_rows_apart(entry: Entry) -> None:
    with connected(entry) as client:
        terminal = client.invoke_shell(width=101, height=37)
        terminal.settimeout(60)
        seen = b""
        for columns, rows in ((101, 37), (211, 53)):
            terminal.resize_pty(columns, rows)
            terminal.sendall(b"stty size\n")
            while b"%d %d\r\n" % (rows, columns) not in seen:
                seen += terminal.recv(1000)


@pytest.mark.parametrize("room", ["local"], indirect=True)
def test_no_client_goes_on_at_a_host_with_another_key(entry: Entry, tmp_path: Path) -> None:
    another = entry.key.with_suffix(".pub").read_text().strip()  # a key, but not the gateway's
    wrong = Entry(entry.host, entry.port, entry.login, another, entry.key, tmp_path / "home")
    refusals = {
        "ssh": (wrong.openssh("ssh", wrong.address(), "echo in"), "HOST IDENTIFICATION HAS CHANGED"),
        "plink": (wrong.putty("plink", "-ssh", wrong.address(), "echo in"), "Host key not in manually configured list"),
        "dbclient": (wrong.dropbear(wrong.address(), "echo in"), "ost key mismatch"),
    }
    for program, (line, text) in refusals.items():
        told = wrong.run(line)
        assert (told.status != 0, told.out) == (True, b""), program
        assert text in told.err, program
    with pytest.raises(paramiko.BadHostKeyException), connected(wrong):
        pass
    words = (wrong.host, wrong.port, wrong.login, wrong.key, wrong.known_hosts, tmp_path, 1)
    java = wrong.run(jvm.command(*map(str, words)))
    assert java.status != 0
    assert "Could not verify" in java.err
