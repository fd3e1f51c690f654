"""Room for those who have not logged in: bounded, and fair between sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.arrivals import Arrivals, source_of


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/socket", "/run/socket"),
    ],
)
def test_a_source_is_an_ipv4_address_or_a_site_of_ipv6(address: str, source: str) -> None:
    assert source_of(address) == source


def test_one_source_has_a_bounded_share_and_its_oldest_leaves() -> None:
    arrivals: Arrivals[int] = Arrivals(10, 2)
    assert [arrivals.enter(number, "a") for number in range(2)] == [None, None]
    assert arrivals.enter(2, "a") == 0
    assert arrivals.enter(3, "b") is None
    arrivals.leave(1)
    assert arrivals.enter(4, "a") is None


def test_who_fills_the_room_makes_room_for_others() -> None:
    arrivals: Arrivals[str] = Arrivals(3, 3)
    for name in ("a1", "a2", "a3"):
        arrivals.enter(name, "a")
    assert arrivals.enter("b1", "b") == "a1"
    assert set(arrivals) == {"a2", "a3", "b1"}
    assert arrivals.enter("b2", "b") == "a2"
    assert arrivals.enter("b3", "b") == "b1"  # it would have most then
    assert arrivals.enter("c1", "c") == "b2"


def test_many_sources_lock_nobody_out() -> None:
    arrivals: Arrivals[str] = Arrivals(3, 3)
    for name in "abc":
        arrivals.enter(name, name)
    assert [arrivals.enter(name, name) for name in "def"] == ["a", "b", "c"]


def test_who_comes_nearer_to_a_login_stays_longer_than_who_is_silent() -> None:
    arrivals: Arrivals[str] = Arrivals(3, 3)
    for name in "abc":
        arrivals.enter(name, name)
    arrivals.progress("a")
    assert [arrivals.enter(name, name) for name in "def"] == ["b", "c", "a"]
    arrivals.progress("gone")
    assert set(arrivals) == {"d", "e", "f"}


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from("abc")), max_size=60),
)
def test_bounds_hold_whatever_comes_and_goes(most: int, per_source: int, steps: list[tuple[bool, int, str]]) -> None:
    arrivals: Arrivals[tuple[int, str]] = Arrivals(most, per_source)
    inside: dict[tuple[int, str], str] = {}
    for comes, number, source in steps:
        who = (number, source)
        if not comes:
            arrivals.leave(who)
            inside.pop(who, None)
        elif who not in inside:
            leaving = arrivals.enter(who, source)
            inside[who] = source
            if leaving is not None:
                del inside[leaving]
        assert set(arrivals) == set(inside)
        assert len(arrivals) <= most
        assert all(list(inside.values()).count(each) <= per_source for each in "abc")
