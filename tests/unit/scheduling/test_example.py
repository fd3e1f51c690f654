"""The examples in the package's docstring and on its page do what they say."""

from __future__ import annotations

import textwrap

import pytest
import yaml

import pai_backend.scheduling as scheduling
from tests.docs.pages import fences


def example() -> str:
    """The indented lines of the docstring."""
    lines = (scheduling.__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))


def run(gpus: int, capsys: pytest.CaptureFixture[str]) -> str:
    types = {"NODE": {"childCellType": "GPU", "childCellNumber": gpus, "isNodeLevel": True}}
    cells = [{"cellType": "NODE", "cellAddress": name} for name in ("carol", "dan")]
    owners = {"vc1": {"virtualCells": [{"cellType": "NODE", "cellNumber": 2}]}}
    document = {"physicalCluster": {"cellTypes": types, "physicalCells": cells}, "virtualClusters": owners}
    names = {name: getattr(scheduling, name) for name in scheduling.__all__}
    exec(example(), names | {"text": yaml.safe_dump(document)})
    return capsys.readouterr().out


def test_the_example_places_a_gang_and_releases_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(8, capsys) == ""


def test_the_example_prints_why_the_gang_waits(capsys: pytest.CaptureFixture[str]) -> None:
    assert "WaitCode.QUOTA" in run(4, capsys)


def test_the_page_places_a_gang_on_its_own_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    page = fences("docs/scheduling.md")
    yaml_text, python = (next(each.text for each in page if each.language == word) for word in ("yaml", "python"))
    names: dict[str, object] = {"text": yaml_text}
    exec(python, names)
    assert capsys.readouterr().out == ""
    cluster = names["ledger"]
    assert isinstance(cluster, scheduling.Ledger)
    assert [spot.node.name for spot in cluster.groups["alice~train"].spots] == ["node-a", "node-a"]


def test_every_public_name_has_a_docstring() -> None:
    for name in scheduling.__all__:
        public = getattr(scheduling, name)
        assert name == "Decision" or public.__doc__, name
