"""What a Chinese user reads of jobs that wait and end is Chinese but for names, units and other programs' words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jupyter_pai.backend_words import said
from pai_backend.api.staleness import staleness
from pai_backend.controller.admission import Admission
from pai_backend.lifecycle import durations, exits, idleness, underuse
from pai_backend.lifecycle.derive import kept_sentence
from pai_backend.lifecycle.engine_words import engine_said
from pai_backend.lifecycle.events import Preempted, TaskExited
from pai_backend.lifecycle.preempt import as_preempted, make_way
from pai_backend.lifecycle.step import stepped
from pai_backend.model.booking import Booking
from pai_backend.model.budget import Budget, BudgetUse, Claim, Per, Resource, Window, near_text, used_up_text
from pai_backend.model.budget import Scope as BudgetScope
from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.job import Job, Phase, TaskExit
from pai_backend.model.node import Node
from pai_backend.model.rule_clock import UnderuseClock
from pai_backend.model.scrub import Scrubber
from pai_backend.model.text import Text, listed
from pai_backend.model.wording import with_wordings, wording_of
from pai_backend.scheduling.jobs import reasons
from pai_backend.scheduling.queue.entry import Scope
from pai_backend.scheduling.queue.policy import Cap, Excess
from pai_backend.scheduling.request import Group, Member, Need, Reason, WaitCode
from pai_backend.store.announcements import Announcement
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ENGINES = Path(__file__).resolve().parents[3] / "backend" / "pai_backend" / "engine"
WORD = re.compile(r"[A-Za-z]{2,}")
KNOWN = {
    *(
        "CPU",
        "GPU",
        "HUP",
        "Jupyter",
        "KILL",
        "MiB",
        "SSH",
        "UTC",
        "dev",
        "http",
        "idleTimeout",
        "jupyter",
        "kubelet",
        "maxDuration",
    ),
    *("pai", "pod", "podman", "release", "shm", "sshbarrierTimeout"),
    *("RACK", "V100", "ada", "away", "bob", "j1", "j2", "j3", "j4", "lab", "n1", "n2", "n3", "n4", "s1", "upgrade"),
    *("credits", "vision", "worker", "x2"),
}
"""Names, units, and terms of the field that Chinese texts have in English."""


BOOKING = Booking("b1", "vision", "s1", 4, NOW, NOW + timedelta(hours=9))


def node(name: str, **change: object) -> Node:
    values = {"name": name, "address": "127.0.0.1", "machine": "lab", "cpus": 8, "memory_mb": 1000, **change}
    return Node.model_validate(values)


def of_scheduling() -> Iterator[str]:
    nodes = {each.name: each for each in (node("n1"), node("n2", ready=False, reason="away"), node("n3"), node("n4"))}
    nodes["n4"] = node("n4", schedulable=False)
    need = Need(uid=make_job().tasks[0].uid, cpus=1, memory_mb=100, gpus=1)
    groups = (
        Group("ada~j1/g", "vision", (Member(2, 4, within="RACK"),), leaf_type="V100"),
        Group("ada~j1/g", "vision", (Member(2, 4),)),
    )
    for code in WaitCode:
        for group in groups:
            for holders in ((), ("j1", "j2", "j3", "j4")):
                for largest in (1, 9):
                    found = Reason(code, "vision", 8, 4, 6, 5, largest, holders=holders, nodes=tuple(nodes))
                    found = replace(found, booking=BOOKING if holders else replace(BOOKING, gpu_type="V100"))
                    yield reasons.about_cells(group, found, need, nodes)
    yield from (reasons.about_type("V100", ["x2"]), reasons.about_type("", []))
    large = Need(uid=need.uid, cpus=99, memory_mb=100)
    yield from (reasons.about_room(each, 2, [*nodes.values()]) for each in (need, large))
    yield from (reasons.about_room(need, 1, []), reasons.about_room(need, 1, [nodes["n2"]]))
    yield from (reasons.about_preempting(["j1"]), reasons.about_kept(["j1", "j2"]), reasons.about_kept([]))
    for scope in (Scope("vision", "ada"), Scope("", ""), Scope("", "ada", "s1")):
        for alone in (True, False):
            yield reasons.about_cap(Excess(scope, Cap(2, 3, 4), 1, 1, 1), alone=alone)
        yield reasons.about_turn_under_cap(scope)


def of_admission() -> Iterator[str]:
    job = make_job(user="ada", spec=make_spec(virtual_cluster="vision"))
    for until in (NOW, None):
        yield Admission(maintenance=Announcement("upgrade", until, "bob", NOW, NOW)).refusal(job)
    yield Admission().refusal(job)
    for scope in (BudgetScope("ada"), BudgetScope(group="lab"), BudgetScope("ada", "", "vision")):
        for resource, per in ((Resource.GPU, Per.MONTH), (Resource.CPU, Per.TOTAL), (Resource.MONEY, Per.TOTAL)):
            end = NOW if per is Per.MONTH else None
            claim = Claim(Budget("b", scope, resource, per, 100, 80, NOW, NOW, "bob"), Window(NOW, end), None)
            yield used_up_text(claim)
            yield from (near_text(BudgetUse(claim, used)) for used in (85, 100))


def of_clocks() -> Iterator[str]:
    known = {UseSource.GPU: Text("it has not been checked yet"), UseSource.KERNELS: "n1"}
    hour = timedelta(hours=1)
    clock = IdleClock(since=NOW, looked_at=NOW, unread=known)
    yield from (idleness.warning_sentence(clock, hour), idleness.held_sentence(clock, hour))
    yield idleness.stop_sentence(hour)
    for stops in (True, False):
        rule = underuse.IdleRule(5, hour, stops)
        yield underuse._told(UnderuseClock(attempt=0, counted_from=NOW), 1.5, rule, NOW, hour).text
        yield underuse.stop_sentence(rule)
    for own, put_off in ((True, False), (False, False), (False, True)):
        end = durations.End(NOW, hour, own, put_off)
        yield from (end.sentence, durations.warning(end))


def running() -> Job:
    job = make_job(spec=make_spec(roles=[make_role("worker", gpus=1)], retry_count=3))
    tasks = [
        each.model_copy(update={"phase": Phase.RUNNING, "placement": make_placement("n1"), "started_at": NOW})
        for each in job.tasks
    ]
    return job.model_copy(update={"tasks": tuple(tasks)})


def of_lifecycle() -> Iterator[str]:
    job = running()
    (task,) = job.tasks
    ended = stepped(job, TaskExited(task.uid, TaskExit(code=3, at=NOW)), NOW)
    forgotten = [each.model_copy(update={"forgotten": True}) for each in ended.tasks]
    again = stepped(ended.model_copy(update={"tasks": tuple(forgotten)}), TaskExited(task.uid, TaskExit(at=NOW)), NOW)
    assert again.why.startswith("retrying after: task worker-0: the command reports failure (exited with status 3)")
    yield again.why
    (asked,) = make_way(job, Preempted((task.uid,), "j2", 10)).tasks
    yield exits.explained(as_preempted(asked, TaskExit(reason="stopped", at=NOW))).message
    for rule in exits.RULES:
        status = rule.statuses[0] if rule.statuses else None
        engine = "exited with status 1"
        yield exits.explained(TaskExit(code=status, reason=rule.reason or "exited", message=engine, at=NOW)).message
    kept = task.model_copy(update={"phase": Phase.KEPT, "kept_until": NOW})
    yield kept_sentence(job.model_copy(update={"tasks": (kept, kept, kept)}))
    yield staleness(job, [node("n1", ready=False, reason="away")], (), {"n1": 40.0})
    yield staleness(job, [], ("n1",), {})


def test_nothing_is_left_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LANG", "zh_CN")
    every = [text for of in (of_scheduling, of_admission, of_clocks, of_lifecycle) for text in of() if text]
    assert len(every) > 100
    for text in every:
        wording = wording_of(text)
        assert wording is not None, text
        told = said({"message": text, "wording": wording.model_dump()})
        assert set(WORD.findall(told)) <= KNOWN, told


def test_what_is_stored_is_the_same_text_again() -> None:
    job = running()
    (task,) = job.tasks
    ended = stepped(job, TaskExited(task.uid, TaskExit(code=3, at=NOW)), NOW)
    again = type(ended.tasks[0]).model_validate_json(ended.tasks[0].model_dump_json())
    assert again == ended.tasks[0]
    assert again.exit is not None
    assert isinstance(again.exit.message, Text)
    old = {"code": 3, "reason": "exited", "message": "the command reports failure", "at": NOW}
    assert TaskExit.model_validate(old).wording is None, "of before the templates: shown as it is"


def test_a_wording_of_another_text_is_not_believed() -> None:
    wording = wording_of(Text("all tasks are done"))
    assert wording is not None
    read = TaskExit.model_validate({"message": "another", "wording": wording.model_dump(), "at": NOW})
    assert (read.message, read.wording) == ("another", None)


def test_events_have_the_wordings_of_their_texts_and_no_others() -> None:
    told = with_wordings({"why": Text("waits for its turn"), "by": "ada", "reason": "", "text": "old"})
    assert told == {
        "why": "waits for its turn",
        "by": "ada",
        "reason": "",
        "text": "old",
        "why_wording": {"template": "waits for its turn", "arguments": {}},
    }


def test_secrets_in_the_words_of_an_engine_are_in_no_wording() -> None:
    scrubber = Scrubber(["s3cr3tvalue", "executed: no"])
    text = scrubber.text(engine_said("the command could not be executed: no s3cr3tvalue here"))
    assert "s3cr3t" not in repr(wording_of(text))
    assert "executed: no" not in text
    kept = Scrubber(["s3cr3tvalue"]).text(engine_said("the command could not be executed: s3cr3tvalue"))
    assert wording_of(kept) is not None
    assert kept == "the command could not be executed: " + "*" * 11


def test_long_lists_say_how_many_there_are() -> None:
    assert listed(["a", "b", "c", "d"], 3) == "a, b, c and 1 more"
    assert listed(["a"], 3) == "a"
    assert listed([]) == ""


MESSAGES = {"EndCause": 1, "GateWait": 0, "StartWait": 1, "StartTrouble": 2, "_refuse": 1, "_settle": 2, "_said": 0}
"""Calls of the engines that have a message for users, and at which place."""
SOURCES = [
    *sorted((ENGINES / "local" / "shim").glob("*.py")),
    *(ENGINES / "local" / name for name in ("ledger.py", "reading.py")),
    *sorted((ENGINES / "kubernetes" / "status").glob("*.py")),
    ENGINES / "kubernetes" / "gangs.py",
]


def _filled(expression: ast.expr) -> Iterator[str]:
    """The texts that an expression may be, with something in each place."""
    match expression:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _filled(body)
            yield from _filled(orelse)


def engine_messages() -> Iterator[tuple[str, str]]:
    """What engines say of tasks in their own words."""
    for path in SOURCES:
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: list[ast.expr] = []
            match each:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in MESSAGES:
                    found = args[MESSAGES[name] : MESSAGES[name] + 1]
                case ast.Assign(targets=[ast.Name(id="message")], value=value):
                    found = [value]
                case ast.Tuple(elts=[ast.Constant(), text, ast.Constant(value="user" | "platform" | "resource")]):
                    found = [text]
            for part in found:
                yield from ((path.name, message) for message in _filled(part) if " " in message)


def test_what_engines_say_is_recognised() -> None:
    every = [*engine_messages()]
    assert len(every) > 50
    unknown = {text for _, text in every if not isinstance(engine_said(text), Text)}
    assert unknown == PARTS, "a sentence of an engine, or of the launcher in Go, needs its template in engine_words"


PARTS = {
    "7, and what runs the command in it left no word",
    "7: what runs the command in it was killed, perhaps for lack of memory",
    "the program 7 could not be executed: 7",
    "stopped while 7",
    "7; 7",
    "asked to end",  # of a task that runs, which is not told
}
"""What is put together of texts that are looked for in :func:`test_sentences_that_are_put_together_are_recognised`."""


@pytest.mark.parametrize(
    "text",
    [
        "its container ended with status 137: what runs the command in it was killed, perhaps for lack of memory",
        "its container ended with status 1, and what runs the command in it left no word",
        "the program that fetches the image could not be executed: no such file",
        "the program that fetches the inputs exited with status 1",
        "stopped while its inputs were fetched",
        "stopped on request; ended by signal 15 (SIGTERM); 2 of its processes could not be killed",
        "exited with status 1; another program listens on its port 80 (http)",
        "its node evicted it (The node was low on resource: memory. Used 3; 4 allowed); ended by signal 9",
        "hdfs://h:9000/x does not exist; upload it (`pai upload PATH URI`) or correct the document",
        "its image cannot be fetched (ErrImagePull: not found)",
    ],
)
def test_sentences_that_are_put_together_are_recognised(text: str) -> None:
    said = engine_said(text)
    assert isinstance(said, Text)
    assert said == text
