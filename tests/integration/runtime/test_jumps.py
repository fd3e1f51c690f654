"""A client's own SSH jumps through the gateway's login to a task, as ``pai_backend.engine.jumps`` has it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_backend.engine.jumps import JUMP_SOCKET
from pai_backend.testing.free_ports import free_port
from tests.integration.runtime.rooms import Client, Room, run, running, until
from tests.integration.runtime.test_logins import servers_of

JUMP = """
import os, select, socket, sys
way = socket.socket(socket.AF_UNIX)
way.connect(sys.argv[1])
way.sendall(sys.argv[2].encode() + b"\\n")
while True:
    for ready in select.select([way, 0], [], [])[0]:
        data = way.recv(65536) if ready is way else os.read(0, 65536)
        if not data:
            sys.exit()
        os.write(1, data) if ready is way else way.sendall(data)
"""


@pytest.fixture(params=[0, 23456], ids=["root", "unknown user, no rights, read-only"])
def room(request: pytest.FixtureRequest, busybox: Path, bundle: Path, directory: Path, client: Client) -> Room:
    """A task that knows one key, as tasks know the gateway's."""
    rights = {"uid": request.param, "drop_all": bool(request.param), "read_only_root": bool(request.param)}
    return Room(directory, busybox, bundle, ssh_port=free_port(), authorized=[client.public], **rights)


@contextmanager
def way(room: Room, gateway: Client) -> Iterator[Path]:
    """The gateway's login, with its channel to jumps as a socket of this machine."""
    near = gateway.directory / "way"
    options = [*gateway.options(room), "-o", "ExitOnForwardFailure=yes", "-L", f"{near}:{JUMP_SOCKET}", "-N"]
    with subprocess.Popen(["ssh", *options, "x@127.0.0.1"], stdin=subprocess.DEVNULL) as login:
        try:
            until(near.exists, "the way to open")
            yield near
        finally:
            login.kill()


def jumping(room: Room, jumper: Client, near: Path, key: str, *command: str) -> list[str]:
    """The client's own SSH, on a way for this key."""
    words = [sys.executable, "-c", JUMP, str(near), key]
    return ["ssh", *jumper.options(room), "-o", f"ProxyCommand={shlex.join(words)}", "x@127.0.0.1", *command]


def test_a_client_is_let_in_by_the_key_that_the_gateway_names_and_by_no_other_way(
    room: Room, client: Client, directory: Path
) -> None:
    for name in ("jumper", "stranger"):
        (directory / name).mkdir()
    jumper, stranger = Client(directory / "jumper"), Client(directory / "stranger")
    with running(room) as container:
        container.until_up()
        with way(room, client) as near:
            done = run(*jumping(room, jumper, near, jumper.public, "echo $UID"))
            assert (done.returncode, done.stdout) == (0, f"{room.uid}\n"), (done.stderr, container.said())
            for other in (stranger, client):  # not even the gateway's own key: the jump is for one
                refused = run(*jumping(room, other, near, jumper.public, "echo in"))
                assert "Permission denied (publickey)" in refused.stderr, container.said()
            broken = run(*jumping(room, jumper, near, "no key", "echo in"))
            assert "Permission denied (publickey)" in broken.stderr
        assert "Permission denied (publickey)" in jumper.ssh(room, "x@127.0.0.1", "true").stderr
        until(lambda: not list((room.directory / "state/rides.keys").iterdir()), "the keys of jumps to go with them")


def test_a_ride_ends_with_the_gateways_login(room: Room, client: Client, directory: Path) -> None:
    (directory / "jumper").mkdir()
    jumper = Client(directory / "jumper")
    with running(room) as container:
        container.until_up()
        with way(room, client) as near:
            command = jumping(room, jumper, near, jumper.public, "echo here; exec cat")
            riders = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert riders.stdout is not None
            assert riders.stdout.readline() == "here\n"
        assert riders.wait(60) == 255
        until(lambda: not servers_of(container), "the servers of the jump to end")
