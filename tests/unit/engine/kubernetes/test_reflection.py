"""What each line and each end of a watch means, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from pai_backend.engine.kubernetes.failures import AccessError, Busy, ClusterError, Invalid, Unreachable
from pai_backend.engine.kubernetes.failures import ApiGone as VersionGone
from pai_backend.engine.kubernetes.handover import ObjectGone, ResourceListed, Seen
from pai_backend.engine.kubernetes.objects import INITIAL_EVENTS_END, slim_pod
from pai_backend.engine.kubernetes.reflection import DOUBT, Closed, End, Full, Reflection, Silent, Step, StreamFault

EARLY, LONG = Closed(0.5), Closed(600.0)


def pod(uid: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": f"task-{uid}", "resourceVersion": str(version), **more}}


def event(kind: str, obj: Any) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def bookmark(version: int, *, ends: bool = False) -> dict[str, Any]:
    annotations = {INITIAL_EVENTS_END: "true"} if ends else {}
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


def page(version: int, *pods: dict[str, Any], rest: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": rest}, "items": list(pods)}


def watching(*pods: dict[str, Any], version: int = 10, streaming: bool = True) -> Reflection:
    """A reflection that has listed these and begins to watch."""
    reflection = Reflection("pods", streaming=False)
    reflection.open()
    reflection.page(page(version, *pods))
    if streaming:
        reflection = Reflection("pods")
        reflection.open()
        for obj in pods:
            reflection.line(event("ADDED", obj))
        reflection.line(bookmark(version, ends=True))
    reflection.open()
    return reflection


def refused(kind: type[Busy] | type[Invalid] | type[VersionGone], status: int) -> ClusterError:
    return kind(f"answers {status}", status=status)


def test_pages_are_told_when_the_last_one_is_there() -> None:
    reflection = Reflection("pods", streaming=False)
    reflection.open()
    assert reflection.page(page(5, pod("a", 1), rest="more")) == []
    assert reflection.objects == {}
    assert reflection.rest == "more"
    assert reflection.page(page(5, pod("b", 2))) == [
        Seen("pods", pod("a", 1)),
        Seen("pods", pod("b", 2)),
        ResourceListed("pods"),
    ]
    assert (reflection.step, reflection.version, reflection.rest) == (Step.WATCH, "5", "")


def test_a_streamed_list_is_told_at_its_marked_bookmark() -> None:
    reflection = Reflection("pods")
    reflection.open()
    assert reflection.line(event("ADDED", pod("a", 1))) == []
    assert reflection.line(bookmark(3)) == []
    assert reflection.step is Step.STREAM
    assert reflection.line(bookmark(4, ends=True)) == [Seen("pods", pod("a", 1)), ResourceListed("pods")]
    assert (reflection.step, reflection.version) == (Step.WATCH, "4")
    assert reflection.line(event("MODIFIED", pod("a", 7))) == [Seen("pods", pod("a", 7))]


def test_what_is_deleted_while_a_list_is_streamed_is_gone_with_its_last_state() -> None:
    reflection = watching(pod("a", 1), pod("b", 2))
    reflection.ended(StreamFault("410", gone=True))
    reflection.open()
    reflection.line(event("ADDED", pod("a", 1)))
    reflection.line(event("ADDED", pod("c", 12)))
    reflection.line(event("DELETED", pod("a", 13)))
    reflection.line(event("DELETED", pod("c", 14)))
    assert reflection.line(bookmark(15, ends=True)) == [
        ObjectGone("pods", pod("a", 13), witnessed=True),
        ObjectGone("pods", pod("b", 2), witnessed=False),
        ObjectGone("pods", pod("c", 14), witnessed=True),
    ]


def test_a_new_list_tells_the_differences_only() -> None:
    reflection = watching(pod("a", 1), pod("b", 2), pod("c", 3), streaming=False)
    reflection.ended(StreamFault("an error"))
    reflection.step = Step.LIST
    reflection.open()
    assert reflection.page(page(20, pod("b", 2), pod("c", 15), pod("d", 16))) == [
        ObjectGone("pods", pod("a", 1), witnessed=False),
        Seen("pods", pod("c", 15)),
        Seen("pods", pod("d", 16)),
    ]


def test_half_a_list_changes_nothing() -> None:
    reflection = watching(pod("a", 1))
    reflection.ended(Silent())
    reflection.open()
    reflection.line(event("ADDED", pod("b", 11)))
    reflection.ended(EARLY)
    assert dict(reflection.objects) == {"a": pod("a", 1)}
    reflection.open()
    assert reflection.line(bookmark(12, ends=True)) == [ObjectGone("pods", pod("a", 1), witnessed=False)]


def test_bookmarks_move_the_version_that_a_watch_goes_on_from() -> None:
    reflection = watching(pod("a", 1))
    assert reflection.line(bookmark(44)) == []
    assert reflection.version == "44"


@pytest.mark.parametrize(
    "line",
    [
        event("ERROR", {"kind": "Status", "code": 500}),
        event("ERROR", "?"),
        event("RENAMED", pod("a", 1)),
        event("ADDED", None),
        event("ADDED", {"metadata": {"name": "x", "resourceVersion": "3"}}),
        event("ADDED", {"metadata": {"uid": "x"}}),
        event("ADDED", {"metadata": []}),
        event("BOOKMARK", {"metadata": {}}),
        {},
    ],
)
def test_a_line_that_is_no_good_event_ends_the_watch_in_doubt(line: dict[str, Any]) -> None:
    reflection = watching(pod("a", 1))
    with pytest.raises(StreamFault) as fault:
        reflection.line(line)
    reflection.ended(fault.value)
    assert reflection.step is Step.STREAM
    assert dict(reflection.objects) == {"a": pod("a", 1)}


def test_an_error_in_the_stream_says_why_and_when_to_come_back() -> None:
    reflection = watching()
    with pytest.raises(StreamFault) as fault:
        reflection.line(event("ERROR", {"code": 410, "reason": "Expired"}))
    assert fault.value.gone
    with pytest.raises(StreamFault, match="429 TooManyRequests") as fault:
        reflection.line(event("ERROR", {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 5}}))
    assert (fault.value.gone, fault.value.retry_after_s) == (False, 5.0)


@pytest.mark.parametrize(
    ("end", "next_step"),
    [
        (LONG, Step.WATCH),
        (EARLY, Step.WATCH),
        (Unreachable("away", sent=False), Step.WATCH),
        (AccessError("no credentials"), Step.WATCH),
        (refused(Busy, 503), Step.WATCH),
        (refused(Busy, 429), Step.WATCH),
        (Full(), Step.WATCH),
        (Silent(), Step.STREAM),
        (StreamFault("an error"), Step.STREAM),
        (refused(VersionGone, 410), Step.STREAM),
        (refused(Invalid, 400), Step.STREAM),
    ],
)
def test_a_watch_goes_on_from_its_version_unless_there_is_doubt(end: End, next_step: Step) -> None:
    reflection = watching(pod("a", 1), version=10)
    reflection.ended(end)
    assert reflection.step is next_step
    assert reflection.version == "10"


def test_watches_that_end_early_and_bring_nothing_raise_doubt() -> None:
    reflection = watching(pod("a", 1))
    steps = []
    for _ in range(DOUBT):
        reflection.open()
        reflection.ended(EARLY)
        steps.append(reflection.step)
    assert steps == [Step.WATCH] * (DOUBT - 1) + [Step.STREAM]


def test_watches_that_end_early_but_bring_something_raise_none() -> None:
    reflection = watching(pod("a", 1))
    for version in range(20, 40):
        reflection.open()
        reflection.line(event("MODIFIED", pod("a", version)))
        reflection.ended(EARLY)
        assert (reflection.step, reflection.failures) == (Step.WATCH, 0)


def test_a_server_that_is_away_raises_no_doubt_however_long() -> None:
    reflection = watching(pod("a", 1))
    for _ in range(50):
        reflection.open()
        reflection.ended(Unreachable("away", sent=False))
    assert (reflection.step, reflection.failures) == (Step.WATCH, 50)


def test_a_version_that_the_server_refuses_again_and_again_is_doubted() -> None:
    """As after a restored etcd: 504 "Too large resource version", for ever."""
    reflection = watching(pod("a", 1))
    for _ in range(DOUBT):
        reflection.open()
        reflection.ended(refused(Busy, 504))
    assert reflection.step is Step.STREAM


def test_lists_that_succeed_do_not_hide_that_every_watch_fails() -> None:
    reflection = Reflection("pods")
    failures = []
    for version in range(10, 40):
        reflection.open()
        if reflection.step is Step.STREAM:
            reflection.line(bookmark(version, ends=True))
        reflection.ended(EARLY)
        failures.append(reflection.failures)
    assert failures == list(range(1, 31))


def test_a_watch_that_lasted_was_no_failure() -> None:
    reflection = watching(pod("a", 1))
    reflection.failures = 7
    reflection.open()
    reflection.ended(LONG)
    assert reflection.failures == 0


def test_a_consumer_that_is_behind_is_no_failure() -> None:
    reflection = watching(pod("a", 1))
    reflection.ended(Full())
    assert (reflection.step, reflection.failures) == (Step.WATCH, 0)


def test_pages_are_read_where_lists_cannot_be_streamed() -> None:
    reflection = Reflection("pods")
    reflection.open()
    reflection.ended(refused(Invalid, 422))
    assert reflection.step is Step.LIST
    reflection.open()
    reflection.page(page(5))
    reflection.open()
    reflection.ended(Silent())
    assert reflection.step is Step.LIST


def test_pages_are_read_where_a_streamed_list_never_ends() -> None:
    """A server before 1.27 knows nothing of the bookmark that ends it."""
    reflection = Reflection("pods")
    for step in (Step.STREAM, Step.STREAM):
        assert reflection.step is step
        reflection.open()
        reflection.line(event("ADDED", pod("a", 1)))
        reflection.ended(Silent())
    assert reflection.step is Step.LIST


@pytest.mark.parametrize("end", [Unreachable("away", sent=False), refused(Busy, 429), AccessError("x")])
def test_a_server_that_is_away_says_nothing_about_streamed_lists(end: End) -> None:
    reflection = Reflection("pods")
    for _ in range(10):
        reflection.open()
        reflection.ended(end)
    assert reflection.step is Step.STREAM


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": {}},
        page(3, {"metadata": {"name": "x"}}),
        page(3, {}),
        {"metadata": {"resourceVersion": "3"}, "items": ["x"]},
        {"metadata": {"resourceVersion": "3"}, "items": None},
    ],
)
def test_a_page_that_is_none_is_a_fault(document: dict[str, Any]) -> None:
    reflection = Reflection("pods", streaming=False)
    reflection.open()
    with pytest.raises(StreamFault):
        reflection.page(document)
    assert reflection.objects == {}


def test_only_what_is_needed_is_kept() -> None:
    whole = {
        "metadata": {"uid": "a", "name": "a", "resourceVersion": "3", "managedFields": [{"manager": "x"}]},
        "spec": {"nodeName": "carol", "containers": [{"name": "task"}]},
        "status": {"phase": "Running"},
    }
    slim = {
        "metadata": {"uid": "a", "name": "a", "resourceVersion": "3"},
        "spec": {"nodeName": "carol"},
        "status": {"phase": "Running"},
    }
    reflection = Reflection("pods", streaming=False, slim=slim_pod)
    reflection.open()
    assert reflection.page(page(3, whole))[0] == Seen("pods", slim)
    assert slim_pod({"metadata": {"uid": "b"}}) == {"metadata": {"uid": "b"}, "spec": {}}
    assert slim_pod({"metadata": None, "spec": None}) == {"metadata": None, "spec": {}}
