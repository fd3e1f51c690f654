"""A job as HTML for a cell: everything from outside is escaped, colours are JupyterLab's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from jupyter_pai.backend_words import said
from jupyter_pai.errors import worded
from jupyter_pai.language import tr
from jupyter_pai.render import clock, exit_words, state_words, task_state
from jupyter_pai.wire import tasks_of
from jupyter_pai.wire_types import DocumentWarning, JobDetail, ServiceWire, TaskWire

LOG_LINES = 200
"""Lines of the log that a cell shows; ``%pai logs`` shows all."""

TASKS = 50
"""Tasks that a cell lists; ``%pai status`` lists all. Each change of a job sends them all again."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
"""Control sequences of terminals. Source: ECMA-48 §5.4 (CSI), §8.3.89 (OSC)."""

_STATE_COLOURS = {
    "RUNNING": "var(--jp-brand-color1, #1976d2)",
    "SUCCEEDED": "var(--jp-success-color1, #388e3c)",
    "FAILED": "var(--jp-error-color1, #d32f2f)",
}
_MUTED = "color: var(--jp-ui-font-color2, #616161)"
_CELL = "padding: 2px 12px 2px 0; text-align: left; vertical-align: top"
_WARNING = (
    "border-left: 4px solid var(--jp-warn-color1, #f57c00); padding: 4px 8px; margin: 4px 0;"
    " background: var(--jp-layout-color2, #f5f5f5)"
)
_LOG = (
    "max-height: 24em; overflow: auto; margin: 4px 0; padding: 6px;"
    " background: var(--jp-layout-color2, #f5f5f5); color: var(--jp-ui-font-color1, #212121);"
    " font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px); line-height: 1.3"
)


def link(url: str) -> str:
    """An address to click, in a new tab; anything but http(s) is shown as text."""
    text = escape(url)
    if not url.startswith(("http://", "https://")):
        return f"<code>{text}</code>"
    return f'<a href="{text}" target="_blank" rel="noopener noreferrer">{text}</a>'


def _warning(warning: DocumentWarning) -> str:
    hint = (
        f'<div style="{_MUTED}">{escape(tr(worded(warning, "hint", "hintWording")))}</div>' if warning["hint"] else ""
    )
    return (
        f'<div role="alert" style="{_WARNING}"><b>{escape(tr(worded(warning, "message", "wording")))}</b>{hint}</div>'
    )


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in cells) + "</tr>"


def _task(task: TaskWire) -> str:
    exit_ = task["exit"]
    ports = " ".join(f"{label}={','.join(map(str, ports))}" for label, ports in task["ports"].items())
    outcome = f"{exit_['status']} {said(exit_)}".strip() if exit_ else ""
    cells = (f"{task['role']}-{task['index']}", task_state(task), task["node"] or "", ports, outcome)
    return _row([escape(cell) for cell in cells])


def _service(service: ServiceWire) -> str:
    return _row([escape(service["label"]), link(service["url"])])


def job_html(job: JobDetail) -> str:
    """State, why, warnings, tasks and addresses of a job."""
    colour = _STATE_COLOURS.get(job["state"], "var(--jp-ui-font-color2, #616161)")
    submitted = tr("submitted {time}", time=clock(job["submissionTime"]))
    parts = [
        f'<div><b>{escape(job["name"])}</b> <span style="color: {colour}; font-weight: bold">'
        f"{escape(state_words(job))}</span> "
        f'<span style="{_MUTED}">{escape(submitted)}</span></div>'
    ]
    if description := job.get("description"):
        parts.append(f"<div>{escape(description)}</div>")
    if job.get("doubt"):
        parts.append(f"<div><b>{escape(said(job, 'doubt'))}</b></div>")
    if job["why"]:
        parts.append(f'<div style="{_MUTED}">{escape(said(job, "why"))}</div>')
    if job["exit"]:
        parts.append(f"<div>{escape(exit_words(job['exit']))}</div>")
        if remedy := job["exit"].get("remedy"):
            parts.append(f'<div style="{_MUTED}">{escape(tr(remedy))}</div>')
    parts += [_warning(warning) for warning in job["warnings"]]
    tasks = tasks_of(job)
    if tasks:
        head = _row([escape(tr(each)) for each in ("task", "state", "node", "ports", "exit")], "th")
        parts.append(f"<table>{head}{''.join(_task(task) for task in tasks[:TASKS])}</table>")
        if len(tasks) > TASKS:
            parts.append(
                f'<div style="{_MUTED}">{escape(tr("and {number} more tasks", number=len(tasks) - TASKS))}</div>'
            )
    addresses = [_service(service) for service in job["services"]]
    if job["sshCommand"]:
        addresses.insert(0, _row(["ssh", f"<code>{escape(job['sshCommand'])}</code>"]))
    if addresses:
        parts.append(f"<table>{''.join(addresses)}</table>")
    return '<div class="jp-pai-job">' + "".join(parts) + "</div>"


def seen_html(seen: str) -> str:
    """When a job that had not ended was like this (ISO 8601, UTC)."""
    return f'<div style="{_MUTED}">{escape(tr("as of {time}", time=clock(seen)))}</div>'


def log_tail(text: str) -> str:
    """The last lines of a log without control sequences."""
    plain = "".join(char for char in _ANSI.sub("", text) if char.isprintable() or char in "\n\t")
    return "\n".join(plain.split("\n")[-LOG_LINES - 1 :])


def log_html(text: str) -> str:
    """The end of a log; empty text gives nothing to show."""
    tail = log_tail(text)
    return f'<pre aria-label="{escape(tr("log"))}" style="{_LOG}">{escape(tail)}</pre>' if tail.strip() else ""


def message_html(text: str) -> str:
    """A message below a view, such as a lost connection."""
    return f'<div role="alert" style="{_WARNING}">{escape(text)}</div>' if text else ""
