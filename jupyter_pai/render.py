"""Plain text for people: tables, a job's page, and errors with the place they are about. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from jupyter_pai.backend_words import said
from jupyter_pai.durations import duration_text
from jupyter_pai.errors import ClientError, Fault
from jupyter_pai.excerpt import lines_to_show
from jupyter_pai.language import language, tr
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
    Told,
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


def padded(text: str, columns: int) -> str:
    """Text that takes at least so many columns."""
    return text + " " * (columns - width(text))


def aligned(*rows: tuple[str, str]) -> list[str]:
    """Lines of a name and its value, the values below each other."""
    size = max(width(name) for name, _ in rows)
    return [f"  {padded(name, size)}  {value}" for name, value in rows]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned to the left, two spaces apart; the head is translated, what is in the rows is not."""
    cells = [[safe("" if cell is None else str(cell)) for cell in row] for row in [list(map(tr, head)), *rows]]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    lines = ("  ".join(padded(cell, size) for cell, size in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def clock(time: str | None) -> str:
    """An ISO 8601 time as local wall-clock time; empty for None."""
    if not time:
        return ""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def state_words(job: Summary | JobDetail) -> str:
    """State with its phase, when the phase says more."""
    state, phase = job["state"], job["phase"]
    if phase in ("", "ended", state.lower()):
        return state_name(state)
    return tr("{state} ({phase})", state=state_name(state), phase=tr(phase))


def state_name(state: str) -> str:
    """A job's or task's state, as a table shows it."""
    return tr(state)


def job_list(
    jobs: Sequence[Summary],
    shared: Mapping[str, str] = NONE,
    contexts: Mapping[str, str] = NONE,
) -> str:
    """The list, a job a line; ``shared`` says with whom, by uid, and ``contexts`` where: columns when there are any."""
    if not jobs:
        return tr("No jobs.")
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
            said(job, "why"),
        )
        for job in jobs
    ]
    mark, where = ["SHARED WITH"] if marked else [], ["CONTEXT"] if contexts else []
    return table((*where, "NAME", "ALIAS", "STATE", "TASKS", "GPUS", "SUBMITTED", *mark, "WHY"), rows)


def warning_lines(warnings: Sequence[DocumentWarning]) -> list[str]:
    """Warnings with their remedies."""
    lines = []
    for warning in warnings:
        lines.append(f"! {safe(said(warning))}")
        if warning["hint"]:
            lines.append(f"  {safe(said(warning, 'hint'))}")
    return lines


