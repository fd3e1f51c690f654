"""Real OpenSSH into tasks, through the gateway, strict about the host's key at every login."""

from __future__ import annotations

import os
import subprocess

from tests.conformance.engines.documents import commands, submitted, v2, v2_role
from tests.conformance.engines.room import SSH_S, Job, Room

WAIT = "until test -e $PAI_WORK_DIR/go-on; do sleep 0.2; done"
SLEEP = "exec sleep 1000"
ECHO = """python3 - <<'END'
import os, socket
server = socket.create_server(("", int(os.environ["PAI_CONTAINER_HOST_echo_PORT_LIST"])))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(connection.recv(100).upper())
    connection.close()
END"""


@submitted(v2({"main": v2_role(SLEEP), "second": v2_role(SLEEP, instances=2)}))
def test_commands_are_run_in_the_task_that_the_login_name_says(room: Room, job: Job) -> None:
    job.running()
    first = room.ssh(
        job, "echo $PAI_CURRENT_TASK_ROLE_NAME-$FC_TASK_INDEX; pwd; echo $PAI_WORK_DIR; cat; exit 5", given=b"in"
    )
    name, directory, work, given = first.stdout.decode().split("\n")
    assert (name, directory, given, first.returncode) == ("main-0", work, "in", 5), first.stderr
    alias = f"{job.detail['alias']}--second-1"
    other = room.ssh(job, "echo $PAI_CURRENT_TASK_ROLE_NAME-$FC_TASK_INDEX >&2; kill -TERM $$", login=alias)
    assert b"second-1" in other.stderr
    assert other.returncode != 0


@submitted(commands("export ONLY_OF_THE_COMMAND=1", SLEEP))
def test_a_session_has_the_tasks_variables_and_a_terminal_when_it_asks_for_one(room: Room, job: Job) -> None:
    job.running()
    told = room.ssh(job, "env")
    assert told.returncode == 0, told.stderr
    found = dict(line.split("=", 1) for line in told.stdout.decode().splitlines() if "=" in line)
    assert found["PAI_CONTAINER_ID"] == job.task()["uid"]
    assert found["PAI_CONTAINER_SSH_PORT"] == str(job.task()["ports"]["ssh"][0])
    assert "ONLY_OF_THE_COMMAND" not in found
    line = ["ssh", "-tt", *room.ssh_options(job), "-l", job.detail["alias"], "gateway", "test -t 0 && stty size"]
    terminal = subprocess.run(line, input=b"", capture_output=True, timeout=SSH_S)
    assert (terminal.returncode, len(terminal.stdout.split())) == (0, 2), terminal.stderr


@submitted(commands(SLEEP))
def test_files_go_there_and_back(room: Room, job: Job) -> None:
    job.running()
    there, back = room.directory / "there", room.directory / "back"
    there.write_bytes(os.urandom(2_000_000))
    batch = f"put {there} large\nget large {back}\n".encode()
    line = ["sftp", *room.ssh_options(job), "-b", "-", f"{job.detail['alias']}@gateway"]
    done = subprocess.run(line, input=batch, capture_output=True, timeout=SSH_S)
    assert done.returncode == 0, done.stderr
    assert back.read_bytes() == there.read_bytes()
    sizes = room.ssh(job, "wc -c <$PAI_WORK_DIR/large")
    assert sizes.stdout.split() == [b"2000000"], sizes.stderr


@submitted(v2({"main": v2_role(ECHO, ports={"echo": 1})}))
def test_a_port_of_the_task_is_forwarded(room: Room, job: Job) -> None:
    job.until_said("listening")
    port = job.task()["ports"]["echo"][0]
    line = ["ssh", *room.ssh_options(job), "-l", job.detail["alias"], "-W", f"127.0.0.1:{port}", "gateway"]
    done = subprocess.run(line, input=b"hello", capture_output=True, timeout=SSH_S)
    assert done.stdout == b"HELLO", done.stderr


@submitted(commands(WAIT, "test $FC_FRAMEWORK_ATTEMPT_ID = 1", jobRetryCount=1))
def test_the_second_run_has_the_address_and_host_key_of_the_first(room: Room, job: Job) -> None:
    def enter() -> subprocess.CompletedProcess[bytes]:
        job.running()
        return room.ssh(job, "echo $FC_FRAMEWORK_ATTEMPT_ID; touch go-on")

    before = room.client.ssh(job.uid)
    first = enter()
    job.until(lambda detail: detail["attempt"] == 1)
    second = enter()
    assert (first.stdout, second.stdout) == (b"0\n", b"1\n"), first.stderr + second.stderr
    after = room.client.ssh(job.uid)
    assert (before["knownHosts"], before["host"], before["port"]) == (after["knownHosts"], after["host"], after["port"])
    job.ended("SUCCEEDED")
    refused = room.ssh(job, "true")
    assert refused.returncode == 255
    assert b"has ended" in refused.stderr
