"""A wrong configuration gets all of its faults at once, each with its place and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling import ClusterConfig, read_config
from pai_backend.scheduling.config.document import MAX_REPORTED
from pai_backend.scheduling.config.model import Quota
from pai_backend.scheduling.config.types import MAX_LEVELS
from tests.support.interpreter_steps import interpreter_steps
from tests.support.processor_time import ENOUGH_S, processor_time

MAX_STEPS = 15_000_000
"""Of one configuration of half a megabyte; with a share that grows with its square they are a hundred times as many."""

SOUND = """\
physicalCluster:
  skuTypes:
    GPU: {gpu: 1, cpu: 2, memory: 4096Mi}
  cellTypes:
    SWITCH: {childCellType: GPU, childCellNumber: 2}
    NODE: {childCellType: SWITCH, childCellNumber: 2, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - cellType: POOL
      cellChildren:
        - cellAddress: carol
        - cellAddress: dan
          pinnedCellId: DAN
virtualClusters:
  one:
    virtualCells:
      - {cellType: POOL.NODE, cellNumber: 1}
  two:
    pinnedCells:
      - pinnedCellId: DAN
"""


def faults(text: str) -> list[tuple[str, str]]:
    """Path and message of every fault; each has a hint."""
    with pytest.raises(DocumentError) as caught:
        read_config(text)
    assert all(fault.hint for fault in caught.value.errors)
    return [(fault.path, fault.message) for fault in caught.value.errors]


def changed(old: str, new: str) -> str:
    assert SOUND.count(old) == 1, old
    return SOUND.replace(old, new)


def test_a_sound_configuration_is_read_with_addresses_inferred() -> None:
    config = read_config(SOUND)
    assert config.chains() == ("POOL",)
    assert config.levels("POOL") == ("GPU", "SWITCH", "NODE", "POOL")
    assert config.nodes() == ("carol", "dan")
    assert config.virtual_clusters["one"].quotas == (Quota("POOL", "NODE", 1),)
    assert config.virtual_clusters["two"].pinned == ("DAN",)
    assert config.skus["GPU"].memory == "4096Mi"
    pool = config.physical[0]
    assert pool.address == "0"
    for node in pool.children:
        assert [[leaf.address for leaf in switch.children] for switch in node.children] == [["0", "1"], ["2", "3"]]
        assert [switch.address for switch in node.children] == ["0", "1"]
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("cellType: POOL\n", "cellType: POND\n", "$.physicalCluster.physicalCells[0].cellType", "POND is not defined"),
        ("cellType: POOL\n", "cellType: SWITCH\n", "$.physicalCluster.physicalCells[0].cellType", "no node level"),
        (", isNodeLevel: true", "", "$.physicalCluster.physicalCells[0].cellType", "no node level"),
        (
            "childCellNumber: 2}\n  physical",
            "childCellNumber: 2, isNodeLevel: true}\n  physical",
            "cellType",
            "2 node levels",
        ),
        ("cellNumber: 1}", "cellNumber: 2}", "$.virtualClusters", "2 cells of type NODE are promised (one 2), 1 left"),
        ("POOL.NODE, cell", "POND.NODE, cell", "$.virtualClusters.one.virtualCells[0].cellType", "POND is not the top"),
        ("POOL.NODE, cell", "POOL.SHELF, cell", "$.virtualClusters.one.virtualCells[0].cellType", "no SHELF in it"),
        ("POOL.NODE, cell", "POOL.GPU.NODE, cell", "virtualCells[0].cellType", "does not go down the chain"),
        ("- pinnedCellId: DAN\n", "- pinnedCellId: EVE\n", "pinnedCells[0]", "no physical cell has pinnedCellId EVE"),
        ("cellAddress: carol\n", "cellAddress: carol\n          pinnedCellId: DAN\n", "pinnedCellId", "on two cells"),
        (
            "      - pinnedCellId: DAN\n",
            "      - pinnedCellId: DAN\n      - pinnedCellId: DAN\n",
            "pinnedCells[1]",
            "already",
        ),
        ("        - cellAddress: carol\n", "", "cellChildren", "has 2 children of type NODE, 1 are listed"),
        ("cellAddress: carol", "cellAddress:", "cellAddress", "has no address"),
        ("cellAddress: carol", "cellAddress: dan", "cellAddress", "node dan is twice"),
        ("cellAddress: carol", "cellAddress: a/b", "cellAddress", "may not contain /"),
        (
            "{childCellType: GPU, childCellNumber: 2}",
            "{childCellType: POOL, childCellNumber: 2}",
            "SWITCH",
            "contains itself",
        ),
        ("cellNumber: 1}", "cellNumber: -1}", "cellNumber", "at least 0"),
        ("GPU, childCellNumber: 2", "GPU, childCellNumber: 0", "childCellNumber", "at least 1"),
        ("GPU, childCellNumber: 2", "GPU, childCellNumber: 100000", "cellType", "200000 in a node"),
        ("childCellType: GPU, ", "", "childCellType", "childCellType is missing"),
        ("cellNumber: 1}", "cellNumber: many}", "cellNumber", "whole number"),
        ("isNodeLevel: true", "isNodeLevel: perhaps", "isNodeLevel", "true or false"),
        ("virtualClusters:\n", "virtualClusters:\n  one: {}\n", "$.virtualClusters.one", "given twice"),
        ("  physicalCells:\n", "  physicalCells: 3\n  other:\n", "physicalCells", "a list is expected"),
    ],
)
def test_a_mistake_is_named_with_its_place(old: str, new: str, path: str, message: str) -> None:
    found = faults(changed(old, new))
    assert any(path in where and message in what for where, what in found), found


def test_leaf_addresses_are_numbers_and_belong_to_one_cell() -> None:
    switch = "            - cellChildren: [{cellAddress: %s}, {cellAddress: %s}]\n"
    leaves = f"          cellChildren:\n{switch}            - {{}}\n"
    one_listed = changed("        - cellAddress: carol\n", "        - cellAddress: carol\n" + leaves % ("x", "1"))
    assert any("must be a number" in what for _, what in faults(one_listed))
    twice = changed("        - cellAddress: carol\n", "        - cellAddress: carol\n" + leaves % ("1", "1"))
    assert any("device 1 of node carol is listed twice" in what for _, what in faults(twice))


def test_a_machine_may_be_in_two_chains_with_devices_of_its_own() -> None:
    extra = """\
    - cellType: SOLO
      cellAddress: carol
      cellChildren: [{cellAddress: %s}]
virtualClusters:
"""
    types = "    SOLO: {childCellType: CPU, childCellNumber: 1, isNodeLevel: true}\n  physicalCells:\n"
    text = changed("  physicalCells:\n", types)
    assert read_config(text.replace("virtualClusters:\n", extra % 8)).chains() == ("POOL", "SOLO")
    assert any("device 3 of node carol" in what for _, what in faults(text.replace("virtualClusters:\n", extra % 3)))


def test_all_faults_come_at_once_with_line_and_column() -> None:
    text = changed("cellAddress: carol", "cellAddress: dan").replace("POOL.NODE, cell", "POOL.SHELF, cell")
    with pytest.raises(DocumentError) as caught:
        read_config(text)
    lines = text.splitlines()
    assert len(caught.value.errors) == 2
    duplicate, shelf = caught.value.errors
    assert duplicate.line is not None
    assert "dan" in lines[duplicate.line - 1]
    assert (shelf.line, shelf.column) == (17, lines[16].index("POOL") + 1)
    assert "2 faults" in caught.value.message


@pytest.mark.parametrize(
    "text", ["", "- a\n", "a: [", "a: &x [*x]\n", "\x00", "physicalCluster: 1\n", "{" * 2000, "a: " * 5]
)
def test_what_is_no_configuration_is_refused_with_a_reason(text: str) -> None:
    assert faults(text)


def test_a_document_beyond_the_limit_is_refused_unread() -> None:
    assert "larger than" in faults("# " + "x" * (5 << 20))[0][1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 8_192, "nested more than 64 deep"),
        ("{a: " * 8_192, "nested more than 64 deep"),
        ("".join(f"%TAG !a{n}! x\n" for n in range(9_000)), "directives (%) are not supported here"),
        ("a:\n" + "- b\n" * 400_000, "the configuration has more than 400000 keys and values"),
    ],
    ids=["brackets", "braces", "directives", "items"],
)
def test_what_takes_long_is_refused_soon(text: str, message: str) -> None:
    """The parser's time for the first three grows with their square: 8 KiB of brackets took 12 s."""
    ((_, said),) = faults(text)
    assert said == message


def test_a_parser_is_asked_for_few_events_of_a_deep_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    parse = yaml.parse

    def counted(text: str, **named: Any) -> Iterator[object]:
        for event in parse(text, **named):
            asked.append(event)
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    monkeypatch.setattr(yaml, "compose", None)
    faults("[" * 8_192)
    assert len(asked) < 100


def test_a_text_that_is_called_a_number_is_none() -> None:
    for text in ("!!int ²", "!!int '+-1'", "1" * 5_000):
        assert "must be a whole number" in faults(changed("cellNumber: 1", f"cellNumber: {text}"))[0][1]


def test_harmless_oddities_are_warnings() -> None:
    text = changed("      - pinnedCellId: DAN\n", "      []\n").replace(
        "physicalCluster:\n", "colour: red\nphysicalCluster:\n"
    )
    config = read_config(text)
    assert [warning.message for warning in config.warnings] == [
        "unknown key colour",
        "pinned cell DAN belongs to no virtual cluster",
    ]
    assert config.warnings[0].line == 1


def test_chains_without_quota_and_owners_without_cells_are_allowed() -> None:
    """The reference crashes at start on the first and on some of the second."""
    document = yaml.safe_load(SOUND)
    document["virtualClusters"] = {"idle": {}}
    assert read_config(yaml.safe_dump(document)).virtual_clusters["idle"].quotas == ()


def test_pinned_cells_around_a_whole_cell_are_not_promised_twice() -> None:
    """Two pools with a pinned node each have no whole pool left, though nodes enough for one."""
    document = yaml.safe_load(SOUND)
    pool = {"cellType": "POOL", "cellChildren": [{"cellAddress": "a"}, {"cellAddress": "b", "pinnedCellId": "B"}]}
    document["physicalCluster"]["physicalCells"].append(pool)
    document["virtualClusters"]["two"]["pinnedCells"].append({"pinnedCellId": "B"})
    document["virtualClusters"]["one"]["virtualCells"] = [{"cellType": "POOL", "cellNumber": 1}]
    assert "1 cells of type POOL are promised (one 1), 0 left" in faults(yaml.safe_dump(document))[0][1]


def test_a_pinned_cell_inside_a_pinned_cell_is_refused() -> None:
    text = changed("    - cellType: POOL\n", "    - cellType: POOL\n      pinnedCellId: ALL\n")
    text = text.replace("      - pinnedCellId: DAN\n", "      - pinnedCellId: DAN\n      - pinnedCellId: ALL\n")
    assert any("lies inside another pinned cell" in what for _, what in faults(text))


def test_settings_of_hiveds_own_server_are_accepted() -> None:
    assert isinstance(read_config("webServerAddress: :9096\nforcePodBindThreshold: 3\n" + SOUND), ClusterConfig)
    assert read_config("webServerAddress: :9096\n" + SOUND).warnings == ()


def typed(names: Iterable[tuple[str, str]], count: int = 1) -> str:
    """A configuration with these types of cells and their children."""
    rows = "".join(f"    {name}: {{childCellType: {child}, childCellNumber: {count}}}\n" for name, child in names)
    return f"physicalCluster:\n  cellTypes:\n{rows}"


CELLS = "  physicalCells:\n"
MACHINE = typed([]) + "    n: {childCellType: g, childCellNumber: 256, isNodeLevel: true}\n"
RACK = MACHINE + "    r: {childCellType: n, childCellNumber: 600}\n"
HOSTILE = {
    "a long chain": typed((f"t{number}", f"t{number + 1}") for number in range(900)),
    "a long cycle": typed((f"t{number}", f"t{(number + 1) % 900}") for number in range(900)),
    "many types": typed((f"t{number}", "g") for number in range(20_000)),
    "unknown types": MACHINE + CELLS + "".join(f"  - {{cellType: u{number}}}\n" for number in range(20_000)),
    "many leaves": RACK + CELLS + "".join(f"  - {{cellType: r, cellAddress: a{number}}}\n" for number in range(9)),
    "unknown quotas": MACHINE
    + CELLS
    + "  - {cellType: n, cellAddress: a}\nvirtualClusters:\n  v:\n    virtualCells:\n"
    + "".join(f"    - {{cellType: u{number}, cellNumber: 1}}\n" for number in range(20_000)),
    "a long way down": MACHINE
    + CELLS
    + "  - {cellType: n, cellAddress: a}\nvirtualClusters:\n  v:\n    virtualCells:\n"
    + f"    - {{cellType: {'n.' * 200_000}g, cellNumber: 1}}\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_configuration_is_refused_in_few_words_and_steps(name: str) -> None:
    """15,000 types in a chain took 25 s, and 60 MB of hints came of 3,000 unknown ones."""
    caught: list[DocumentError] = []

    def read() -> None:
        try:
            read_config(HOSTILE[name])
        except DocumentError as error:
            caught.append(error)

    assert interpreter_steps(read) < MAX_STEPS
    assert processor_time(read) < ENOUGH_S
    assert 1 <= len(caught[0].errors) <= MAX_REPORTED
    assert len(str([fault.hint for fault in caught[0].errors])) < 100_000


def test_the_levels_that_are_allowed_are_read() -> None:
    chain = [(f"t{number}", f"t{number + 1}") for number in range(MAX_LEVELS - 1)]
    read_config(typed(chain))
    with pytest.raises(DocumentError, match=f"t0 has {MAX_LEVELS + 1} levels"):
        read_config(typed([*chain, (f"t{MAX_LEVELS - 1}", "g")]))
