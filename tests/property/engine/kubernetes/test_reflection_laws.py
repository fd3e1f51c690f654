"""Whatever a server, a network and a slow consumer do, what is mirrored and told ends equal to what is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pai_backend.engine.kubernetes.handover import ObjectGone
from pai_backend.engine.kubernetes.objects import uid_of
from pai_backend.engine.kubernetes.reflection import Reflection
from tests.mutants.reflection import MUTANTS
from tests.support.model_api_server import Act, ModelServer, Reader, check

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
WRITES = st.builds(Act, st.just("write"), NAMES) | st.builds(Act, st.just("delete"), NAMES)
ENDS = st.sampled_from(["close", "late", "silent", "error", "gone", "busy", "away"])
TURNS = st.builds(
    Act,
    st.just("turn"),
    lines=st.none() | st.integers(0, 6),
    how=ENDS,
    before=st.lists(WRITES, max_size=3).map(tuple),
)
SCRIPTS = st.lists(WRITES | TURNS | WRITES | TURNS | st.sampled_from([Act("compact"), Act("take")]), max_size=40)


def run(kind: Callable[..., Reflection], script: list[Act], *, streaming: bool) -> Reader:
    reader = Reader(kind("pods", streaming=streaming), ModelServer())
    reader.play(script)
    reader.settle()
    return reader


@settings(max_examples=600, deadline=None)
@given(script=SCRIPTS, streaming=st.booleans())
def test_mirror_and_consumer_end_equal_to_the_server(script: list[Act], streaming: bool) -> None:
    check(run(Reflection, script, streaming=streaming))


@settings(max_examples=300, deadline=None)
@given(script=SCRIPTS, streaming=st.booleans())
def test_without_a_second_list_every_last_state_is_told(script: list[Act], streaming: bool) -> None:
    """Ends that are no reason to doubt lose nothing: each deletion after the list comes with the last state."""
    reader = Reader(Reflection("pods", streaming=streaming), ModelServer())
    reader.settle()
    calm = [act for act in script if act.what != "compact"]
    reader.play([Act("turn", lines=act.lines, how="late") if act.what == "turn" else act for act in calm])
    reader.settle()
    told = {uid_of(change.last): change for batch in reader.told for change in batch if isinstance(change, ObjectGone)}
    assert {uid: change.last for uid, change in told.items()} == reader.server.last_states
    assert all(change.witnessed for change in told.values())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_reflection_that_breaks_a_law_is_found(mutant: type[Reflection]) -> None:
    @settings(
        max_examples=2000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(script=SCRIPTS, streaming=st.booleans())
    def law(script: list[Act], streaming: bool) -> None:
        check(run(mutant, script, streaming=streaming))

    with pytest.raises((AssertionError, ExceptionGroup)):
        law()
