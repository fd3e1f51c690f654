"""A private backend of tests of their own, which ends with all that runs there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_pai.embedded import Embedded, backend_environment
from jupyter_pai.errors import NotFound
from jupyter_pai.sync import Client
from tests.support.backend_process import START_S
from tests.support.warm_start import WarmProcess

GONE_S = 60


@contextmanager
def private_backend(data_dir: Path, config: Path) -> Iterator[Client]:
    """A client of a backend with that configuration. Its jobs are stopped, and ended, before it is.

    It is started warm, with the arguments that :class:`Embedded` gives; that this starts one is for ``test_embedded``.
    """
    private = Embedded(data_dir, config)
    places = ["--config", str(config), "--data-dir", str(data_dir), "--log-dir", str(private.log_dir)]
    errors = data_dir.parent / f"{data_dir.name}.stderr"
    process = WarmProcess(["serve", *places], backend_environment(os.environ), errors)
    try:
        assert process.ready.poll(START_S), errors.read_text()
        endpoint = private.find()
        assert endpoint is not None, errors.read_text()
        with Client(endpoint) as client:
            try:
                yield client
            finally:
                for job in client.jobs(state="WAITING,RUNNING"):
                    client.stop(job["id"])
                    for _ in client.follow_events(job["id"]):
                        pass
    finally:
        private.stop()
        process.wait(GONE_S)


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
