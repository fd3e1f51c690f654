"""The JSON Schema of each dialect has what its field table has, in both languages, and takes what reading takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from pai_backend.protocol import plugins, v1, v1_ports, v2_tables
from pai_backend.protocol.schema import FormDialect, job_schema
from pai_backend.protocol.schema_words import FIELDS

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
ROOT = Path(__file__).parents[3]


def fields_of(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every named field in a schema."""
    inner = [
        schema.get("items"),
        schema.get("additionalProperties"),
        *(each["then"] for each in schema.get("allOf", ())),
    ]
    for name, field in schema.get("properties", {}).items():
        yield name, field
        inner.append(field)
    for each in inner:
        if isinstance(each, dict):
            yield from fields_of(each)


@pytest.mark.parametrize("dialect", FormDialect)
def test_each_schema_is_one_and_each_field_has_words_in_both_languages(dialect: FormDialect) -> None:
    schema = job_schema(dialect)
    Draft202012Validator.check_schema(schema)
    for name, field in fields_of(schema):
        if field.keys() == {"properties"}:
            continue
        if name not in ("plugin", "parameters") or "title" in field:
            assert field["title"], name
            assert field["x-words"]["zh_CN"]["title"], name
            assert ("description" in field) == ("description" in field["x-words"]["zh_CN"]), name


def test_no_words_are_left_over() -> None:
    used = {name for dialect in FormDialect for name, _ in fields_of(job_schema(dialect))}
    left_over = {key for key in FIELDS if key.rpartition("/")[2] not in used}
    assert left_over == {"plugins"}  # of the field that has the long name


def test_the_form_of_scm_has_every_field_of_the_seeds() -> None:
    schema = job_schema(FormDialect.SCM)
    assert set(schema["properties"]) == set(v1.JOB.fields) - {"tmp"}
    role = schema["properties"]["taskRoles"]["items"]
    assert set(role["properties"]) == set(v1.ROLE.fields)
    assert set(role["properties"]["portList"]["items"]["properties"]) == set(v1_ports.PORT.fields)
    assert role["properties"]["memoryMB"]["minimum"] == 100
    assert role["properties"]["shmMB"]["x-fallback"] == 64
    assert "default" not in json.dumps(schema["properties"]["taskRoles"]["items"]["properties"]["shmMB"])


def test_fields_that_one_dialect_does_not_have_are_not_offered_there() -> None:
    def role(dialect: FormDialect) -> set[str]:
        return set(job_schema(dialect)["properties"]["taskRoles"]["items"]["properties"])

    assert "storageGB" not in role(FormDialect.V1)
    assert "minFailedTaskCount" not in role(FormDialect.QIZHI)
    assert job_schema(FormDialect.QIZHI)["properties"]["killAllOnCompletedTaskNumber"]["x-section"] == "basics"


def test_the_form_of_v2_has_every_field_of_the_protocol() -> None:
    schema = job_schema(FormDialect.V2)
    assert set(schema["properties"]) == set(v2_tables.JOB.fields)
    role = schema["properties"]["taskRoles"]["additionalProperties"]["properties"]
    assert set(role) == set(v2_tables.ROLE.fields)
    assert set(role["resourcePerInstance"]["properties"]) == set(v2_tables.RESOURCES.fields)
    entry = schema["properties"]["extras"]["properties"][plugins.KEY]["items"]
    assert entry["properties"]["plugin"]["enum"] == list(plugins.PARAMETERS)
    assert len(entry["allOf"]) == len(plugins.PARAMETERS)
    assert schema["properties"]["secrets"]["additionalProperties"]["x-widget"] == "secret"


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        (DOCUMENTS / "scm-helloworld.json", FormDialect.SCM),
        (DOCUMENTS / "scm-jupyter.json", FormDialect.SCM),
        (ROOT / "examples" / "scm-jupyter.json", FormDialect.SCM),
        (ROOT / "examples" / "train.yaml", FormDialect.V2),
        (DOCUMENTS / "openpai-v2-tensorflow-cifar10.yaml", FormDialect.V2),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_documents_of_the_seeds_are_valid(path: Path, dialect: FormDialect) -> None:
    text = path.read_text(encoding="utf-8")
    value = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    errors = [error.message for error in Draft202012Validator(job_schema(dialect)).iter_errors(value)]
    assert errors == []
