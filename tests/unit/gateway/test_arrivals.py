"""Room for those who have not logged in: bounded, and fair between sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.arrivals import Arrivals, Crowded, source_of


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


def test_one_source_has_a_bounded_share() -> None:
    arrivals: Arrivals[int] = Arrivals(10, 2)
    assert [arrivals.enter(number, "a") for number in range(2)] == [None, None]
    with pytest.raises(Crowded, match="from there"):
        arrivals.enter(2, "a")
    assert arrivals.enter(3, "b") is None
    arrivals.leave(0)
    assert arrivals.enter(4, "a") is None


def test_who_fills_the_room_makes_room_for_others() -> None:
    arrivals: Arrivals[str] = Arrivals(3, 3)
    for name in ("a1", "a2", "a3"):
        arrivals.enter(name, "a")
    assert arrivals.enter("b1", "b") == "a1"
    assert set(arrivals) == {"a2", "a3", "b1"}
    with pytest.raises(Crowded):  # nobody holds more than they would then
        arrivals.enter("b2", "b")
    assert arrivals.enter("c1", "c") == "a2"
    with pytest.raises(Crowded):
        arrivals.enter("d1", "d")


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
            try:
                leaving = arrivals.enter(who, source)
            except Crowded:
                continue
            inside[who] = source
            if leaving is not None:
                del inside[leaving]
        assert set(arrivals) == set(inside)
        assert len(arrivals) <= most
        assert all(list(inside.values()).count(each) <= per_source for each in "abc")
