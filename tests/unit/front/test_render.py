"""Plain text: tables, pages and marked places."""

from __future__ import annotations

from typing import cast

from jupyter_pai import render
from jupyter_pai.errors import Fault, InvalidDocument
from jupyter_pai.widgets.html import job_html
from jupyter_pai.wire_types import Change, JobDetail, Why
from tests.support.fake_backend import job_body, task_body


def error_with(fault: Fault) -> InvalidDocument:
    return InvalidDocument("The document has a fault.", faults=[fault])


def test_a_fault_is_marked_below_its_place() -> None:
    source = '{\n  "image": 5\n}'
    fault = Fault("must be text", "$.image", 2, 12, "Put it in quotes.")
    assert render.error_text(error_with(fault), source=source, name="job.json") == (
        "The document has a fault.\n"
        "  job.json:2:12 $.image: must be text\n"
        '      "image": 5\n'
        "               ^\n"
        "    Put it in quotes."
    )


def test_the_mark_stands_right_behind_wide_characters() -> None:
    text = render.error_text(error_with(Fault("no", "", 1, 4)), source='"名称x')
    line, mark = text.splitlines()[-2:]
    assert line == '    "名称x'
    assert mark == " " * 4 + " " * 5 + "^"


def test_a_long_line_is_shown_around_the_place_only() -> None:
    source = "a" * 500 + "!" + "b" * 500
    line, mark = render.error_text(error_with(Fault("here", "", 1, 501)), source=source).splitlines()[-2:]
    assert line[mark.index("^")] == "!"
    assert line.strip().startswith("…")
    assert line.strip().endswith("…")
    assert len(line) < 2 * render.CARET_CONTEXT + 10


def test_places_outside_the_text_mark_nothing() -> None:
    for line, column in ((99, 1), (0, 1), (None, None)):
        text = render.error_text(error_with(Fault("here", "$.x", line, column)), source="one line")
        assert "^" not in text


