"""Waiting for the end of a job, with its state and log, for ``submit --wait`` and ``status --watch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.errors import JOB_FAILED, OK, BackendAway
from jupyter_pai.wire_types import JobDetail
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def wait(client: Client, job: str, out: Output, *, show_log: bool) -> int:
    """Stay until the job has ended, and say by an exit code how; see :func:`ended`."""
    final = ended(client, job, out, show_log=show_log)
    if final is None:
        return INTERRUPTED
    return OK if final["state"] == "SUCCEEDED" else JOB_FAILED


def ended(client: Client, job: str, out: Output, *, show_log: bool) -> JobDetail | None:
    """Stay until the job has ended: changes on stderr, the log on stdout; ``--json`` prints the final job.

    Returns it; None after Ctrl-C, which leaves the job running and says so.
    """
    from jupyter_pai.following import observe

    said = ""
    final: JobDetail | None = None
    try:
        # Printed from this thread: a kernel sends what other threads print to the cell that made them.
        for item in client.iterate(observe(client.api, job, log=show_log and not out.as_json)):
            if isinstance(item, bytes):
                out.raw(item)
                continue
            line = render.state_line(item)
            if line != said and not out.as_json:
                out.progress(line)
            said, final = line, item
    except KeyboardInterrupt:
        out.given_up(job)
        return None
    if final is None:
        raise BackendAway(Text("It is not known how {job} ended.", job=job))
    out.ended(final)
    return final
