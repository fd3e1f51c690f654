"""What the ledger knows of leased ports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.ids import PortLease
from pai_backend.scheduling.core.room import Ports

OWNERS = ("a", "b", "c")
LEASES = st.builds(PortLease, st.sampled_from(["m1", "m2"]), st.integers(1, 4), st.sampled_from(OWNERS))
ACTS = st.one_of(
    st.tuples(st.just("add"), st.lists(LEASES, max_size=4)),
    st.tuples(st.just("drop"), st.lists(st.sampled_from(OWNERS), max_size=2)),
    st.tuples(st.just("reset"), st.lists(LEASES, max_size=3)),
)


@given(st.lists(ACTS, max_size=12))
def test_ports_are_taken_by_whoever_leased_them_last_and_was_not_dropped(acts: list[tuple[str, list[object]]]) -> None:
    ports, model = Ports(), dict[tuple[str, int], str]()
    for verb, given_ in acts:
        leases = [each for each in given_ if isinstance(each, PortLease)]
        if verb == "drop":
            owners = {str(each) for each in given_}
            gone = {place for place, owner in model.items() if owner in owners}
            assert ports.drop(sorted(owners)) == bool(gone)
            model = {place: owner for place, owner in model.items() if place not in gone}
        else:
            model = {} if verb == "reset" else model
            model |= {(lease.machine, lease.port): lease.owner for lease in leases}
            (ports.reset if verb == "reset" else ports.add)(leases)
        for machine in ("m1", "m2"):
            assert ports.taken(machine) == {port: owner for (on, port), owner in model.items() if on == machine}
