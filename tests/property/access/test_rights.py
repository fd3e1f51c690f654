"""Laws of limits: two of them together never allow what one of them forbids."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.rights import (
    EVERYTHING,
    NOTHING,
    Limits,
    Sftp,
    from_text,
    limits_of,
    narrower,
    to_text,
    wider,
    words_of,
)

NAMED = st.sampled_from(["web", "tb", "jupyter"])
LABELS = st.just("ssh") | NAMED  # which was a word once, and is in limits that are kept
PORTS = st.none() | st.sets(LABELS).map(lambda labels: tuple(sorted(labels)))
LIMITS = st.builds(
    Limits,
    pty=st.booleans(),
    commands=st.booleans(),
    sftp=st.sampled_from(Sftp),
    ports=PORTS,
    listen=st.booleans(),
    agent=st.booleans(),
    x11=st.booleans(),
)
WORDS = st.lists(st.sampled_from(["shell", "exec", "sftp", "sftp-read"]) | NAMED.map(lambda label: f"port:{label}"))


def within(inner: Limits, outer: Limits) -> bool:
    """Whether nothing is allowed that ``outer`` forbids, field by field."""
    flags = [field.name for field in fields(Limits) if field.type == "bool"]
    assert len(flags) == 5
    order = list(Sftp)
    return (
        all(getattr(outer, flag) or not getattr(inner, flag) for flag in flags)
        and order.index(inner.sftp) <= order.index(outer.sftp)
        and (outer.ports is None or (inner.ports is not None and set(inner.ports) <= set(outer.ports)))
    )


@given(LIMITS, LIMITS, LIMITS)
def test_the_wider_of_two_holds_both_and_no_more_than_any_that_holds_both(a: Limits, b: Limits, c: Limits) -> None:
    either = wider(a, b)
    assert within(a, either)
    assert within(b, either)
    assert either == wider(b, a)
    assert wider(either, c) == wider(a, wider(b, c))
    assert wider(a, NOTHING) == a
    if within(a, c) and within(b, c):
        assert within(either, c), "nothing is allowed that both forbid"
    assert narrower(either, c) == wider(narrower(a, c), narrower(b, c))


@given(LIMITS, LIMITS, LIMITS)
def test_the_narrower_of_two_is_within_both_and_the_order_does_not_matter(a: Limits, b: Limits, c: Limits) -> None:
    both = narrower(a, b)
    assert within(both, a)
    assert within(both, b)
    assert both == narrower(b, a)
    assert narrower(both, c) == narrower(a, narrower(b, c))
    if within(c, a) and within(c, b):
        assert within(c, both), "nothing is forbidden that both allow"


@given(LIMITS)
def test_everything_is_neutral_and_nothing_absorbs(limits: Limits) -> None:
    assert narrower(limits, EVERYTHING) == narrower(limits, limits) == limits
    assert narrower(limits, NOTHING) == NOTHING
    assert from_text(to_text(limits)) == limits


@given(WORDS, WORDS)
def test_more_words_allow_more_and_are_said_again(words: list[str], more: list[str]) -> None:
    limits = limits_of(words)
    assert limits_of(words_of(limits)) == limits
    if words:
        assert within(limits, limits_of(words + more))
