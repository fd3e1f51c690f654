"""The launcher as process 1: how commands run and end, and what is left of it in the record."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from pai_backend.model.job import Causer
from pai_backend.testing.free_ports import free_port
from tests.integration.runtime.rooms import LASTING, Client, Room, running, until


@pytest.fixture
def room(busybox: Path, bundle: Path, directory: Path) -> Room:
    """A task without SSH, as an unknown user without rights on a read-only root."""
    return Room(directory, busybox, bundle, uid=23456, drop_all=True, read_only_root=True)


@pytest.mark.parametrize(
    ("command", "status", "code", "number", "reason"),
    [
        ("true", 0, 0, None, "exited"),
        ("exit 3", 3, 3, None, "exited"),
        ("kill -SEGV $$", 139, None, 11, "signalled"),
        ("kill -KILL $$", 137, None, 9, "signalled"),
        ("no-such-program", 127, 127, None, "exited"),
        ("set -o pipefail; false | true", 1, 1, None, "exited"),
        ("echo 'unbalanced", 2, 2, None, "exited"),
    ],
)
def test_the_end_of_a_command_is_the_containers_and_in_the_record(
    room: Room, command: str, status: int, code: int | None, number: int | None, reason: str
) -> None:
    room.command = command
    with running(room) as container:
        assert container.wait() == status
        record = container.record()
        assert (record.code, record.signal, record.reason) == (code, number, reason)
        assert record.exit().status == status
        assert record.started is not None
        assert record.started <= record.at


def test_output_is_the_commands_alone(room: Room) -> None:
    room.command = "echo out; echo err >&2; cat"
    with running(room) as container:
        assert container.wait() == 0
        assert (container.out.read_text(), container.said()) == ("out\n", "err\n")


def test_an_image_with_nothing_runs_bash(scratch: Path, bundle: Path, directory: Path) -> None:
    room = Room(directory, scratch, bundle, "echo $((6 * 7)) $BASH", uid=5)
    with running(room) as container:
        assert container.wait() == 0
        assert container.out.read_text() == "42 /pai/runtime/commands/bash\n"


def test_the_bash_of_an_image_comes_first(debian: Path, bundle: Path, directory: Path) -> None:
    with running(Room(directory, debian, bundle, "echo $BASH")) as container:
        assert container.wait() == 0
        assert container.out.read_text() == "/bin/bash\n"


def test_a_program_of_another_libc_runs(musl: Path, bundle: Path, directory: Path) -> None:
    with running(Room(directory, musl, bundle, "hello")) as container:
        assert container.wait() == 0
        assert container.out.read_text() == "hello from musl\n"


def test_variables_of_the_plan_replace_those_of_the_image(room: Room) -> None:
    room.image_environ = {"KEPT": "of image", "BOTH": "of image"}
    room.environ = {"BOTH": "of plan", "a.b~c": "x\ny"}
    room.command = "env -0"
    with running(room) as container:
        assert container.wait() == 0
        found = set(container.out.read_text().split("\0"))
        assert {"KEPT=of image", "BOTH=of plan", "a.b~c=x\ny", "PAI_TASK_UID=j1-a0-t1-0"} <= found


def test_a_command_has_a_session_of_its_own_and_nothing_to_read(room: Room) -> None:
    room.command = (
        "read -r _ _ _ _ group session _ </proc/$$/stat; echo $((group == $$)) $((session == $$)); ls /proc/$$/fd; true"
    )
    with running(room) as container:
        assert container.wait() == 0
        words = container.out.read_text().split()
        assert words[:2] == ["1", "1"]
        assert set(words[2:]) <= {"0", "1", "2", "255"}  # 255 is bash's own


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGRTMIN + 3])
def test_a_request_to_end_reaches_the_whole_group_as_term(room: Room, number: int) -> None:
    room.command = (
        "(trap 'echo child; exit' TERM; echo >child; while :; do sleep 0.05; done) & "
        "trap 'wait; exit 6' TERM; until test -e child; do sleep 0.05; done; echo >up; wait; wait"
    )
    with running(room) as container:
        until(container.work("up").exists, "the command")
        container.signal(number)
        assert container.wait() == 6
        assert container.out.read_text() == "child\n"
        assert (container.record().code, container.record().reason) == (6, "stopped")


def test_what_a_command_leaves_behind_is_asked_to_end_and_then_killed(room: Room) -> None:
    room.command = (
        "(trap 'echo asked' TERM; echo >gentle; while :; do sleep 0.05; done) & setsid sh -c 'echo >away; sleep 600' & "
        "until test -e gentle && test -e away; do sleep 0.05; done; exit 4"
    )
    (room.root / "bin/setsid").symlink_to("busybox")
    with running(room) as container:
        assert container.wait() == 4
        assert container.out.read_text() == "asked\n"
        assert container.record().at - (container.record().started or 0) >= 2  # the grace of who did not listen


def test_orphans_are_reaped(room: Room) -> None:
    room.command = "for i in 1 2 3; do (true & exec true); done; sleep 0.2; cat /proc/[0-9]*/stat"
    with running(room) as container:
        assert container.wait() == 0
        assert ") Z " not in container.out.read_text()


def test_a_command_may_be_longer_than_one_argument(room: Room) -> None:
    room.command = "true " + "x" * 200_000 + "; exit 5"
    with running(room) as container:
        assert container.wait() == 5


def test_a_command_is_not_among_the_arguments_of_its_bash(room: Room) -> None:
    room.command = "T='in-the-text'; cat /proc/$$/cmdline; true"
    with running(room) as container:
        assert container.wait() == 0
        said = container.out.read_text()
        assert said.startswith("bash\0-c\0")
        assert "in-the-text" not in said


def test_a_program_that_bash_waits_for_has_its_grace_and_one_request(room: Room) -> None:
    room.command = (
        "bash -c 'trap \"echo asked; sleep 2.5; echo saved; exit\" TERM; echo >up; while :; do sleep 0.05; done'; true"
    )
    with running(room) as container:
        until(container.work("up").exists, "the command")
        container.signal(signal.SIGTERM)
        container.wait()
        assert container.out.read_text() == "asked\nsaved\n"
        assert container.record().reason == "stopped"


def test_an_environment_that_is_too_long_is_the_users_fault(room: Room) -> None:
    room.environ = {f"V{number}": "x" * 100_000 for number in range(70)}
    with running(room) as container:
        assert container.wait() == 255
        record = container.record()
        assert (record.code, record.signal, record.reason, record.causer) == (None, None, "start-failed", Causer.USER)
        assert record.started is None
        assert "argument list too long" in record.message


def test_a_plan_that_cannot_be_read_fails_the_start(room: Room) -> None:
    room.options = [("ssh_port", "none")]
    with running(room) as container:
        assert container.wait() == 255
        assert (container.record().reason, container.record().causer) == ("start-failed", Causer.PLATFORM)
        assert "ssh_port" in container.record().message


def test_directories_are_made_before_the_command(room: Room) -> None:
    room.options = [("directory", "/pai/work/a b/c"), ("directory", "/pai/work/d")]
    room.command = "test -d 'a b/c' && test -d d"
    with running(room) as container:
        assert container.wait() == 0


def test_a_directory_that_cannot_be_made_is_a_failed_input(room: Room) -> None:
    room.options = [("directory", "/nowhere/to/write")]
    with running(room) as container:
        assert container.wait() == 255
        assert container.record().reason == "input-failed"
        assert "/nowhere" in container.record().message
        assert container.said().startswith("pai: ")


def test_a_failed_task_is_kept_until_it_is_asked_to_end(room: Room, client: Client) -> None:
    room.ssh_port, room.keep, room.command, room.authorized = free_port(), True, "exit 9", [client.public]
    with running(room) as container:
        until(container.state("exit.json").exists, "the record")
        assert client.ssh(room, "x@127.0.0.1", "cat /pai/state/exit.json; exit 5").returncode == 5
        assert client.ssh(room, "x@127.0.0.1", "/pai/runtime/bin/launch --is-running").returncode == 1
        assert container.process.poll() is None
        container.signal(signal.SIGTERM)
        assert container.wait() == 9
        assert (container.record().code, container.record().reason) == (9, "exited")


def test_a_session_outlives_the_command_of_a_kept_task(room: Room, client: Client) -> None:
    room.ssh_port, room.keep, room.authorized = free_port(), True, [client.public]
    room.command = "until test -e go; do sleep 0.05; done; exit 9"
    script = "nohup sh -c 'echo >going; sleep 600' >&- 2>&- & until test -e going; do sleep 0.05; done; echo >go"
    script += "; until test -e /pai/state/exit.json; do sleep 0.05; done; kill -0 $! && echo alive"
    with running(room) as container:
        container.until_up()
        assert client.ssh(room, "x@127.0.0.1", script.replace("nohup ", "")).stdout == "alive\n"


@pytest.mark.parametrize("command", ["true", LASTING])
def test_a_task_that_succeeds_or_is_stopped_is_not_kept(room: Room, command: str) -> None:
    room.keep, room.command = True, f"echo >up; {command}"
    with running(room) as container:
        until(container.work("up").exists, "the command")
        if command == LASTING:
            container.signal(signal.SIGTERM)
        container.wait()
        assert container.record().reason == ("stopped" if command == LASTING else "exited")


def test_a_running_task_says_so(room: Room, client: Client) -> None:
    room.ssh_port, room.authorized = free_port(), [client.public]
    with running(room) as container:
        container.until_up()
        assert client.ssh(room, "x@127.0.0.1", "/pai/runtime/bin/launch --is-running").returncode == 0


@pytest.mark.parametrize("command", [LASTING, "while :; do (sleep 0.1 &); sleep 0.1; done"], ids=["quiet", "orphans"])
def test_job_info_is_kept_current(room: Room, command: str) -> None:
    """Also where processes end all the time, each of which wakes the launcher."""
    room.command = command
    with running(room) as container:
        file = container.state("job-info.json")
        until(file.exists, "job info")
        assert json.loads(file.read_text()) == {"job": "first"}
        room.share({"job": "second"}, "")
        until(lambda: json.loads(file.read_text()) == {"job": "second"}, "the new job info")


def test_a_command_waits_for_the_hosts_of_its_peers(room: Room) -> None:
    room.hosts_wait_s, room.command = 25, f"cat /etc/hosts; {LASTING}"
    with running(room) as container:
        room.share({}, "10.0.0.7\tworker-1\n")
        until(lambda: "worker-1" in container.state("hosts").read_text(), "the first hosts")
        assert container.out.read_text() == ""
        room.share({}, "10.0.0.7\tworker-1\n10.0.0.8\tworker-2\n# complete\n")
        until(container.out.read_text, "the command")
        lines = container.out.read_text().splitlines()
        assert lines[0] == "127.0.0.1\tlocalhost"
        assert lines[-3:] == ["10.0.0.9\tworker-0", "10.0.0.7\tworker-1", "10.0.0.8\tworker-2"]
        room.share({}, "10.0.0.7\tworker-1\n# complete\n")
        until(lambda: "worker-2" not in container.state("hosts").read_text(), "hosts without who has gone")


def test_a_command_goes_on_without_hosts_in_the_end(room: Room) -> None:
    room.hosts_wait_s, room.command = 0.3, "true"
    with running(room) as container:
        assert container.wait() == 0
        assert "going on without them" in container.said()


def test_a_task_is_stopped_while_it_waits_for_hosts(room: Room) -> None:
    room.hosts_wait_s = 600
    with running(room) as container:
        until(container.state("job-info.json").exists, "the launcher")
        container.signal(signal.SIGTERM)
        assert container.wait() == 255
        record = container.record()
        assert (record.reason, record.started) == ("stopped", None)


def test_a_port_that_another_listens_on_is_told(room: Room) -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        number = other.getsockname()[1]
        room.options, room.command = [("port", f"{number} http")], "exit 1"
        with running(room) as container:
            assert container.wait() == 1
            record = container.record()
            assert (record.reason, record.causer) == ("port-conflict", Causer.PLATFORM)
            assert f"port {number} (http)" in record.message


def test_a_port_of_its_own_does_not_hide_a_failure(room: Room) -> None:
    room.options, room.command = [("port", f"{free_port()} http")], "exit 1"
    with running(room) as container:
        assert container.wait() == 1
        assert container.record().reason == "exited"


def test_a_task_runs_although_its_ssh_port_is_taken(room: Room, client: Client) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as other:
        room.ssh_port, room.authorized, room.command = other.getsockname()[1], [client.public], "echo done"
        with running(room) as container:
            assert container.wait() == 0
            told = container.said()
            assert f"does not listen on port {room.ssh_port}" in told
            assert "address already in use" in told


def test_clients_come_in_once_the_ssh_port_is_free(room: Room, client: Client) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as other:
        room.ssh_port, room.authorized = other.getsockname()[1], [client.public]
        with running(room) as container:
            until(lambda: "does not listen" in container.said(), "the taken port to be told")
            other.close()
            container.until_up()
            assert client.ssh(room, "x@127.0.0.1", "true").returncode == 0
            assert container.said().count("does not listen") == 1


def test_nothing_secret_is_said(room: Room, client: Client) -> None:
    room.environ = {"PAI_SECRET_TOKEN": "hunter2-and-more"}
    room.ssh_port, room.authorized = free_port(), [client.public]
    with running(room) as container:
        container.until_up()
        client.ssh(room, "x@127.0.0.1", "true")
        container.signal(signal.SIGTERM)
        container.wait()
        told = container.said() + container.out.read_text() + container.state("exit.json").read_text()
        assert "hunter2" not in told
        assert container.state("environ").stat().st_mode & 0o777 == 0o600
