"""Plain text for people: tables, a job's page, and errors with the place they are about. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from jupyter_pai.errors import ClientError, Fault
from jupyter_pai.excerpt import lines_to_show
from jupyter_pai.wire import FINAL_STATES, tasks_of
from jupyter_pai.wire_types import (
    Change,
    DocumentWarning,
    IdleWire,
    JobDetail,
    JobExit,
    Summary,
    TaskExitWire,
    TaskWire,
    Waiting,
    Why,
)

NONE: Mapping[str, str] = MappingProxyType({})
CARET_CONTEXT = 60
"""Characters of a long source line shown before and behind the place of a fault."""


def width(text: str) -> int:
    """Columns of a terminal that text takes; Chinese characters take two (Unicode UAX #11)."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def safe(text: str) -> str:
    """Text without control characters, which could repaint a terminal; line breaks become spaces."""
    return "".join(" " if char in "\r\n\t" else char for char in text if char.isprintable() or char in "\r\n\t")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned to the left, two spaces apart."""
    cells = [[safe("" if cell is None else str(cell)) for cell in row] for row in [head, *rows]]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    lines = (
        "  ".join(cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True)) for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def clock(time: str | None) -> str:
    """An ISO 8601 time as local wall-clock time; empty for None."""
    if not time:
        return ""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def state_words(job: Summary | JobDetail) -> str:
    """State with its phase, when the phase says more."""
    state, phase = job["state"], job["phase"]
    return state if phase in ("", "ended", state.lower()) else f"{state} ({phase})"


def job_list(jobs: Sequence[Summary], shared: Mapping[str, str] = NONE, contexts: Mapping[str, str] = NONE) -> str:
    """The list, a job a line; ``shared`` says with whom, by uid, and ``contexts`` where: columns when there are any."""
    if not jobs:
        return "No jobs."
    marked = any(job["uid"] in shared for job in jobs)
    rows = [
        (
            *([contexts[job["uid"]]] if contexts else []),
            job["name"],
            job["alias"],
            state_words(job),
            job["totalTaskNumber"],
            job["totalGpuNumber"],
            clock(job["submissionTime"]),
            *([shared.get(job["uid"], "")] if marked else []),
            job["why"],
        )
        for job in jobs
    ]
    mark, where = ["SHARED WITH"] if marked else [], ["CONTEXT"] if contexts else []
    return table((*where, "NAME", "ALIAS", "STATE", "TASKS", "GPUS", "SUBMITTED", *mark, "WHY"), rows)


def warning_lines(warnings: Sequence[DocumentWarning]) -> list[str]:
    """Warnings with their remedies."""
    lines = []
    for warning in warnings:
        lines.append(f"! {safe(warning['message'])}")
        if warning["hint"]:
            lines.append(f"  {safe(warning['hint'])}")
    return lines


def job_page(job: JobDetail) -> str:
    """All about a job, for a terminal or the plain form of a cell."""
    lines = [f"{safe(job['name'])}: {state_words(job)}"]
    if description := job.get("description"):
        lines.append(f"  {safe(description)}")
    if doubt := job.get("doubt"):
        lines.append(f"! {safe(doubt)}")
    if job["why"]:
        lines.append(f"  {safe(job['why'])}")
    if job["exit"]:
        lines += _exit_lines(job["exit"])
    if end := job.get("endAt"):
        lines.append(f"  stopped at {clock(end)} if it is not done before: it may run no longer")
    lines += idle_lines(job.get("idle"))
    if address := job.get("address"):
        lines.append(f"  answers at the workspace name {address}")
    lines.append(f"  submitted {clock(job['submissionTime'])} by {safe(job['username'])}, alias {job['alias']}")
    if job["retries"]:
        lines.append(f"  {job['retries']} retries so far, now attempt {job['attempt'] + 1}")
    lines += ["  " + line for line in warning_lines(job["warnings"])]
    rows = [
        (
            f"{task['role']}-{task['index']}",
            task_state(task),
            task["node"],
            " ".join(f"{label}={','.join(map(str, ports))}" for label, ports in task["ports"].items()),
            "" if task["exit"] is None else f"{task['exit']['status']} {task['exit']['message']}".strip(),
        )
        for task in tasks_of(job)
    ]
    if rows:
        lines += ["", table(("TASK", "STATE", "NODE", "PORTS", "EXIT"), rows)]
    addresses = [(service["label"], service["url"]) for service in job["services"]]
    if job["sshCommand"]:
        addresses.insert(0, ("ssh", job["sshCommand"]))
    if addresses:
        lines += ["", table(("ADDRESS", ""), addresses)]
    return "\n".join(lines)


def _caret(source: Sequence[str | None], fault: Fault) -> list[str]:
    """The faulty line with a mark under the place; nothing when it has none in the text, or may hold a secret."""
    line = source[fault.line - 1] if fault.line is not None and 1 <= fault.line <= len(source) else None
    if line is None:
        return []
    place = min(max((fault.column or 1) - 1, 0), len(line))
    start = max(place - CARET_CONTEXT, 0)
    before, behind = safe(line[start:place]), safe(line[place : place + CARET_CONTEXT])
    lead = "…" if start else ""
    tail = "…" if place + CARET_CONTEXT < len(line) else ""
    return [f"    {lead}{before}{behind}{tail}", "    " + " " * width(lead + before) + "^"]


def error_text(error: ClientError, *, source: str = "", name: str = "") -> str:
    """An error as short lines: place, reason, remedy, with the place in the document marked."""
    lines, excerpts = [safe(error.message)], lines_to_show(source)
    for fault in error.faults:
        position = ":".join(str(part) for part in (name, fault.line, fault.column) if part not in (None, ""))
        where = " ".join(part for part in (position, fault.path) if part)
        lines.append(f"  {where}: {safe(fault.message)}" if where else f"  {safe(fault.message)}")
        lines += _caret(excerpts, fault)
        if fault.hint:
            lines.append(f"    {safe(fault.hint)}")
    if error.hint and error.hint not in {fault.hint for fault in error.faults}:
        lines.append(f"  {safe(error.hint)}")
    return "\n".join(lines)


def task_state(task: TaskWire) -> str:
    """What a task is doing, or how it ended; of a kept one until when."""
    if task["keptUntil"]:
        return f"{task['phase']} until {clock(task['keptUntil'])}"
    return task["phase"] if task["phase"] != "ended" else task["state"]


def status_text(job: JobDetail) -> str:
    """The state in a line, and of a failure its exit status, what it means and what can be done."""
    lines = [state_line(job)]
    if job["exit"]:
        lines += _exit_lines(job["exit"])
    else:
        kept = [task for task in tasks_of(job) if task["keptUntil"] and task["exit"]]
        lines += [line for task in kept for line in _exit_lines(task["exit"], f"{task['role']}-{task['index']}: ")]
    return "\n".join(lines)


def idle_lines(idle: IdleWire | None) -> list[str]:
    """The warning that a job is about to be stopped, or since when nothing has used it."""
    if idle is None or idle["since"] is None:
        return []
    if idle["sentence"]:
        return [f"  {safe(idle['sentence'])}"]
    used = f", last by {idle['usedBy']}" if idle["usedBy"] else ""
    return [f"  not used since {clock(idle['since'])}{used}; unless it is, it is stopped at {clock(idle['stopAt'])}"]


def _exit_lines(exit_: JobExit | TaskExitWire | None, whose: str = "") -> list[str]:
    if exit_ is None:
        return []
    remedy = exit_.get("remedy")
    said = f"  {whose}exit status {exit_['status']}: {safe(exit_['message'])}"
    return [said, f"  {safe(remedy)}"] if remedy else [said]


def why_text(why: Why) -> str:
    """Why a job waits, who holds what it needs, and what would start it now."""
    waiting = why["waiting"]
    if waiting is None:
        said = why["sentence"] or ("it does not wait" if why["state"] != "WAITING" else "nothing is known yet")
        doubt = f"\n! {safe(doubted)}" if (doubted := why.get("doubt")) else ""
        return f"{safe(why['id'])}: {safe(said)}{doubt}"
    lines = [f"{safe(why['id'])}: {safe(waiting['texts']['en']['sentence'])}", *waiting_lines(waiting)]
    if not why["current"]:
        lines.append(f"  As of {clock(why['asOf'])}: the controller does not answer now.")
    holders = [(each["group"], each["user"], each["vc"], each["priority"], each["gpus"]) for each in waiting["holders"]]
    if holders:
        lines += ["", table(("HELD BY", "USER", "VC", "PRIORITY", "GPUS"), holders)]
    return "\n".join(lines)


def waiting_lines(waiting: Waiting) -> list[str]:
    """What would help a waiting job, its place in the queue, and when it is expected to start."""
    told = waiting["texts"]["en"]
    lines = [f"  {safe(told['remedy'])}"]
    lines.append(f"  {waiting['position']} of {waiting['waiting']} in the queue of {safe(waiting['vc'])}")
    if waiting["startsAt"]:
        lines.append(f"  starts about {clock(waiting['startsAt'])}. {safe(told['estimate'])}".rstrip())
    return lines + [f"  or: {change_words(change)}" for change in waiting["changes"][1:]]


def change_words(change: Change) -> str:
    """A change with which the job would start, without saying so."""
    match change["kind"]:
        case "type":
            return f"GPU type {safe(change['leafType'])}"
        case "virtual-cluster":
            return f"virtual cluster {safe(change['vc'])}"
        case "fewer-tasks":
            return f"{_counted(change['after'], 'task')} instead of {change['before']}"
        case "smaller-tasks":
            return f"{_counted(change['after'], 'GPU')} a task instead of {change['before']}"
        case "opportunistic":
            return "as an opportunistic job, which may be preempted"
        case "anywhere":
            return f"not within one {safe(change['detail'])}"
        case "drop-label":
            return f"without asking for the label {safe(change['detail'])} of nodes"
        case "tolerate":
            return f"an administrator lets it tolerate the taint {safe(change['detail'])}"
        case "uncordon":
            return f"an administrator uncordons {safe(', '.join(change['nodes']))}"
        case other:
            return safe(other)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def state_line(job: JobDetail) -> str:
    """One line for a change of state while waiting."""
    text = f"{safe(job['name'])}: {state_words(job)}"
    return f"{text}: {safe(job['why'])}" if job["why"] else text


def stop_line(job: JobDetail) -> str:
    """The answer to a stop request: the job may not have heard of it yet, so its state would confuse."""
    return state_line(job) if job["state"] in FINAL_STATES else f"{safe(job['name'])}: asked to stop"


def verdict(job: JobDetail) -> str:
    """How a job ended, in one sentence, and a line with the remedy where there is one."""
    text = f"{safe(job['name'])} {job['state'].lower()}"
    exit_ = job["exit"]
    if exit_ is None:
        return text
    task = ""
    if exit_["role"] is not None:  # an exit of a whole role names no task of it
        task = f" in {exit_['role']}" + (f"-{exit_['index']}" if exit_["index"] is not None else "")
    said = f"{text}{task} with exit status {exit_['status']}: {safe(exit_['message'])}".rstrip(": ")
    remedy = exit_.get("remedy")
    return f"{said}\n  {safe(remedy)}" if remedy else said
