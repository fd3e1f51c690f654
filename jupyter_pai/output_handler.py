"""``…/pai/output/…`` of the Jupyter server: a job as a cell's output, for notebooks whose kernel is gone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from jupyter_server.base.handlers import APIHandler

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import ClientError
from jupyter_pai.following import watched_task
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from jupyter_pai.log_text import whole_characters
from jupyter_pai.widgets.output import JobBundle, job_bundle

LOG_BYTES = 64 * 1024
"""Of the end of a log; fewer of its lines are shown."""


async def job_output(client: AsyncClient, name: str) -> JobBundle:
    """The job as it is now. Raises ClientError."""
    seen = datetime.now(UTC).isoformat(timespec="seconds")
    job = await client.job(name)
    task = watched_task(job)
    if task is None or task["startedTime"] is None:
        return job_bundle(job, seen)
    piece = await client.log(job["uid"], role=task["role"], index=task["index"], offset=-LOG_BYTES, limit=LOG_BYTES)
    text, _, _ = whole_characters(piece.data, piece.first)
    return job_bundle(job, seen, log=text)


class OutputHandler(APIHandler):
    """All forms of a job's output."""

    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link

    @authenticated
    @authorized("read", JOBS)
    async def get(self, job: str) -> None:
        """Make them."""
        try:
            bundle = await job_output(await self.link.client(), job)
        except ClientError as error:
            self.set_status(error.status or 503)
            self.finish(json.dumps(error.body()))
        else:
            self.finish(json.dumps(bundle))
