"""What a task writes, while it runs and afterwards, byte for byte."""

from __future__ import annotations

from tests.conformance.engines.documents import commands, submitted
from tests.conformance.engines.room import Job, Room

EVERY_BYTE = bytes(range(256)) * 40
WRITE = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40)"
MANY = 20_000  # lines: more than a pipe holds
PART = 10_000
WAIT = "until test -e $PAI_DEFAULT_FS_URI/$PAI_JOB_NAME; do sleep 0.2; done"


@submitted(commands("echo out", "echo err >&2", "echo more out"))
def test_what_goes_to_either_stream_is_in_the_log(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert sorted(job.log(stream="all").splitlines()) == ["err", "more out", "out"]


@submitted(commands(f"python3 -c '{WRITE}'"))
def test_output_that_is_no_text_arrives_as_it_is(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.chunk().data == EVERY_BYTE


@submitted(commands("printf 'no end of line'"))
def test_a_last_line_without_an_end(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == "no end of line"


@submitted(commands("echo first", WAIT, "echo second"))
def test_a_log_is_followed_while_it_is_written_and_to_its_end(room: Room, job: Job) -> None:
    job.until_said("first\n")
    followed = b""
    for chunk in room.client.follow_log(job.uid, role="main", index=0):
        followed += chunk
        (room.files / job.detail["name"]).touch()
    assert followed == b"first\nsecond\n"
    job.ended("SUCCEEDED")
    assert job.log() == "first\nsecond\n"


@submitted(commands(f"seq 1 {MANY}", WAIT))
def test_parts_of_a_long_log(room: Room, job: Job) -> None:
    """It ends when all is read: a container runtime under load loses what it has not taken over by the end."""
    job.until_said(f"\n{MANY}\n")
    (room.files / job.detail["name"]).touch()
    job.ended("SUCCEEDED")
    whole = "".join(f"{number}\n" for number in range(1, MANY + 1)).encode()
    end = job.chunk(offset=-1000)
    assert (end.data, end.first, end.next) == (whole[-1000:], len(whole) - 1000, len(whole))
    found, offset = b"", 0
    while data := (chunk := job.room.client.log(job.uid, stream="stdout", offset=offset, limit=PART)).data:
        found, offset = found + data, chunk.next
    assert found == whole


@submitted(commands("for i in $(seq 1 40); do echo line $i; done", "kill -9 $$"))
def test_what_a_killed_task_had_written_is_kept(job: Job) -> None:
    job.ended("FAILED")
    assert job.log().splitlines() == [f"line {number}" for number in range(1, 41)]
