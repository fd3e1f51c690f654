"""A backend that is killed and started again: its tasks go on, and nothing of them is lost."""

from __future__ import annotations

from tests.conformance.engines.documents import commands
from tests.conformance.engines.room import Room

WAIT = "until test -e $PAI_DEFAULT_FS_URI/{}-$PAI_JOB_NAME; do sleep 0.2; done"


def test_tasks_go_on_without_the_backend_and_are_known_to_the_next(room: Room) -> None:
    meanwhile = room.submit(commands("echo up", WAIT.format("meanwhile"), "echo done meanwhile", "exit 3"))
    afterwards = room.submit(commands("echo up", WAIT.format("afterwards"), "echo done afterwards", "exit 4"))
    for job in (meanwhile, afterwards):
        job.until_said("up")
        job.running()  # its log may be heard first
    before = afterwards.task()
    names = {job: job.detail["name"] for job in (meanwhile, afterwards)}
    room.kill()
    (room.files / f"meanwhile-{names[meanwhile]}").touch()
    room.start()
    assert meanwhile.ended("FAILED")["exitStatus"] == 3
    assert meanwhile.log() == "up\ndone meanwhile\n"
    now = afterwards.task()
    assert (now["uid"], now["attempt"], now["phase"]) == (before["uid"], before["attempt"], "running")
    assert now["startedTime"] == before["startedTime"]
    entered = room.ssh(afterwards, "echo still here")
    assert entered.stdout == b"still here\n", entered.stderr
    (room.files / f"afterwards-{names[afterwards]}").touch()
    assert afterwards.ended("FAILED")["exitStatus"] == 4
    assert afterwards.log() == "up\ndone afterwards\n"
    assert afterwards.detail["attempt"] == 0
