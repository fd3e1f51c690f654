"""Port numbers: fixed ones as written, random ones from the range, never one that is taken."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.ports import NoPort, PortRange, choose, fits
from pai_backend.model.spec import PortSpec

SMALL = PortRange(15000, 15009)


def pick(*wanted: PortSpec, taken: set[int] | None = None, seed: int = 1) -> dict[str, tuple[int, ...]]:
    return choose(wanted, within=SMALL, taken=taken or set(), machine="laptop", rng=random.Random(seed))


@given(
    counts=st.lists(st.integers(1, 4), max_size=4),
    taken=st.sets(st.integers(15000, 15009)),
    seed=st.integers(0, 99),
)
def test_chosen_ports_are_free_distinct_and_in_the_range_or_there_is_a_reason(
    counts: list[int], taken: set[int], seed: int
) -> None:
    wanted = [PortSpec(label=f"l{number}", count=count) for number, count in enumerate(counts)]
    try:
        chosen = pick(*wanted, taken=taken, seed=seed)
    except NoPort:
        assert sum(counts) > SMALL.size - len(taken)
        return
    flat = [port for ports in chosen.values() for port in ports]
    assert len(flat) == len(set(flat)) == sum(counts)
    assert not set(flat) & taken
    assert all(SMALL.first <= port <= SMALL.last for port in flat)
    assert list(chosen) == [spec.label for spec in wanted]
    assert fits(chosen, wanted)


def test_a_fixed_port_is_taken_as_written_also_outside_the_range() -> None:
    assert pick(PortSpec(label="web", begin_at=8080, count=2)) == {"web": (8080, 8081)}


def test_random_ports_keep_off_fixed_ones_of_the_same_task() -> None:
    fixed = PortSpec(label="web", begin_at=15000, count=9)
    assert pick(PortSpec(label="http"), fixed)["http"] == (15009,)


def test_a_fixed_port_in_use_is_named() -> None:
    with pytest.raises(NoPort, match=r"^port 8081 \(web\) of laptop is in use$"):
        pick(PortSpec(label="web", begin_at=8080, count=2), taken={8081})


def test_a_full_range_says_how_much_is_missing() -> None:
    message = r"^the ports 15000-15009 of laptop are used up: 2 for http wanted, 1 free$"
    with pytest.raises(NoPort, match=message):
        pick(PortSpec(label="http", count=2), taken=set(range(15000, 15009)))


def test_ports_of_a_changed_document_do_not_fit() -> None:
    assert not fits({"http": (1,)}, [PortSpec(label="http", count=2)])
