"""The chain of the audit: whatever is done to kept events is found, by the client's own reading of the rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_pai.audit import BEGINNING, Broken, ChainCheck, hash_of
from jupyter_pai.wire_types import AuditEventWire
from pai_backend.api.audit_wire import AuditEventWire as Wire
from pai_backend.model.audit import AuditEvent, ChainLink, chained
from pai_backend.model.ids import JobUid

TEXTS = st.text(max_size=20)
TIMES = st.builds(
    lambda micros: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros), st.integers(0, 10**15)
)
EVENTS = st.builds(
    AuditEvent,
    type=TEXTS,
    at=TIMES,
    user=TEXTS,
    by=TEXTS,
    source=TEXTS,
    subject=TEXTS,
    job=st.none() | st.just(JobUid("a" * 32)),
    detail=TEXTS,
    token=TEXTS,
    request=TEXTS,
    result=TEXTS,
)
CHAINS = st.lists(EVENTS, min_size=2, max_size=6)


def wired(events: list[AuditEvent]) -> list[AuditEventWire]:
    """Events as a client reads them."""
    return [cast(AuditEventWire, Wire.of(event).model_dump(mode="json", by_alias=True)) for event in events]


def check(events: list[AuditEventWire], end: AuditEventWire) -> None:
    found = ChainCheck(BEGINNING, [{"position": end["position"], "hash": end["hash"]}])
    for event in events:
        found.add(event)
    found.end()


def is_broken(events: list[AuditEventWire], end: AuditEventWire) -> bool:
    try:
        check(events, end)
    except Broken:
        return True
    return False


@given(CHAINS)
def test_a_client_finds_the_hashes_that_the_backend_has_written(events: list[AuditEvent]) -> None:
    sent = wired(list(chained(events, ChainLink())))
    assert [event["position"] for event in sent] == list(range(1, len(events) + 1))
    before = ["0" * 64, *(event["hash"] for event in sent)]
    assert [hash_of(event, last) for event, last in zip(sent, before, strict=False)] == before[1:]
    check(sent, sent[-1])


@given(CHAINS, st.data())
def test_no_event_can_be_changed_put_in_taken_out_or_moved(events: list[AuditEvent], data: st.DataObject) -> None:
    sent = wired(list(chained(events, ChainLink())))
    end, at = sent[-1], data.draw(st.integers(0, len(sent) - 1))
    one = dict(cast(dict[str, Any], sent[at]))
    name = data.draw(st.sampled_from(sorted(one)))
    one[name] = {"position": 77, "job": "b" * 32, "at": "2026-11-28T00:00:00Z"}.get(name, f"{one[name]}x")
    broken = {
        "changed": [*sent[:at], cast(AuditEventWire, one), *sent[at + 1 :]],
        "taken out": [*sent[:at], *sent[at + 1 :]],
        "put in": [*sent[: at + 1], *sent[at:]],
        "moved": [*sent[:at][::-1], *sent[at:][::-1]],
    }
    for how, those in broken.items():
        if those != sent:
            assert is_broken(those, end), how


@given(CHAINS, st.data())
def test_a_chain_that_was_made_anew_does_not_pass_a_place_that_was_noted(
    events: list[AuditEvent], data: st.DataObject
) -> None:
    true = wired(list(chained(events, ChainLink())))
    at = data.draw(st.integers(0, len(true) - 1))
    noted = data.draw(st.sampled_from(true[at:]))
    forged = [replace(event, detail=event.detail + "x") if n == at else event for n, event in enumerate(events)]
    with pytest.raises(Broken):
        check(wired(list(chained(forged, ChainLink()))), noted)


def test_a_chain_that_is_cut_short_does_not_reach_what_was_noted() -> None:
    events = [AuditEvent("job.submitted", datetime(2026, 1, 1, tzinfo=UTC), "a", "a", detail=str(n)) for n in range(3)]
    sent = wired(list(chained(events, ChainLink())))
    with pytest.raises(Broken, match="Event 3 must be there"):
        check(sent[:2], sent[2])
