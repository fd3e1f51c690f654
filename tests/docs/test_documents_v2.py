"""The page on v2 documents says what the reader does: its examples, fields, limits and warnings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pai_backend.protocol import (
    document,
    mounts,
    plugins,
    read_document,
    template,
    tree,
    v1,
    v2,
    v2_extras,
    v2_prerequisites,
    v2_roles,
    v2_tables,
    yaml_tree,
)
from pai_backend.protocol.field_table import Table
from tests.docs.pages import ROOT, fences, read

PAGE = "docs/documents-v2.md"
TEXT = read(PAGE)
WORDS = re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
EXAMPLES = [fence.text for fence in fences(PAGE) if fence.language == "yaml"]
LIMITS = {
    "size of the text": f"{document.MAX_BYTES} bytes",
    "keys and values, those that aliases repeat counted again": yaml_tree.MAX_NODES,
    "lists and objects": yaml_tree.MAX_COLLECTIONS,
    "anchors": yaml_tree.MAX_ANCHORS,
    "characters of values, those that aliases repeat counted again": yaml_tree.MAX_CHARACTERS,
    "levels of lists and objects": tree.MAX_DEPTH,
    "documents in one text": document.MAX_DOCUMENTS,
    "tasks": v1.MAX_TASKS,
    "port labels of a role": v2_roles.MAX_LABELS,
    "lines of plugins, counted again for each role": v2_prerequisites.MAX_USES,
    **{f"members of `{'.'.join(path)}`": limit for path, limit, _ in v2.LIMITS},
    "tags, those that roles share counted again": template.MAX_TAGS,
    "characters of all commands once filled": template.MAX_RENDERED,
}


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below ``heading``."""
    below = TEXT.split(f"\n{heading}\n")[1]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", below, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_read_without_a_warning(example: str) -> None:
    assert read_document(example).warnings == ()


def test_the_limits_are_those_of_the_reader() -> None:
    assert dict(rows("## The text")) == {name: str(value) for name, value in LIMITS.items()}


def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"[A-Za-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", WORDS))))
    tables = [table for table in vars(v2_tables).values() if isinstance(table, Table)]
    assert len(tables) > 10
    fields = {field for table in tables for field in table.fields}
    assert fields - named == set()
    assert {*v2_extras.NOTIFICATIONS, *v2_prerequisites.KINDS, *plugins.PARAMETERS} <= named


def test_every_warning_is_on_the_page_and_no_other() -> None:
    modules = [v2, v2_extras, v2_roles, v2_prerequisites, plugins, mounts, template]
    folder = ROOT / "backend" / "pai_backend" / "protocol"
    names = [Path(module.__file__ or "").name for module in modules]
    sources = "".join((folder / name).read_text() for name in [*names, "document.py", "fields.py", "variables.py"])
    raised = set(re.findall(r'\.warn\(\s*"([a-z0-9-]+)"', sources))
    listed = {code for row in rows("## Warnings") for code in re.findall(r"`([a-z0-9-]+)`", row[0])}
    of_v1 = {"missing-field", "trailing-comma", "kept-field"}
    assert raised - of_v1 == listed
