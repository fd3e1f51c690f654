"""The table of bad documents: each with its exact path, place, message and remedy."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.protocol import read_document
from tests.support.wordings import in_english

GOOD = """{
  "jobName": "demo",
  "image": "python:3.11",
  "taskRoles": [
    {
      "name": "worker",
      "taskNumber": 2,
      "cpuNumber": 1,
      "memoryMB": 1024,
      "gpuNumber": 0,
      "command": "python train.py"
    }
  ]
}
"""
ROLE = "$.taskRoles[0]"
TABLE = Path(__file__).parents[2] / "data" / "documents" / "bad_input.toml"
MISTAKES = {row["name"]: row for row in tomllib.loads(TABLE.read_text())["mistake"]}


def wrong(name: str) -> str:
    row = MISTAKES[name]
    assert GOOD.count(row["old"]) == 1
    return GOOD.replace(row["old"], row["new"])


def faults_of(document: str | bytes) -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        read_document(document)
    return caught.value.errors


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake_is_one_fault_with_place_reason_and_remedy(name: str) -> None:
    row = MISTAKES[name]
    line, column = map(int, row["at"].split(":"))
    fault = Fault(path=row["path"], line=line, column=column, message=row["message"], hint=row["hint"])
    assert tuple(map(in_english, faults_of(wrong(name)))) == (fault,)


def test_the_table_starts_from_a_document_that_is_good() -> None:
    assert read_document(GOOD).warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the document is empty"),
        (" \n// nothing but a comment\n", "the document is empty"),
        ("[]", "the document does not begin with '{'"),
        ("jobName: demo\n", "the document does not begin with '{'"),
        ("<html>", "'<' where '{' is needed"),
        ("[" * 100_000, "the document does not begin with '{'"),
        ('{"a":' * 100_000, "more than 64 levels of brackets"),
        ('{"a": [' + "0," * 25_001 + "0]}", "more than 25000 values"),
        ('{"a": [' + "{}," * 6_001 + "{}]}", "more than 6000 objects and lists"),
        (" " * 1_048_577, "the document has 1048577 bytes; at most 1048576 are read"),
        ('{"a": "\ud800"}', "half of a surrogate pair"),
    ],
)
def test_what_is_no_job_document_at_all_is_one_fault(text: str, message: str) -> None:
    assert [fault.message for fault in faults_of(text)] == [message]


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        (GOOD.replace("demo", "dém").encode("latin-1"), 2, 16, "the byte 0xE9 is not UTF-8"),
        (GOOD.replace("train.py", "训练").encode("gbk"), 11, 27, "the byte 0xC1 is not UTF-8"),
        (GOOD.encode("utf-16"), 1, 1, "the document is UTF-16, not UTF-8"),
    ],
)
def test_another_encoding_is_named_with_its_first_byte(source: bytes, line: int, column: int, message: str) -> None:
    (fault,) = faults_of(source)
    assert (fault.line, fault.column, fault.message) == (line, column, message)
    assert "UTF-8" in fault.hint


def test_every_fault_of_a_document_is_listed_in_order() -> None:
    text = GOOD.replace('"cpuNumber": 1', '"cpuNumber": 0').replace("1024", "true").replace('"demo"', '"a b",')
    assert [(fault.line, fault.path) for fault in faults_of(text)] == [(2, "$")]
    text = text.replace(",,", ",")
    assert [(fault.line, fault.path) for fault in faults_of(text)] == [
        (2, "$.jobName"),
        (8, f"{ROLE}.cpuNumber"),
        (9, f"{ROLE}.memoryMB"),
    ]


def test_faults_of_the_json_and_of_fields_are_listed_together() -> None:
    text = GOOD.replace('"demo",', '"demo"').replace('"cpuNumber": 1', '"cpuNumber": 0')
    assert [fault.message for fault in faults_of(text)] == ["a comma is missing here", "cpuNumber must be at least 1"]


def test_the_message_names_file_place_and_number_of_faults() -> None:
    text = GOOD.replace('"cpuNumber": 1', '"cpuNumber": 0').replace("1024", "1")
    with pytest.raises(DocumentError) as caught:
        read_document(text, "train.json")
    assert str(caught.value) == "train.json, line 8, column 20: cpuNumber must be at least 1 (and 1 more)"
    assert caught.value.hint == "Use 1 or more."


def test_a_file_name_cannot_add_a_line_to_the_message() -> None:
    with pytest.raises(DocumentError) as caught:
        read_document("", "a\nb.json")
    assert str(caught.value) == "a\ufffdb.json, line 1, column 1: the document is empty"


def test_many_faults_are_counted_not_listed() -> None:
    members = ", ".join(f'"x{number}": 1' for number in range(1000))
    faults = faults_of(GOOD.replace('"demo",', f'"demo", {members},'))
    assert len(faults) == 101
    assert faults[-1].message == "and 900 more faults"


@pytest.mark.parametrize("name", MISTAKES)
def test_no_error_repeats_a_secret_value(name: str) -> None:
    text = wrong(name).replace('"image"', '"jobEnvs": {"TOKEN": "hunter2-s3cret"},\n"image"')
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in f"{error!s} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__