def test_the_end_of_a_line_can_be_marked() -> None:
    text = render.error_text(error_with(Fault("unclosed", "", 1, 2)), source="{")
    assert text.splitlines()[-2:] == ["    {", "     ^"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in render.error_text(error_with(Fault("bad \x1b[2J\x07 text")), source="")
    assert render.safe("a\x1b]0;x\x07b\nc") == "a]0;xb c"


def test_columns_line_up_with_chinese_names() -> None:
    lines = render.table(("NAME", "X"), [("训练", 1), ("abcdef", 2)]).splitlines()
    assert [render.width(line[: line.rindex(line.split()[-1])]) for line in lines] == [8, 8, 8]


def test_a_description_is_shown_on_one_line_and_as_text() -> None:
    job = job_body("train", "j1", description="image <b>classification</b>,\ncifar10\x1b[31m")
    assert render.job_page(job).splitlines()[1] == "  image <b>classification</b>, cifar10[31m"  # type: ignore[arg-type]
    assert "image &lt;b&gt;classification&lt;/b&gt;" in job_html(job)  # type: ignore[arg-type]
    assert render.job_page(job_body("train", "j1", description="")) == render.job_page(job_body("train", "j1"))  # type: ignore[arg-type]


def test_the_page_of_a_job_shows_why_warnings_tasks_and_addresses() -> None:
    warning = {"code": "open-jupyter", "message": "Open to all.", "path": "$.x", "hint": "Drop --ip."}
    page = render.job_page(job_body("train", "j1", why="No free GPU.", warnings=[warning]))  # type: ignore[arg-type]
    assert page.startswith("train: WAITING (queued)\n  No free GPU.")
    assert "! Open to all.\n    Drop --ip." in page
    assert "main-0  queued  carol  web=15001" in page
    assert "ssh      ssh -p 2222 j1@127.0.0.1" in page
    assert "http://j1--web.localhost:8000/" in page


def test_the_verdict_names_the_task_that_decided() -> None:
    exit_ = {"status": 3, "message": "the command failed", "role": "ps", "index": 1}
    job = job_body("train", "j1", state="FAILED", phase="ended", exit=exit_)
    assert render.verdict(job) == "train failed in ps-1 with exit status 3: the command failed"  # type: ignore[arg-type]
    assert render.verdict({**job, "exit": None}) == "train failed"  # type: ignore[typeddict-item]


def test_a_failure_comes_with_what_it_means_and_what_to_do() -> None:
    exit_ = {"status": 127, "message": "task ps-0: not found", "remedy": "Check PATH.", "role": "ps", "index": 0}
    job = job_body("train", "j1", state="FAILED", phase="ended", exit=exit_)
    told = "  exit status 127: task ps-0: not found\n  Check PATH."
    assert render.status_text(job) == f"train: FAILED\n{told}"  # type: ignore[arg-type]
    assert told in render.job_page(job)  # type: ignore[arg-type]
    assert render.verdict(job).endswith("exit status 127: task ps-0: not found\n  Check PATH.")  # type: ignore[arg-type]
    assert render.status_text(job_body("train", "j1")) == "train: WAITING (queued)"  # type: ignore[arg-type]


def test_a_kept_task_is_shown_with_its_deadline_and_failure() -> None:
    exit_ = {"status": 3, "message": "the command reports failure", "remedy": "Read its log."}
    task = {**task_body("j1", "FAILED", "kept for debugging"), "keptUntil": "2026-11-28T12:00:00Z", "exit": exit_}
    roles = [{"name": "main", "taskStatuses": [task]}]
    job = job_body("train", "j1", state="RUNNING", phase="kept for debugging", why="it is kept", taskRoles=roles)
    until = render.clock("2026-11-28T12:00:00Z")
    assert f"main-0  kept for debugging until {until}" in render.job_page(job)  # type: ignore[arg-type]
    assert render.status_text(job) == (  # type: ignore[arg-type]
        "train: RUNNING (kept for debugging): it is kept\n"
        "  main-0: exit status 3: the command reports failure\n  Read its log."
    )


def test_an_empty_list_says_so() -> None:
    assert render.job_list([]) == "No jobs."


def test_a_stop_request_is_answered_as_such_and_a_late_one_with_the_end() -> None:
    running, ended = (cast(JobDetail, job_body("train", "j1", state=state)) for state in ("RUNNING", "SUCCEEDED"))
    assert render.stop_line(running) == "train: asked to stop"
    assert render.stop_line(ended).startswith("train: SUCCEEDED")


def why_body(**changes: object) -> Why:
    waiting = {
        "cause": "priority",
        "vc": "vision",
        "position": 2,
        "waiting": 5,
        "startsAt": None,
        "restsOn": [],
        "holders": [],
        "changes": [],
        "texts": {"en": {"sentence": "It needs 4 GPUs.", "remedy": "Wait.", "estimate": ""}},
    }
    known = {"state": "WAITING", "phase": "queued", "sentence": "short", "current": True, "asOf": None}
    body = {"id": "ann~job", **known, "waiting": waiting | changes}
    return cast(Why, body)


def test_why_a_job_waits_is_told_with_the_remedy_and_the_place_in_the_queue() -> None:
    assert render.why_text(why_body()).splitlines() == [
        "ann~job: It needs 4 GPUs.",
        "  Wait.",
        "  2 of 5 in the queue of vision",
    ]


def test_a_start_is_told_as_an_estimate_with_what_it_rests_on() -> None:
    at = "2026-11-21T14:20:00Z"
    texts = {"en": {"sentence": "It needs 4 GPUs.", "remedy": "Wait.", "estimate": "This time is an estimate."}}
    lines = render.why_text(why_body(startsAt=at, texts=texts)).splitlines()
    assert lines[-1] == f"  starts about {render.clock(at)}. This time is an estimate."


def test_further_changes_that_would_start_a_job_are_listed_behind_the_first() -> None:
    amounts = {"leafType": "V100", "vc": "tools", "member": 0, "before": 4, "after": 2}
    shape = {**amounts, "nodes": ["carol", "dan"], "detail": "zone=a"}
    groups = ("fewer-tasks", "type", "virtual-cluster", "fewer-tasks", "smaller-tasks", "opportunistic")
    kinds = (*groups, "anywhere", "drop-label", "tolerate", "uncordon", "magic")
    lines = render.why_text(why_body(changes=[{"kind": kind, **shape} for kind in kinds])).splitlines()
    assert [line.strip() for line in lines if line.startswith("  or: ")] == [
        "or: GPU type V100",
        "or: virtual cluster tools",
        "or: 2 tasks instead of 4",
        "or: 2 GPUs a task instead of 4",
        "or: as an opportunistic job, which may be preempted",
        "or: not within one zone=a",
        "or: without asking for the label zone=a of nodes",
        "or: an administrator lets it tolerate the taint zone=a",
        "or: an administrator uncordons carol, dan",
        "or: magic",
    ]


def test_one_task_is_no_plural() -> None:
    one = {"kind": "fewer-tasks", "leafType": "", "vc": "", "member": 0, "before": 4, "after": 1}
    assert render.change_words(cast(Change, one)) == "1 task instead of 4"


def test_who_holds_what_a_job_needs_is_a_table() -> None:
    holder = {"group": "bob~night/default", "user": "bob", "vc": "speech", "priority": 10, "gpus": 8, "until": None}
    lines = render.why_text(why_body(holders=[holder])).splitlines()
    assert lines[-2].split() == ["HELD", "BY", "USER", "VC", "PRIORITY", "GPUS"]
    assert lines[-1].split() == ["bob~night/default", "bob", "speech", "10", "8"]


def test_an_old_answer_says_so() -> None:
    old = why_body() | {"current": False, "asOf": "2026-11-21T12:00:00Z"}
    assert "the controller does not answer now" in render.why_text(old)


def test_a_job_that_waits_for_no_gpu_has_its_sentence() -> None:
    assert render.why_text(why_body() | {"waiting": None}) == "ann~job: short"
    ran = why_body() | {"waiting": None, "state": "RUNNING", "sentence": ""}
    assert render.why_text(ran) == "ann~job: it does not wait"
    silent = ran | {"doubt": "node dan has not reported for 12 s."}
    assert render.why_text(silent).splitlines()[-1] == "! node dan has not reported for 12 s."


def test_the_end_of_a_job_that_may_not_run_for_ever_is_told() -> None:
    end = "2026-11-22T09:00:00Z"
    page = render.job_page(job_body("train", "j1", endAt=end))  # type: ignore[arg-type]
    assert f"  stopped at {render.clock(end)} if it is not done before: it may run no longer" in page.splitlines()
    assert "stopped at" not in render.job_page(job_body("train", "j1"))  # type: ignore[arg-type]


def test_a_job_page_tells_since_when_nothing_has_used_it_or_warns() -> None:
    idle = {"since": "2026-11-22T08:00:00Z", "stopAt": "2026-11-22T09:00:00Z", "usedBy": "ssh", "sentence": ""}
    page = render.job_page(job_body("train", "j1", idle=idle))  # type: ignore[arg-type]
    since, until = (render.clock(str(idle[name])) for name in ("since", "stopAt"))
    assert f"  not used since {since}, last by ssh; unless it is, it is stopped at {until}" in page.splitlines()
    warned = {**idle, "sentence": "Nothing has used this job since 8."}
    page = render.job_page(job_body("train", "j1", idle=warned))  # type: ignore[arg-type]
    assert "  Nothing has used this job since 8." in page.splitlines()
    assert "used" not in render.job_page(job_body("train", "j1", idle=None))  # type: ignore[arg-type]


def test_what_may_be_out_of_date_is_marked_before_all_else() -> None:
    job = job_body("train", "j1", doubt="What is shown may be out of date: <away>.")
    assert render.job_page(job).splitlines()[1] == "! What is shown may be out of date: <away>."  # type: ignore[arg-type]
    assert "out of date: &lt;away&gt;" in job_html(job)  # type: ignore[arg-type]
