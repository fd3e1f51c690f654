"""Port leases in memory, before the difference is written."""

from __future__ import annotations

import pytest

from pai_backend.model.ids import PortLease
from pai_backend.store.base import PortTaken
from pai_backend.store.ports import Leases

STORED = {("m", 1): "a", ("m", 2): "b"}


def held(leases: Leases) -> dict[tuple[str, int], str]:
    return dict(leases._now)


def test_a_free_port_is_leased_and_ones_own_is_kept() -> None:
    leases = Leases(STORED)
    leases.apply((), [PortLease("m", 3, "c"), PortLease("m", 1, "a")])
    assert held(leases) == {**STORED, ("m", 3): "c"}


@pytest.mark.parametrize(
    ("release", "lease"),
    [
        ((), [PortLease("m", 3, "c"), PortLease("m", 1, "c")]),
        (("b",), [PortLease("m", 1, "b")]),
        ((), [PortLease("m", 3, "c"), PortLease("m", 3, "d")]),
        (("a",), [PortLease("m", 1, "c"), PortLease("m", 1, "d")]),
    ],
)
def test_a_refused_request_changes_nothing(release: tuple[str, ...], lease: list[PortLease]) -> None:
    leases = Leases(STORED)
    with pytest.raises(PortTaken):
        leases.apply(release, lease)
    assert held(leases) == STORED


def test_what_is_released_can_be_leased_in_the_same_request() -> None:
    leases = Leases(STORED)
    leases.apply(("a",), [PortLease("m", 1, "c"), PortLease("m", 9, "a")])
    assert held(leases) == {("m", 1): "c", ("m", 2): "b", ("m", 9): "a"}


def test_what_is_known_to_use_a_port_has_it_whoever_had_it() -> None:
    leases = Leases(STORED)
    leases.seize(("b",), [PortLease("m", 1, "b"), PortLease("m", 3, "b")])
    assert held(leases) == {("m", 1): "b", ("m", 3): "b"}
