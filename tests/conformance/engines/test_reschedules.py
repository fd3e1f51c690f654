"""Twenty reschedules of a job, most of them to the other node: its SSH name and host key stay what they were."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_pai import access
from jupyter_pai.connect.files import ClusterFiles
from tests.conformance.clients.entry import Entry
from tests.conformance.engines.documents import Document, commands
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import until

KILLED, MOVED = 2, 18
"""How often the task is killed and runs again, each time after a longer pause; how often its node is taken, and it
runs on the other at once."""
ANSWER_S = 60.0  # ends what hangs
LIMIT_S = 300  # of the test, on a busy machine


def with_a_gpu(priority: str, *lines: str) -> Document:
    """A document that wants the only GPU of a node."""
    extras = {"hivedScheduler": {"jobPriorityClass": priority}}
    document = commands(*lines, jobRetryCount=-2, extras=extras)
    document["taskRoles"]["main"]["resourcePerInstance"]["gpu"] = 1
    return document


class Followed:
    """A job that is entered by the files that were written when it first ran."""

    def __init__(self, job: Job, entry: Entry, directory: Path) -> None:
        self.job, self.entry = job, entry
        self.files = ClusterFiles(directory, access.cluster(job.room.client))
        for change in access.installation(job.room.client, self.files):
            change.apply()
        self.written = self._text()
        self.nodes: list[str] = []
        self.waits: list[float] = []

    def _text(self) -> dict[Path, str]:
        places = (self.files.config, self.files.known_hosts, self.files.user_config)
        return {place: place.read_text() for place in places}

    def entered_in(self, attempt: int) -> None:
        """Log in to this attempt as soon as it runs, with the files as they were written."""
        self.job.until(lambda detail: detail["attempt"] == attempt and self.job.task()["phase"] == "running")
        line = ["ssh", "-F", str(self.files.config), self.job.detail["alias"], "echo $FC_FRAMEWORK_ATTEMPT_ID"]
        said: list[tuple[bytes, str]] = []

        def answered() -> bool:
            done = self.entry.run(line)
            said.append((done.out, done.err))
            return AGAIN.decode() not in done.err

        until(answered, ANSWER_S)
        assert said[-1] == (b"%d\n" % attempt, ""), self.job.story()  # and no warning of any kind
        self.nodes.append(str(self.job.task()["node"]))
        self.waits.append(time.time() - self._running_since(attempt))
        assert self._text() == self.written

    def _running_since(self, attempt: int) -> float:
        started = self.job.task()["startedTime"]
        assert started is not None
        assert self.job.detail["attempt"] == attempt
        return (
            float(started) / 1000 if isinstance(started, int | float) else datetime.fromisoformat(started).timestamp()
        )


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("room", ["local"], indirect=True)
def test_a_job_that_is_rescheduled_twenty_times_answers_at_once_by_its_first_name(
    room: Room, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    other = room.submit(with_a_gpu("prod", "exec sleep 1000"))
    other.running()
    job = room.submit(with_a_gpu("oppo", "echo $PPID", "exec sleep 1000"))
    job.running()
    followed = Followed(job, room.entry(job), tmp_path / "ssh")
    followed.entered_in(0)
    for attempt in range(1, KILLED + MOVED + 1):
        if attempt <= KILLED:
            job.until_said("\n")
            os.kill(int(re.findall(r"\d+", job.log())[0]), signal.SIGKILL)  # what keeps the task on its node
        else:  # its node goes to a job of higher priority, and then the other node comes free
            taking = room.submit(with_a_gpu("prod", "exec sleep 1000"))
            taking.running()
            other.stop()
            other = taking
        followed.entered_in(attempt)
    for each in (job, other):
        each.stop()
    slowest = max(followed.waits)
    record_property("slowest answer after RUNNING, in seconds", f"{slowest:.2f}")
    print(f"the slowest of {len(followed.waits)} answers came {slowest:.2f} s after RUNNING")
    moves = sum(now != before for before, now in zip(followed.nodes, followed.nodes[1:], strict=False))
    assert (len(followed.waits), moves) == (KILLED + MOVED + 1, MOVED)
