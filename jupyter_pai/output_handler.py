"""``…/pai/output/…`` of the Jupyter server: a job as a cell's output, for notebooks whose kernel is gone."""

from __future__ import annotations

from datetime import UTC, datetime

from jupyter_pai.answering import AnsweringHandler
from jupyter_pai.client import AsyncClient
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


class OutputHandler(AnsweringHandler):
    """All forms of a job's output."""

    @authenticated
    @authorized("read", JOBS)
    async def get(self, job: str) -> None:
        """Make them."""
        await self.answer(self._made(job))

    async def _made(self, job: str) -> JobBundle:
        return await job_output(await self.link.client(), job)
