"""The table of bad v2 documents: each mistake with its exact path, place, message and remedy."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.protocol import read_document
from tests.support.wordings import in_english

DATA = Path(__file__).parents[2] / "data" / "documents"
GOOD = (DATA / "good_v2.yaml").read_text()
MISTAKES = {row["name"]: row for row in tomllib.loads((DATA / "bad_input_v2.toml").read_text())["mistake"]}
SECRET = "hunter2-never-shown"


def faults_of(document: str | bytes, filename: str | None = "job.yaml") -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        read_document(document, filename)
    assert SECRET not in str(caught.value) + repr(caught.value.errors)
    return caught.value.errors


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake_is_one_fault_with_place_reason_and_remedy(name: str) -> None:
    row = MISTAKES[name]
    assert GOOD.count(row["old"]) == 1
    line, column = map(int, row["at"].split(":"))
    fault = Fault(path=row["path"], line=line, column=column, message=row["message"], hint=row["hint"])
    assert tuple(map(in_english, faults_of(GOOD.replace(row["old"], row["new"])))) == (fault,)


def test_the_table_starts_from_a_document_that_is_good() -> None:
    document = read_document(GOOD)
    assert document.warnings == ()
    assert SECRET in repr(document.secrets)
    assert SECRET not in repr(document) + document.spec.model_dump_json()


def test_every_fault_of_a_document_is_listed_in_order() -> None:
    text = (
        GOOD.replace("gpu: 1", "gpu: -1")
        .replace("name: demo", "name: de mo")
        .replace("dockerImage: py", "dockerImage: p")
    )
    assert [fault.path for fault in faults_of(text)] == [
        "$.name",
        "$.taskRoles.worker.dockerImage",
        "$.taskRoles.worker.resourcePerInstance.gpu",
    ]


@pytest.mark.parametrize("field", ["protocolVersion", "name", "type", "taskRoles"])
def test_a_required_field_is_missed(field: str) -> None:
    fields = {"protocolVersion": 2, "name": "demo", "type": "job", "taskRoles": {}}
    text = "".join(f"{name}: {value}\n" for name, value in fields.items() if name != field) + "parameters: {}\n"
    (fault, *_) = faults_of(text)
    assert (fault.path, fault.message, fault.line) == (f"$.{field}", f"{field} is missing", 1)
    assert fault.hint


@pytest.mark.parametrize(
    ("text", "path", "place", "message"),
    [
        ("", "$", (1, 1), "the document is empty"),
        ("# nothing\n", "$", (2, 1), "the document is empty"),
        ("--- \n...\n", "$", (3, 1), "the document is empty"),
        ("- a\n", "$", (1, 1), "the job must be an object, not a list"),
        ("hello\n", "$", (1, 1), "the job must be an object, not text"),
        ("a: \x07\n", "$", (1, 4), "the character U+0007, which YAML does not allow"),
        ("type: job\n---\ntype: job\n", "$", (2, 1), "a second job; the first begins at line 1"),
        ("a: 1\n---\nb: 2\n", "$", (1, 1), "none of the 2 documents is a job"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "$", (1, 1), "a directive other than %YAML 1.2"),
        ("%YAML 2.0\n---\na: 1\n", "$", (1, 1), "a directive other than %YAML 1.2"),
        ("%YAML 1.2\na: 1\n", "$", (2, 1), "no line --- after the directives"),
        ("type: job\na: b: c\n---\nx: 1\n", "$", (2, 5), "a ':' and a space inside of a text, or a wrong indentation"),
    ],
)
def test_a_text_that_is_no_job_at_all(text: str, path: str, place: tuple[int, int], message: str) -> None:
    fault = faults_of(text)[0]
    assert (fault.path, (fault.line, fault.column), fault.message) == (path, place, message)


def test_a_secret_beside_a_syntax_error_is_not_repeated() -> None:
    for wrong in ("{0}: {0}: {0}", '"{0}', "[{0}", "!{0} x", "*{0}", "{{{0}", "|{0}", "@{0}", "- {0}\n x"):
        text = GOOD.replace(f"word: {SECRET}", "word: " + wrong.format(SECRET))
        assert text != GOOD
        faults_of(text)


def test_a_name_ending_in_yaml_makes_a_text_without_protocol_version_yaml() -> None:
    (fault, *_) = faults_of("physicalCluster: {}\n", "cluster.yaml")
    assert (fault.path, fault.line, fault.column) == ("$.physicalCluster", 1, 1)
    (fault,) = faults_of("physicalCluster: {}\n", None)
    assert fault.message == "the document does not begin with '{'"


def test_faults_beyond_a_hundred_are_counted() -> None:
    names = "".join(f"  r{number}: {{}}\n" for number in range(300))
    faults = faults_of(f"protocolVersion: 2\nname: a\ntype: job\ntaskRoles:\n{names}")
    assert len(faults) == 101
    assert faults[-1].message == "and 800 more faults"
