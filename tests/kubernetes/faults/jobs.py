"""Small jobs that say what they must end with, and leave a line for each time that their command runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tests.kubernetes.cluster.images import BUSYBOX
from tests.support.documents import scm_document

RUNS = "/runs"  # where every task has the directory in which the lines are
LINE = f'echo "$PAI_JOB_NAME $PAI_CONTAINER_ID" >>{RUNS}/lines'


@dataclass(frozen=True)
class Wanted:
    """A job of one task, and how it must end."""

    name: str
    does: str = "exit 0"
    code: int | None = 0
    signal: int | None = None
    reason: str = "exited"
    attempts: int | None = 1
    """How often it is run, when all goes well; what costs it another run is for the test of that to say."""
    image: str = BUSYBOX

    @property
    def gate(self) -> str:
        """The file that a job which waits looks for."""
        return f"{self.name}.go"

    def document(self, **changes: Any) -> bytes:
        """What a user would send."""
        role = {
            "name": "r",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 100,
            "gpuNumber": 0,
            "command": f"{LINE}; {self.does}",
        }
        return scm_document(self.name, taskRoles=[{**role, **changes}], gpuType="", image=self.image)


def good(name: str) -> Wanted:
    """Ends well."""
    return Wanted(name)


def bad(name: str) -> Wanted:
    """Ends with a code of its own."""
    return Wanted(name, "exit 7", code=7)


def killed(name: str) -> Wanted:
    """Ends by a signal."""
    return Wanted(name, "kill -9 $$", code=None, signal=9, reason="signalled")


def patient(name: str, **changes: Any) -> Wanted:
    """Runs until it is let go, and must survive what happens meanwhile."""
    wait = f"until [ -e {RUNS}/{name}.go ]; do sleep 0.2; done"
    return Wanted(name, f"{wait}; exit 5", **{"code": 5, **changes})


def obedient(name: str, **changes: Any) -> Wanted:
    """As a patient one, and exits with 0 when it is told to end, as what saves its state does."""
    wanted = patient(name, **changes)
    return replace(wanted, does=f"trap 'exit 0' TERM; {wanted.does}")


def stopped(name: str) -> Wanted:
    """Runs until somebody stops it."""
    return Wanted(name, "sleep 1000", code=None, signal=15, reason="stopped")


def a_stream(prefix: str) -> Iterator[Wanted]:
    """Short jobs of all kinds, without end."""
    kinds = (good, bad, killed)
    for number in count():
        kind = kinds[number % len(kinds)]
        yield kind(f"{prefix}-{kind.__name__}-{number}")
