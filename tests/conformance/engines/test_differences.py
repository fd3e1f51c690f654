"""Where engines differ: every row of the table in docs/engines.md, and no others."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from pai_backend.testing.free_ports import free_port
from tests.conformance.engines.documents import commands, submitted, v1, v1_role, v2, v2_role
from tests.conformance.engines.room import JOB_S, Job, Room
from tests.support.backend_process import until

PAGE = Path(__file__).parents[3] / "docs" / "engines.md"
FILL = "python3 -c 'text = bytearray(300_000_000); print(len(text))'"
MARK = "$PAI_DEFAULT_FS_URI/$PAI_JOB_NAME"
SHARED = """python3 - <<'END'
import os
found = os.statvfs("/dev/shm") if os.path.exists("/dev/shm") else None
print(found and found.f_blocks * found.f_frsize)
END"""
LISTEN = f"""python3 - <<'END'
import os, socket
server = socket.create_server((os.environ["PAI_CONTAINER_HOST_IP"], {free_port()}))
print("listening", flush=True)
server.accept()
END"""


def test_each_difference_is_in_the_table_and_each_row_has_its_test() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    named = [name for row in rows[1:] for name in re.findall(r"`(\w+)`", row[5]) or [row[1]]]
    here = [name for name in vars(sys.modules[__name__]) if name.startswith("test_difference_")]
    assert sorted(named) == sorted(here)


def test_difference_image(room: Room) -> None:
    job = room.submit(commands("echo ran"), image="NOT-A-NAME-OF-AN-IMAGE")
    if room.local:
        job.ended("SUCCEEDED")
    else:
        job.ended("FAILED")
        assert job.exit()["reason"] == "image-pull-failed"


@submitted(commands(FILL))
def test_difference_memory(room: Room, job: Job) -> None:
    if room.local and "tasks are not held to their memory" in room.backend.errors.read_text(errors="replace"):
        job.ended("SUCCEEDED")
    else:
        job.ended("FAILED")
        assert (job.exit()["reason"], job.exit()["phrase"]) == ("out-of-memory", "OutOfMemory")


@submitted(v1(v1_role(SHARED, shmMB=32)))
def test_difference_shared_memory(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    assert (job.log() == f"{32 * 2**20}\n") == (not room.local)


@submitted(commands("hostname; echo $PATH; ls -d /pai"))
def test_difference_machine(room: Room, job: Job) -> None:
    job.ended()
    said = job.log().splitlines()
    beside_python = str(Path(sys.executable).parent)
    assert (beside_python in said[1].split(":")) == room.local
    assert (said[0] == "main-0", "/pai" in said) == (not room.local, not room.local)


@submitted(commands("""python3 -c 'import sys; print(sys.prefix)'; echo $PAI_WORK_DIR"""))
def test_difference_packages(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    prefix, work = map(Path, job.log().split())
    assert (prefix.parent == work.parent) == room.local


@submitted(commands("echo $PAI_CONTAINER_HOST_IP"))
def test_difference_address(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log().strip() == job.task()["address"] == ("127.0.0.1" if room.local else "main-0")


@submitted(v2({"main": v2_role(LISTEN, instances=2, completion={"minSucceededInstances": -1})}))
def test_difference_ports(room: Room, job: Job) -> None:
    """A number that neither asked for is one task's on a machine, and everyone's in pods."""
    if room.local:
        assert job.ended("FAILED")["exitStatus"] == 1
    else:
        for index in (0, 1):
            job.until_said("listening", index=index)


@submitted(commands("echo out", "echo err >&2"))
def test_difference_streams(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    out, err = (sorted(job.log(stream=stream).split()) for stream in ("stdout", "stderr"))
    assert (out, err) == ((["out"], ["err"]) if room.reads_pipes else (["err", "out"], []))


@submitted(commands("printf 'one\\r\\ntwo'", f"touch {MARK}-written; until test -e {MARK}-seen; do sleep 0.2; done"))
def test_difference_lines(room: Room, job: Job) -> None:
    mark = room.files / job.detail["name"]
    until(mark.with_name(f"{mark.name}-written").exists, JOB_S)
    if room.reads_pipes:
        job.until_said("one\r\ntwo")
    else:
        job.until_said("one\n")
        assert job.log() == "one\n"
    mark.with_name(f"{mark.name}-seen").touch()
    job.ended("SUCCEEDED")
    assert job.log() == ("one\r\ntwo" if room.reads_pipes else "one\ntwo")


@submitted(commands("echo ${PAI_POD_IP-none} ${PAI_NODE_NAME-none}"))
def test_difference_variables(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    address, node = job.log().split()
    if room.local:
        assert (address, node) == ("none", "none")
    else:
        assert (address.count("."), node) == (3, job.task()["node"])


@submitted(commands("exec sleep 1000"))
def test_difference_commands(room: Room, job: Job) -> None:
    job.running()
    said = room.ssh(job, os.fsdecode(b"printf '\xff' | wc -c"))
    if room.local:
        assert (said.returncode, said.stdout) == (255, b"")
        assert b"exec request failed" in said.stderr
    else:
        assert (said.returncode, said.stdout.strip()) == (0, b"1"), said.stderr
