"""Examines one task: asks what its system is, does all probes side by side, takes everything away again.

It blocks, for a minute at the most; callers on an event loop run it in a thread.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from typing_extensions import TypedDict  # pydantic reads no other on Python 3.11

from jupyter_pai.doctor import facts as fact
from jupyter_pai.doctor.clients import CLIENTS, ClientVerdict, verdict
from jupyter_pai.doctor.facts import Facts
from jupyter_pai.doctor.findings import Finding, FindingText
from jupyter_pai.doctor.outcome import Observations, Probe, StepOutcome
from jupyter_pai.doctor.probes import NEED_PLACE, SINGLE, Bench, forwarding
from jupyter_pai.doctor.running import SWEEP_LIMIT_S, OpenSshRoute, ProgramExit
from jupyter_pai.language import language, tr
from jupyter_pai.render import padded

AT_ONCE = 4
"""Probes at the same time: each is one or two connections, and a gateway limits logins from one address."""


class FindingWire(TypedDict):
    """A finding as JSON."""

    code: str
    blocking: bool
    texts: dict[str, FindingText]


class VerdictWire(TypedDict):
    """A verdict as JSON."""

    client: str
    name: str
    works: bool
    findings: list[FindingWire]


class DoctorReport(TypedDict):
    """What the doctor found. ``leftBehind`` is empty unless something could not be removed from the task."""

    alias: str
    works: bool
    clients: list[VerdictWire]
    leftBehind: str


def ask(way: OpenSshRoute, script: str) -> tuple[Facts, StepOutcome]:
    """What the task's system is, and whether one can log in. What the script makes there, :func:`sweep` removes."""
    ran = way.execute("exec sh", script.encode())
    facts = fact.read(ran.out.decode(errors="replace"))
    return facts, StepOutcome(facts.complete, "" if facts.complete else ran.complaint)


def sweep(way: OpenSshRoute, facts: Facts) -> str:
    """Remove the probes' directory from the task; returns its path when that did not succeed."""
    if not facts.place:
        return ""
    ran = way.execute(f"rm -rf -- {shlex.quote(facts.place)}", limit_s=SWEEP_LIMIT_S)
    return "" if ran.code == 0 else facts.place


def observe(way: OpenSshRoute, find_cause: Callable[[ProgramExit], Finding] | None = None) -> Observations:
    """Do everything that can be done with a task, and leave nothing in it.

    ``find_cause`` is called with a login that failed, and says why.
    """
    facts, login = ask(way, fact.SYSTEM + fact.PLACE)
    if not login.worked:
        found = find_cause(way.execute("true")) if find_cause is not None and not facts.place else None
        return Observations(facts, {Probe.LOGIN: login}, sweep(way, facts), found)
    outcomes = {Probe.LOGIN: login}
    try:
        with tempfile.TemporaryDirectory(prefix="pai-doctor-") as here, ThreadPoolExecutor(AT_ONCE) as pool:
            bench = Bench(way, facts, Path(here))
            ports = pool.submit(forwarding, bench)
            running = {
                probe: pool.submit(run, bench)
                for probe, run in SINGLE.items()
                if facts.place or probe not in NEED_PLACE
            }
            outcomes |= {probe: future.result() for probe, future in running.items()}
            outcomes |= ports.result()
    finally:
        left_behind = sweep(way, facts)
    return Observations(facts, outcomes, left_behind)


def report(way: OpenSshRoute, seen: Observations, clients: Sequence[str] = ()) -> DoctorReport:
    """The verdicts on programs, on all of them when none is named. Pure."""
    verdicts = [verdict(client, seen) for client in clients or CLIENTS]
    return DoctorReport(
        alias=way.alias,
        works=all(each.works for each in verdicts),
        clients=[_wire(each) for each in verdicts],
        leftBehind=seen.left_behind,
    )


def _wire(each: ClientVerdict) -> VerdictWire:
    findings = [FindingWire(code=found.code, blocking=found.blocking, texts=found.texts) for found in each.findings]
    return VerdictWire(client=each.client, name=each.name, works=each.works, findings=findings)


def report_text(found: DoctorReport, spoken: str = "") -> str:
    """A report for people: a line for each program, and below it what to change.

    ``spoken``: a language in place of the user's.
    """
    lines = []
    for each in found["clients"]:
        lines.append(f"{padded(tr('works') if each['works'] else tr('does not work'), 13)}  {tr(each['name'])}")
        for finding in each["findings"]:
            told = finding["texts"][spoken or language()]
            lines += [f"    {told['what']}", f"      -> {told['remedy']}"]
    if found["leftBehind"]:
        lines.append(tr("This could not be removed from the task: {names}", names=found["leftBehind"]))
    return "\n".join(lines)