def job_page(job: JobDetail) -> str:
    """All about a job, for a terminal or the plain form of a cell."""
    lines = [f"{safe(job['name'])}: {state_words(job)}"]
    if description := job.get("description"):
        lines.append(f"  {safe(description)}")
    lines += [f"! {safe(said(job, each))}" for each in ("doubt", "ruleWarning") if job.get(each)]
    if job["why"]:
        lines.append(f"  {safe(said(job, 'why'))}")
    if job["exit"]:
        lines += _exit_lines(job["exit"])
    if end := job.get("endAt"):
        lines.append("  " + tr("stopped at {time} if it is not done before: it may run no longer", time=clock(end)))
    lines += idle_lines(job.get("idle"))
    if address := job.get("address"):
        lines.append("  " + tr("answers at the workspace name {address}", address=address))
    submitted = {"time": clock(job["submissionTime"]), "user": safe(job["username"]), "alias": job["alias"]}
    lines.append("  " + tr("submitted {time} by {user}, alias {alias}", **submitted))
    if job["retries"]:
        tried = {"retries": job["retries"], "attempt": job["attempt"] + 1}
        lines.append("  " + tr("{retries} retries so far, now attempt {attempt}", **tried))
    lines += ["  " + line for line in warning_lines(job["warnings"])]
    rows = [
        (
            f"{task['role']}-{task['index']}",
            task_state(task),
            task["node"],
            " ".join(f"{label}={','.join(map(str, ports))}" for label, ports in task["ports"].items()),
            "" if task["exit"] is None else f"{task['exit']['status']} {said(task['exit'])}".strip(),
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
    lines, excerpts = [safe(tr(error.message))], lines_to_show(source)
    for fault in error.faults:
        position = ":".join(str(part) for part in (name, fault.line, fault.column) if part not in (None, ""))
        where = " ".join(part for part in (position, fault.path) if part)
        lines.append(f"  {where}: {safe(tr(fault.message))}" if where else f"  {safe(tr(fault.message))}")
        lines += _caret(excerpts, fault)
        if fault.hint:
            lines.append(f"    {safe(tr(fault.hint))}")
    if error.hint and error.hint not in {fault.hint for fault in error.faults}:
        lines.append(f"  {safe(tr(error.hint))}")
    return "\n".join(lines)


def task_state(task: TaskWire) -> str:
    """What a task is doing, or how it ended; of a kept one until when."""
    if task["keptUntil"]:
        return tr("{phase} until {time}", phase=tr(task["phase"]), time=clock(task["keptUntil"]))
    return tr(task["phase"]) if task["phase"] != "ended" else state_name(task["state"])


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
        return [f"  {safe(said(idle, 'sentence'))}"]
    known = {"since": clock(idle["since"]), "stop": clock(idle["stopAt"])}
    if user := idle["usedBy"]:
        line = tr("not used since {since}, last by {user}; unless it is, it is stopped at {stop}", user=user, **known)
    else:
        line = tr("not used since {since}; unless it is, it is stopped at {stop}", **known)
    return [f"  {line}"]


def _exit_lines(exit_: JobExit | TaskExitWire | None, whose: str = "") -> list[str]:
    if exit_ is None:
        return []
    remedy = exit_.get("remedy")
    line = f"  {whose}{safe(exit_words(exit_))}"
    return [line, f"  {safe(tr(remedy))}"] if remedy else [line]


def exit_words(exit_: JobExit | TaskExitWire) -> str:
    """The exit status and what it means."""
    return tr("exit status {status}: {message}", status=exit_["status"], message=said(exit_))


def why_text(why: Why) -> str:
    """Why a job waits, who holds what it needs, and what would start it now."""
    waiting = why["waiting"]
    if waiting is None:
        unknown = tr("it does not wait") if why["state"] != "WAITING" else tr("nothing is known yet")
        doubt = f"\n! {safe(said(why, 'doubt'))}" if why.get("doubt") else ""
        return f"{safe(why['id'])}: {safe(said(why, 'sentence') or unknown)}{doubt}"
    lines = [f"{safe(why['id'])}: {safe(told_in_language(waiting['texts'])['sentence'])}", *waiting_lines(waiting)]
    if not why["current"]:
        lines.append("  " + tr("As of {time}: the controller does not answer now.", time=clock(why["asOf"])))
    holders = [(each["group"], each["user"], each["vc"], each["priority"], each["gpus"]) for each in waiting["holders"]]
    if holders:
        lines += ["", table(("HELD BY", "USER", "VC", "PRIORITY", "GPUS"), holders)]
    return "\n".join(lines)


def told_in_language(texts: Mapping[str, Told]) -> Told:
    """The words of the user's language; English where a backend of another release has no others."""
    return texts.get(language()) or texts["en"]


def waiting_lines(waiting: Waiting) -> list[str]:
    """What would help a waiting job, its place in the queue, and when it is expected to start."""
    told = told_in_language(waiting["texts"])
    place = {"position": waiting["position"], "number": waiting["waiting"], "vc": safe(waiting["vc"])}
    lines = [f"  {safe(told['remedy'])}", "  " + tr("{position} of {number} in the queue of {vc}", **place)]
    if waiting["startsAt"]:
        starts = {"time": clock(waiting["startsAt"]), "estimate": safe(told["estimate"])}
        lines.append("  " + tr("starts about {time}. {estimate}", **starts).rstrip())
    return lines + ["  " + tr("or: {change}", change=change_words(change)) for change in waiting["changes"][1:]]


def change_words(change: Change) -> str:
    """A change with which the job would start, without saying so."""
    match change["kind"]:
        case "type":
            return tr("GPU type {type}", type=safe(change["leafType"]))
        case "virtual-cluster":
            return tr("virtual cluster {vc}", vc=safe(change["vc"]))
        case "fewer-tasks" if change["after"] == 1:
            return tr("1 task instead of {before}", before=change["before"])
        case "fewer-tasks":
            return tr("{after} tasks instead of {before}", after=change["after"], before=change["before"])
        case "smaller-tasks" if change["after"] == 1:
            return tr("1 GPU a task instead of {before}", before=change["before"])
        case "smaller-tasks":
            return tr("{after} GPUs a task instead of {before}", after=change["after"], before=change["before"])
        case "max-duration":
            return tr("a maxDuration of {time} at most", time=duration_text(change["after"]))
        case "opportunistic":
            return tr("as an opportunistic job, which may be preempted")
        case "anywhere":
            return tr("not within one {cell}", cell=safe(change["detail"]))
        case "drop-label":
            return tr("without asking for the label {label} of nodes", label=safe(change["detail"]))
        case "tolerate":
            return tr("an administrator lets it tolerate the taint {taint}", taint=safe(change["detail"]))
        case "uncordon":
            return tr("an administrator uncordons {nodes}", nodes=safe(", ".join(change["nodes"])))
        case other:
            return safe(other)


def state_line(job: JobDetail) -> str:
    """One line for a change of state while waiting."""
    text = f"{safe(job['name'])}: {state_words(job)}"
    return f"{text}: {safe(said(job, 'why'))}" if job["why"] else text


def stop_line(job: JobDetail) -> str:
    """The answer to a stop request: the job may not have heard of it yet, so its state would confuse."""
    return state_line(job) if job["state"] in FINAL_STATES else tr("{name}: asked to stop", name=safe(job["name"]))


def verdict(job: JobDetail) -> str:
    """How a job ended, in one sentence, and a line with the remedy where there is one."""
    exit_, name, state = job["exit"], safe(job["name"]), tr(job["state"].lower())
    if exit_ is None:
        return f"{name} {state}"
    known = {"name": name, "state": state, "status": exit_["status"]}
    if exit_["role"] is None:
        line = tr("{name} {state} with exit status {status}", **known)
    else:  # an exit of a whole role names no task of it
        task = exit_["role"] if exit_["index"] is None else f"{exit_['role']}-{exit_['index']}"
        line = tr("{name} {state} in {task} with exit status {status}", task=task, **known)
    if message := safe(said(exit_)):
        line = f"{line}: {message}"
    remedy = exit_.get("remedy")
    return f"{line}\n  {safe(tr(remedy))}" if remedy else line
