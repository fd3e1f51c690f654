"""A job as the output of a cell: in all forms that a notebook may be looked at in. Pure.

The file holds no widget: its state lives in a kernel, and a notebook that is opened again shows an error in
its place. The panel renders ``MIME`` and follows the job through its Jupyter server, with buttons; everything
else (nbconvert, GitHub, VS Code, a terminal) shows the HTML or the text, which say when they were true.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from jupyter_pai import render
from jupyter_pai.widgets.html import job_html, log_html, log_tail, message_html, seen_html
from jupyter_pai.wire import FINAL_STATES
from jupyter_pai.wire_types import JobDetail

MIME: Final = "application/vnd.jupyter-pai.job+json"
"""What the panel renders."""


class JobOutput(TypedDict):
    """What the panel needs to follow the job; ``seen`` is when this was true (ISO 8601, UTC).

    ``ended`` says that the job has ended and the other forms say how, so that nothing of them will change.
    """

    uid: str
    name: str
    state: str
    seen: str
    ended: bool


JobBundle = TypedDict(
    "JobBundle", {"application/vnd.jupyter-pai.job+json": JobOutput, "text/html": str, "text/plain": str}
)
"""One output of a cell, form by form. Source: nbformat, mimebundle."""


def job_bundle(job: JobDetail, seen: str, *, log: str = "", problem: str = "", ended: bool | None = None) -> JobBundle:
    """All forms of a job as it was at ``seen``, with the end of its log, and why it is not followed any longer."""
    is_final = job["state"] in FINAL_STATES
    plain = [render.job_page(job), log_tail(log).strip("\n"), problem]
    return {
        MIME: {
            "uid": job["uid"],
            "name": job["name"],
            "state": job["state"],
            "seen": seen,
            "ended": is_final if ended is None else ended,
        },
        "text/html": "".join(
            [job_html(job), "" if is_final else seen_html(seen), message_html(problem), log_html(log)],
        ),
        "text/plain": "\n".join(part for part in plain if part),
    }
