"""Tasks of a job find each other: at the addresses and ports that variables, job info file and host lists name."""

from __future__ import annotations

from pathlib import Path

from pai_backend.testing.free_ports import free_port
from tests.conformance.engines.documents import commands, submitted, v1, v1_role, v2, v2_role
from tests.conformance.engines.room import Job, facts

MEET = (Path(__file__).parent / "programs" / "meet.py").read_text()
RUN = f"python3 - <<'END'\n{MEET}\nEND"
ALL = {"minSucceededInstances": -1}
LISTEN = """python3 - <<'END'
import os, socket
for number in os.environ["PAI_CONTAINER_HOST_web_PORT_LIST"].split(","):
    socket.create_server(("", int(number)))
    print(number)
END"""
FIND = """python3 - <<'END'
import os, socket
for index in (0, 1):
    socket.gethostbyname(os.environ[f"PAI_HOST_IP_a.b_{index}"])
END"""
SELF = """python3 - <<'END'
import os, socket
socket.gethostbyname("localhost")
socket.create_server((os.environ["PAI_CONTAINER_HOST_IP"], 0))
END"""
FIXED = free_port()


@submitted(
    v2(
        {
            "server": v2_role(RUN, instances=2, ports={"hello": 1}, completion=ALL),
            "worker": v2_role(RUN, ports={"hello": 2}, completion=ALL),
        }
    )
)
def test_tasks_of_all_roles_meet_where_their_variables_say(job: Job) -> None:
    job.ended("SUCCEEDED")
    everyone = ["server:0", "server:1", "worker:0"]
    for task in job.tasks:
        told = facts(job.log(task["role"], task["index"]))
        assert told["answers"] == {name: name for name in everyone}
        assert told["asked"] == everyone
        for role in ("server", "worker"):
            peers = [peer for peer in job.tasks if peer["role"] == role]
            listed = ",".join(f"{peer['address']}:{peer['ports']['http'][0]}" for peer in peers)
            assert told["variables"][f"PAI_TASK_ROLE_{role}_HOST_LIST"] == listed


@submitted(v1(v1_role(FIND, "a.b", 2, minSucceededTaskCount=2)))
def test_addresses_of_peers_are_found_by_the_systems_own_lookup(job: Job) -> None:
    job.ended("SUCCEEDED")


@submitted(commands(SELF))
def test_a_task_alone_finds_itself_and_localhost(job: Job) -> None:
    job.ended("SUCCEEDED")


@submitted(v1(v1_role(LISTEN, portList=[{"label": "web", "beginAt": 0, "portNumber": 3}])))
def test_a_range_of_ports_is_the_tasks_to_listen_on(job: Job) -> None:
    job.ended("SUCCEEDED")
    ports = job.task()["ports"]["web"]
    assert len(set(ports)) == 3
    assert job.log().split() == [str(port) for port in ports]


@submitted(v1(v1_role(LISTEN, portList=[{"label": "web", "beginAt": FIXED, "portNumber": 1}])))
def test_a_port_that_the_document_fixes_is_the_one(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log().split() == [str(FIXED)]
