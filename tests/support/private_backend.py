"""A private backend of tests of their own, which ends with all that runs there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_pai.embedded import Embedded
from jupyter_pai.errors import NotFound
from jupyter_pai.sync import Client

GONE_S = 60


@contextmanager
def private_backend(data_dir: Path, config: Path) -> Iterator[Client]:
    """A client of a backend with that configuration. Its jobs are stopped, and ended, before it is."""
    private = Embedded(data_dir, config)
    try:
        with Client(private.ensure()) as client:
            try:
                yield client
            finally:
                for job in client.jobs(state="WAITING,RUNNING"):
                    client.stop(job["id"])
                    for _ in client.follow_events(job["id"]):
                        pass
    finally:
        private.stop()


def delete_jobs(client: Client) -> None:
    """End and delete all jobs, so that another test finds a backend that has none.

    A job whose tasks are to be forgotten yet is deleted a little later than that is answered.
    """
    deadline = time.monotonic() + GONE_S
    while jobs := client.jobs():
        assert time.monotonic() < deadline, f"these jobs stay: {jobs}"
        for job in jobs:
            with suppress(NotFound):
                client.stop(job["uid"])
                for _ in client.follow_events(job["uid"]):
                    pass
                client.delete(job["uid"])
