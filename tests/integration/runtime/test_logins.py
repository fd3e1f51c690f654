"""Real OpenSSH logs in to tasks of any image, as any user that an image may have."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_backend.testing.free_ports import free_port
from tests.integration.runtime.rooms import Client, Container, Room, run, running, until

SERVED_AT_ONCE = 300  # by docs/engine-kubernetes.md
IMAGES = ["scratch", "busybox", "musl", "debian"]
USERS: dict[str, dict[str, Any]] = {
    "root": {"uid": 0},
    "root, read-only": {"uid": 0, "read_only_root": True},
    "unknown user, no rights, read-only": {"uid": 23456, "drop_all": True, "read_only_root": True},
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("image", IMAGES)
def test_a_login_gets_a_shell_in_the_tasks_world(
    request: pytest.FixtureRequest, image: str, user: str, bundle: Path, directory: Path, client: Client
) -> None:
    room = Room(
        directory,
        request.getfixturevalue(image),
        bundle,
        ssh_port=free_port(),
        environ={"PAI_JOB_NAME": "cases", "GREETING.~": "two\nlines", "LD_LIBRARY_PATH": "/lib:/usr/lib"},
        authorized=[client.public],
        **USERS[user],
    )
    with running(room) as container:
        container.until_up()
        script = 'echo "$UID $PAI_JOB_NAME $PWD"; exit 7'
        done = client.ssh(room, "whoever@127.0.0.1", script)
        assert (done.returncode, done.stdout, done.stderr) == (7, f"{room.uid} cases /pai/work\n", "")
        typed = client.ssh(room, "-tt", "root@127.0.0.1", given="test -t 0 && echo on-$((40 + 2)); exit 3\n")
        assert typed.returncode == 3, typed.stderr
        assert "on-42" in typed.stdout


@pytest.fixture
def room(busybox: Path, bundle: Path, directory: Path, client: Client) -> Room:
    """A task without a passwd entry, without rights, on a read-only root."""
    return Room(
        directory,
        busybox,
        bundle,
        uid=23456,
        drop_all=True,
        read_only_root=True,
        ssh_port=free_port(),
        authorized=[client.public],
    )


def test_sessions_have_all_variables_of_the_command(room: Room, client: Client) -> None:
    room.environ = {"HOME": "/pai/work", "USER": "alice", "PATH": "/opt/own:/bin", "a.b~c": "x y", "LINES_": "1\n2"}
    room.command = "env -0 >command; " + room.command
    with running(room) as container:
        container.until_up()
        done = client.ssh(room, "alice@127.0.0.1", "env -0")

        def variables(text: str) -> dict[str, str]:
            found = dict(each.split("=", 1) for each in text.split("\0") if each)
            return {name: value for name, value in found.items() if name not in ("_", "SHLVL", "SHELL")}

        until(lambda: container.work("command").exists() and container.work("command").read_text(), "its variables")
        of_session = variables(done.stdout)
        assert {name for name in of_session if name.startswith("SSH_")} == {"SSH_CLIENT", "SSH_CONNECTION"}
        own = {name: value for name, value in of_session.items() if not name.startswith("SSH_")}
        assert own == variables(container.work("command").read_text())
        assert own["PATH"] == "/opt/own:/bin:/pai/runtime/commands"
        assert own["a.b~c"] == "x y"


def test_files_go_both_ways_by_sftp_and_scp(room: Room, client: Client) -> None:
    content = os.urandom(5 << 20)
    (client.directory / "there").write_bytes(content)
    with running(room) as container:
        container.until_up()
        batch = f"put {client.directory}/there copied\nget copied {client.directory}/back\npwd\n"
        done = run("sftp", *client.options(room), "-b", "-", "x@127.0.0.1", given=batch)
        assert done.returncode == 0, done.stderr
        assert "Remote working directory: /pai/work" in done.stdout
        assert (client.directory / "back").read_bytes() == content == container.work("copied").read_bytes()
        for name, old in (("new", []), ("old", ["-O"])):  # the protocol of old clients runs scp in the task
            source, target = client.directory / "there", f"x@127.0.0.1:/pai/work/{name}"
            copied = run("scp", *old, *client.options(room), source, target)
            assert copied.returncode == 0, copied.stderr
            assert container.work(name).read_bytes() == content


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "LD_PRELOAD"])
def test_logins_that_may_run_nothing_run_nothing_by_the_environment(room: Room, client: Client, name: str) -> None:
    room.authorized = [f'command="/bin/false" {client.public}']
    room.environ = {"PATH": "/bin"}
    with running(room) as container:
        container.until_up()
        script = container.work("script")
        script.write_text("/bin/busybox touch /pai/work/ran\n")
        script.chmod(0o755)
        given = ["-o", f"SetEnv={name}=/pai/work/script"]
        done = run("ssh", *client.options(room), *given, "x@127.0.0.1", "echo in")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
        room.authorize(client.public)
        done = run("sftp", *client.options(room), *given, "-b", "-", "x@127.0.0.1", given="ls script\n")
        assert (done.returncode, done.stderr) == (0, "")
        assert not container.work("ran").exists()


def test_ports_and_agents_are_forwarded(room: Room, client: Client) -> None:
    here, there = free_port(), free_port()
    with running(room) as container, socket.create_server(("127.0.0.1", here)) as server:
        container.until_up()
        # -R: a listener in the task leads to this machine; -L leads back to that listener.
        near = free_port()
        forwards = ["-R", f"{there}:127.0.0.1:{here}", "-L", f"{near}:127.0.0.1:{there}"]
        options = [*client.options(room), "-o", "ExitOnForwardFailure=yes", *forwards]
        tunnel = subprocess.Popen(["ssh", *options, "-N", "x@127.0.0.1"], stdin=subprocess.DEVNULL)
        try:
            until(lambda: listening(near), "the tunnel to listen")
            with socket.create_connection(("127.0.0.1", near)) as outer:
                server.settimeout(60)
                outer.sendall(b"round trip")
                assert b"round trip" in (first_words(server), first_words(server))  # the first was the look above
        finally:
            tunnel.kill()
            tunnel.wait()
        with agent(client) as socket_path:
            done = client.ssh(room, "-A", "x@127.0.0.1", "ssh-add -L", env={**os.environ, "SSH_AUTH_SOCK": socket_path})
        assert done.stdout.split()[:2] == client.public.split()[:2], done.stderr


def test_a_key_that_is_taken_out_is_refused_from_then_on(room: Room, client: Client, directory: Path) -> None:
    (directory / "second").mkdir()
    second = Client(directory / "second")
    with running(room) as container:
        container.until_up()
        assert client.ssh(room, "x@127.0.0.1", "true").returncode == 0
        assert "Permission denied (publickey)" in second.ssh(room, "x@127.0.0.1", "true").stderr
        room.authorize(second.public)
        assert "Permission denied (publickey)" in client.ssh(room, "x@127.0.0.1", "true").stderr
        assert second.ssh(room, "x@127.0.0.1", "true").returncode == 0


def test_a_task_logs_in_to_another_with_the_bundles_ssh(room: Room, client: Client) -> None:
    with running(room) as container:
        container.until_up()
        shutil.copy(client.key, container.work("key"))
        os.chown(container.work("key"), room.uid, room.uid)
        hop = f"ssh -F none -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -p {room.ssh_port} 127.0.0.1"
        done = client.ssh(room, "x@127.0.0.1", f"{hop} 'echo there as $UID; exit 5'")
        assert (done.returncode, done.stdout) == (5, "there as 23456\n"), done.stderr


@pytest.mark.parametrize("uid", [0, 1000])
def test_supplementary_groups_of_the_pod_are_those_of_sessions(
    busybox: Path, bundle: Path, directory: Path, client: Client, uid: int
) -> None:
    room = Room(directory, busybox, bundle, uid=uid, groups=[4321], ssh_port=free_port(), authorized=[client.public])
    with running(room) as container:
        container.until_up()
        assert "4321" in client.ssh(room, "x@127.0.0.1", "id -G").stdout.split()


def test_a_server_of_the_image_runs_beside(debian: Path, bundle: Path, directory: Path, client: Client) -> None:
    own = free_port()
    for name in ("hosts.deny", "nsswitch.conf"):  # the image's own server obeys them
        (debian / "etc" / name).unlink()
    config = debian / "etc/ssh/sshd_config"
    config.write_text(f"Port {own}\nHostKey /etc/ssh/key\nUsePAM no\nStrictModes no\nPidFile none\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", debian / "etc/ssh/key"], check=True)
    command = "/usr/sbin/sshd -D -e"
    room = Room(directory, debian, bundle, command, ssh_port=free_port(), authorized=[client.public])
    with running(room) as container:
        container.until_up()
        until(lambda: listening(own), lambda: f"the image's server to listen; {container.said()}")
        assert client.ssh(room, "root@127.0.0.1", "echo ours").stdout == "ours\n"
        told = run("ssh-keyscan", "-t", "ed25519", "-p", str(own), "127.0.0.1").stdout.split()
        assert told[2] == (debian / "etc/ssh/key.pub").read_text().split()[1]


def test_no_server_runs_while_nobody_is_there(room: Room, client: Client) -> None:
    with running(room) as container:
        container.until_up()
        until(lambda: not servers_of(container), "the server of the first look to end")
        with staying(room, client):
            until(lambda: servers_of(container), "a server for the client")
        until(lambda: not servers_of(container), "that server to end with its client")


def test_a_server_that_is_killed_takes_nobody_else_with_it(room: Room, client: Client) -> None:
    with running(room) as container:
        container.until_up()
        until(lambda: not servers_of(container), "the server of the first look to end")
        with staying(room, client):
            (first,) = servers_of(container)
            with staying(room, client) as second:
                os.kill(first, signal.SIGKILL)
                until(lambda: first not in servers_of(container), "the first to be gone")
                assert client.ssh(room, "x@127.0.0.1", "true").returncode == 0
                assert second.communicate("still here\n", timeout=60) == ("still here\n", "")


def test_clients_beyond_the_most_wait_until_one_leaves(room: Room) -> None:
    with running(room) as container, contextlib.ExitStack() as stack:
        container.until_up()
        until(lambda: not servers_of(container), "the server of the first look to end")
        address = ("127.0.0.1", room.ssh_port)
        first, *_ = [stack.enter_context(socket.create_connection(address)) for _ in range(SERVED_AT_ONCE)]
        until(lambda: len(servers_of(container)) == SERVED_AT_ONCE, "all to be served")
        late = stack.enter_context(socket.create_connection(address, timeout=60))
        assert not select.select([late], [], [], 1.0)[0], "served beyond the most"
        first.close()
        assert late.recv(4) == b"SSH-"


@contextmanager
def staying(room: Room, client: Client) -> Iterator[subprocess.Popen[str]]:
    """A client that is logged in, and says what it is told to, until the end of the block."""
    command = ["ssh", *client.options(room), "x@127.0.0.1", "echo here; exec cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            yield process
        finally:
            process.kill()


def servers_of(container: Container) -> list[int]:
    """Process ids of the servers that the launcher has started."""
    threads = Path(f"/proc/{container.launcher}/task").iterdir()
    pids = [pid for thread in threads for pid in (thread / "children").read_text().split()]
    return [int(pid) for pid in pids if program_of(pid) == "sshd"]


def program_of(pid: str) -> str:
    """The name of a process's program; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name  # of another root than ours
    except FileNotFoundError:
        return ""


def first_words(server: socket.socket) -> bytes:
    """What the next client of a listener sends."""
    inner, _ = server.accept()
    with inner:
        inner.settimeout(60)
        return inner.recv(100)


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def agent(client: Client) -> Iterator[str]:
    """An agent with the client's key; its socket."""
    place = str(client.directory / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
    try:
        until(lambda: Path(place).exists(), "the agent")
        subprocess.run(
            ["ssh-add", "-q", client.key], check=True, env={**os.environ, "SSH_AUTH_SOCK": place}, capture_output=True
        )
        yield place
    finally:
        process.kill()
        process.wait()
