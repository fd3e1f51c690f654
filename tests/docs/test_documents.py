"""The page on documents in JSON says what the reader, the converters and masking do."""

from __future__ import annotations

import re

import pytest

from pai_backend.model.spec import Dialect
from pai_backend.protocol import document, locate, own_fields, read_document, tree, v1, v1_ports
from pai_backend.protocol.convert import to_v2
from pai_backend.protocol.mask import MASK, SECRET_NAME, masked
from tests.docs.pages import ROOT, fences, read

PAGE = "docs/documents.md"
TEXT = read(PAGE)
EXAMPLES = [fence.text for fence in fences(PAGE) if fence.language in ("json", "yaml")]
LIMITS = {
    "size of the text": f"{document.MAX_BYTES} bytes",
    "values, a text with escapes counted twice": locate.MAX_VALUES,
    "objects and lists": locate.MAX_BRACKETS,
    "levels of objects and lists": tree.MAX_DEPTH,
    "task roles": v1.MAX_ROLES,
    "tasks": v1.MAX_TASKS,
    "entries of a `portList`": v1_ports.MAX_LABELS,
    "variables of `jobEnvs`": v1.MAX_VARIABLES,
    "characters of a name": own_fields.MAX_NAME,
    "characters of a directory or image": own_fields.MAX_PATH,
}


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below ``heading``."""
    below = TEXT.split(f"\n{heading}\n")[1]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", below, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def names(heading: str) -> set[str]:
    return {row[0].strip("`") for row in rows(heading)}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_read_without_a_warning(example: str) -> None:
    assert read_document(example).warnings == ()


def test_the_limits_are_those_of_the_reader() -> None:
    assert dict(rows("## The text")) == {name: str(value) for name, value in LIMITS.items()}


def test_every_field_is_on_the_page_and_no_other() -> None:
    assert names("## Fields of the job") == v1.JOB.fields.keys()
    assert names("## Fields of a task role") == v1.ROLE.fields.keys()
    (ports,) = [row[1] for row in rows("## Fields of a task role") if row[0] == "`portList`"]
    assert set(re.findall(r"`(\w+)`", ports)) == v1_ports.PORT.fields.keys()


def test_every_dialect_without_a_version_is_on_the_page() -> None:
    assert names("## Which dialect") == {Dialect.QIZHI, Dialect.SCM, Dialect.OPENPAI_V1}


def test_every_warning_is_on_the_page_and_no_other() -> None:
    folder = ROOT / "backend" / "pai_backend" / "protocol"
    sources = "".join((folder / f"{name}.py").read_text() for name in ("v1", "v1_ports", "fields", "variables"))
    assert names("## Warnings") == set(re.findall(r'warn\(\s*"([a-z-]+)"', sources))


def test_every_word_for_a_loss_is_on_the_page_and_no_other() -> None:
    source = (ROOT / "backend" / "pai_backend" / "protocol" / "convert" / "result.py").read_text()
    assert names("## Converting") == set(re.findall(r'self\._add\("([a-z-]+)"', source))


def test_the_words_that_make_a_variable_secret_are_on_the_page() -> None:
    assert set(SECRET_NAME.pattern.split("|")) <= set(re.findall(r"[A-Z]+", TEXT.split("## Masking")[1]))
    assert f"`{MASK}`" in TEXT


def test_the_first_example_converts_and_masks_to_itself() -> None:
    example = EXAMPLES[0]
    assert masked(example.encode()) == example.encode()
    assert read_document(to_v2(read_document(example)).text).spec.gpu_type == "TITANX"
