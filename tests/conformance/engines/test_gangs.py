"""Which tasks start together, and what those that started early learn of the late ones."""

from __future__ import annotations

from tests.conformance.engines.documents import Document, v2, v2_role
from tests.conformance.engines.room import Job, Room

SEE = """python3 - <<'END'
import json, os, time
def tasks():
    with open(os.environ["PAI_JOB_INFO_FILE"]) as file:
        return json.load(file)["tasks"]
print(json.dumps(sorted(task["state"] for task in tasks())), flush=True)
while any(task["state"] == "waiting" for task in tasks()):
    time.sleep(0.1)
print("everyone has a place:", len({(task["host"], task["ports"]["ssh"][0]) for task in tasks()}), flush=True)
while not os.path.exists(os.environ["PAI_DEFAULT_FS_URI"] + "/over-" + os.environ["PAI_JOB_NAME"]):
    time.sleep(0.1)
END"""


def gpu_job(command: str, instances: int, **extras: object) -> Document:
    """Each task holds a GPU; there are two in the room."""
    role = v2_role(command, instances=instances)
    role["resourcePerInstance"]["gpu"] = 1
    return v2({"main": role}, extras=extras)


def held_gpu(room: Room) -> Job:
    """A job that holds one of the two."""
    job = room.submit(gpu_job("exec sleep 1000", 1))
    job.running()
    return job


def test_a_gang_waits_as_a_whole_and_starts_together(room: Room) -> None:
    holding = held_gpu(room)
    gang = room.submit(gpu_job("exec sleep 1000", 2))
    gang.until(lambda detail: detail["state"] == "WAITING" and bool(detail["why"]))
    assert [task["phase"] for task in gang.tasks] == ["queued", "queued"]
    holding.stop()
    gang.running()
    assert {task["node"] for task in gang.tasks} == {"carol", "dan"}
    assert [task["gpus"] for task in gang.tasks] == [[0], [0]]
    gang.stop()
    gang.ended("STOPPED")


def test_tasks_of_an_incremental_job_start_as_there_is_room_and_learn_of_each_other(room: Room) -> None:
    holding = held_gpu(room)
    job = room.submit(gpu_job(SEE, 2, gangAllocation=False))
    job.until(lambda _: sorted(task["phase"] for task in job.tasks) == ["queued", "running"])
    early, late = sorted(job.tasks, key=lambda task: task["phase"] == "queued")
    job.until_said("waiting", index=early["index"])
    assert job.log(index=early["index"]) == '["placed", "waiting"]\n'
    holding.stop()
    for task in (early, late):
        job.until_said("everyone has a place: 2", index=task["index"])
    assert job.log(index=late["index"]).splitlines()[0] == '["placed", "placed"]'
    (room.files / f"over-{job.detail['name']}").touch()
    job.ended("SUCCEEDED")
