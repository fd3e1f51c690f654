"""What holds of tolerations, and of the memory of which nodes suit whom, whatever nodes and tasks do."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pai_backend.model.ids import TaskUid
from pai_backend.model.labels import Effect, NodeRule, Operator, Taint, Toleration
from pai_backend.model.node import Gpu, Node, Others
from pai_backend.scheduling.core import room as room_module
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.request import Need
from pai_backend.scheduling.terms import NodeRules, Terms, TermsOf
from tests.mutants.nodes import MATCHES, MEMORIES

WORDS = st.sampled_from(["", "a", "b"])
KEYS = st.sampled_from(["x", "y"])
EFFECTS = st.sampled_from(Effect)
TAINTS = st.builds(Taint, key=KEYS, value=WORDS, effect=EFFECTS)
TOLERATIONS = st.one_of(
    st.builds(Toleration, key=KEYS, value=WORDS, effect=st.none() | EFFECTS),
    st.builds(
        Toleration,
        key=KEYS | st.just(""),
        operator=st.just(Operator.EXISTS),
        effect=st.none() | EFFECTS,
    ),
)
RULES = st.builds(
    NodeRule,
    node_selector=st.dictionaries(KEYS, WORDS, max_size=1),
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
)
QUICK = settings(
    deadline=None, database=None, derandomize=True, report_multiple_bugs=False, phases=[Phase.generate, Phase.shrink]
)
EVERYTHING = Toleration(operator=Operator.EXISTS)


def as_documented(toleration: Toleration, taint: Taint) -> bool:
    """Kubernetes' page, sentence by sentence: the same key and effect, and Exists or an equal value; then two special
    cases, an empty key with Exists for all keys and values, and an empty effect for all effects."""
    effects = {taint.effect} if toleration.effect is None else {toleration.effect}
    if toleration.key == "":
        return toleration.operator is Operator.EXISTS and taint.effect in effects
    if toleration.operator is Operator.EXISTS:
        return toleration.key == taint.key and taint.effect in effects
    return (toleration.key, toleration.value) == (taint.key, taint.value) and taint.effect in effects


def law_of_matching() -> None:
    @given(TOLERATIONS, TAINTS)
    @settings(QUICK, max_examples=300)
    def law(toleration: Toleration, taint: Taint) -> None:
        assert toleration.tolerates(taint) == as_documented(toleration, taint), "a toleration matches as documented"
        assert EVERYTHING.tolerates(taint), "Exists without key and effect tolerates everything"

    law()


@given(RULES, TOLERATIONS, st.lists(TAINTS, max_size=4))
def test_one_toleration_more_never_closes_a_node(rule: NodeRule, more: Toleration, taints: list[Taint]) -> None:
    wider = rule.model_copy(update={"tolerations": (*rule.tolerations, more)})
    assert set(wider.untolerated(tuple(taints))) <= set(rule.untolerated(tuple(taints)))


NAMES = st.sampled_from(["n0", "n1", "n2", "n3"])
NODES = st.builds(
    Node,
    name=NAMES,
    address=st.just("127.0.0.1"),
    machine=st.just("m"),
    cpus=st.integers(0, 4),
    memory_mb=st.just(1000),
    gpus=st.sampled_from([(), (Gpu(index=0, type="T"), Gpu(index=1, type="T")), (Gpu(index=0, type="U"),)]),
    others=st.builds(Others, cpus=st.integers(0, 2), gpus=st.sampled_from([0, 0, 1])),
    ready=st.sampled_from([True, True, True, False]),
    schedulable=st.sampled_from([True, True, True, False]),
    labels=st.dictionaries(KEYS, WORDS, max_size=2),
    taints=st.lists(TAINTS, max_size=1).map(tuple),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NODES),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("hold"), st.integers(0, 3), NAMES),
        st.tuples(st.just("release"), st.integers(0, 3)),
        st.tuples(st.just("as if"), NODES),
    ),
    max_size=12,
)


def asked(rules: NodeRules) -> list[Need]:
    """Tasks of two sizes, with the terms of every kind."""
    made = TermsOf(rules, {})
    kinds: list[Terms] = [made.without_cells({}), made.on_cells({"x": "a"}, "T"), made.on_cells({}, "")]
    return [Need(TaskUid("t"), cpus, 10, gpus, terms=terms) for terms in kinds for cpus, gpus in ((0, 0), (2, 1))]


def agrees(room: Room, need: Need) -> None:
    """The memory says what a look at every node says."""
    suited = {name for name, node in room.nodes.items() if node.ready and need.terms.objection(node) is None}
    assert room.suited(need) == suited, "suited are those that are ready and object to nothing"
    free = {name for name in suited if room.is_free_for(need, name)}
    assert room.having(need) == free, "having room are those of them with room now"
    large = {name for name in suited if is_large_enough(room.nodes[name], need)}
    assert room.large_enough(need) == large, "large enough are those of them that had room when empty"


def is_large_enough(node: Node, need: Need) -> bool:
    """By what others hold; GPUs that nobody else holds are counted by cells alone."""
    gpus = need.gpus <= len(node.gpus) - node.others.gpus if node.others.gpus else True
    return gpus and need.cpus <= node.cpus - node.others.cpus


def law_of_memory() -> None:
    @given(st.lists(NODES, min_size=2, max_size=4), STEPS, RULES, RULES)
    @settings(QUICK, max_examples=150)
    def law(nodes: list[Node], steps: list[tuple[object, ...]], first: NodeRule, second: NodeRule) -> None:
        room, needs = Room(), asked(NodeRules({"T": first}, second))
        for node in nodes:
            room.set_node(node)
        for step in [None, *steps]:
            match step:
                case ("set", Node() as node):
                    room.set_node(node)
                case ("remove", str() as name):
                    room.remove_node(name)
                case ("hold", int() as number, str() as name):
                    room.hold(Need(TaskUid(f"u{number}"), 1, 10, 1), name)
                case ("release", int() as number):
                    room.release(TaskUid(f"u{number}"))
                case ("as if", Node() as node) if node.name in room.nodes:
                    with room.as_if([node]):
                        for need in needs:
                            agrees(room, need)
            for need in needs:
                agrees(room, need)

    law()


def test_tolerations_match_as_documented() -> None:
    law_of_matching()


def test_the_memory_of_nodes_says_what_a_look_at_every_node_says() -> None:
    law_of_memory()


def test_a_memory_that_forgets_early_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "MOST_NAMES", 1)
    law_of_memory()


@pytest.mark.parametrize(
    ("law", "mutant"),
    [*((law_of_matching, each) for each in MATCHES), *((law_of_memory, each) for each in MEMORIES)],
    ids=lambda value: value[2].__name__ if isinstance(value, tuple) else "",
)
def test_the_laws_reject_what_is_wrong(
    law: Callable[[], None], mutant: tuple[object, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    monkeypatch.setattr(sys.modules[__name__], "QUICK", settings(QUICK, phases=[Phase.generate]))
    with pytest.raises((AssertionError, KeyError)):
        law()
