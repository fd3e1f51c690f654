"""Persistent terminals of the launcher: the tests that the local engine's program has to pass, and logins to a pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.testing.free_ports import free_port
from tests.integration.engine import test_terminals as terminals
from tests.integration.runtime.rooms import Client, Room, running, until
from tests.support.terminal_client import requesting

place, ask = terminals.place, terminals.ask  # fixtures
globals().update(
    {name: test for name, test in vars(terminals).items() if name.startswith("test_") and "agent" not in name}
)


@pytest.fixture
def program(bundle: Path) -> list[str | Path]:
    """The launcher by its name for terminals."""
    return [bundle / "bin/terminal"]


def test_a_terminal_of_a_pod_is_in_the_tasks_world_outlives_its_login_and_ends_with_the_task(
    busybox: Path, bundle: Path, directory: Path, client: Client
) -> None:
    room = Room(directory, busybox, bundle, uid=23456, drop_all=True, read_only_root=True, keep=True)
    room.command = "until test -e gate; do sleep 0.1; done; exit 3"
    room.ssh_port, room.authorized = free_port(), [client.public]
    room.environ = {"PAI_JOB_NAME": "cases", "SHELL": "/bin/sh"}
    way = ["-T", "-s", "x@127.0.0.1", "pai-terminal"]
    with running(room) as container:
        container.until_up()
        command = ["ssh", *client.options(room), *way]
        with requesting(command, do="attach", name="one") as first:
            first.type("kept=here; echo $PAI_JOB_NAME $(id -u) $PWD $0 pid=$$.\n")
            first.until(b"cases 23456 /pai/work /bin/sh pid=")
            pid = first.number("pid")
        with requesting(command, do="attach", name="one", start=False, rows=30, cols=99) as second:
            second.type("echo $kept $$ $(stty size); echo >gate\n")
            second.until(f"here {pid} 30 99\r\n".encode())
            until(lambda: container.state("exit.json").exists(), "the command to have ended")
            second.type("echo still ''$kept\n")
            second.until(b"still here")  # the task is kept for debugging
            room.authorize(f'command="/bin/false" {client.public}')
            done = client.ssh(room, *way, given="H")
            assert (done.returncode, done.stdout) == (1, "")
            container.signal(15)
            assert terminals.ending(second) is None
        assert container.wait() == 3
