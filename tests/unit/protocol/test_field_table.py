"""Each row of the field table of ``extras.jupyterPai`` is read, hinted at and converted as it says."""

from __future__ import annotations

import json

import pytest
import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.model.extension import JOB_PARTS, ROLE_PARTS, DocumentField, document_fields
from pai_backend.model.spec import JobSpec, Resources, TaskRole
from pai_backend.protocol import read_document
from pai_backend.protocol.convert import to_v1, to_v2
from pai_backend.protocol.own_fields import COMMON, JOB, KEY

ROLE = [*document_fields(TaskRole).values(), *document_fields(Resources).values(), *ROLE_PARTS]


def in_v2(own: object) -> str:
    role = {
        "instances": 3,
        "dockerImage": "i",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0, "ports": {"board": 1}},
        "commands": ["x"],
    }
    job = {
        "protocolVersion": 2,
        "name": "j",
        "type": "job",
        "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "i"}],
        "taskRoles": {"worker": role},
        "extras": {"gangAllocation": False, KEY: own},
    }
    return json.dumps(job)


def in_v1(own: object) -> str:
    role = {"name": "worker", "command": "x", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    return json.dumps({"jobName": "j", "image": "i", "taskRoles": [role], "extras": {KEY: own}})


def example(field: DocumentField) -> object:
    return yaml.safe_load(field.example)


@pytest.mark.parametrize("attribute", JOB)
def test_the_example_of_a_job_field_gives_the_attribute_a_value(attribute: str) -> None:
    field = JOB[attribute]
    document = read_document(in_v2({field.name: example(field)}))
    assert document.warnings == ()
    assert getattr(document.spec, attribute) != JobSpec.model_fields[attribute].default


@pytest.mark.parametrize("field", [*JOB_PARTS, *ROLE], ids=lambda field: field.name)
def test_the_examples_of_roles_and_parts_change_the_job(field: DocumentField) -> None:
    own = {field.name: example(field)}
    given = in_v2(own if field in JOB_PARTS else {"taskRoles": {"worker": own}})
    document, without = read_document(given), read_document(in_v2({}))
    assert document.warnings == ()
    assert field.name == "names" or document.spec != without.spec


@pytest.mark.parametrize("field", [*JOB.values(), *JOB_PARTS], ids=lambda field: field.name)
def test_a_misspelt_name_is_a_fault_that_names_the_field(field: DocumentField) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(in_v2({f"{field.name}_": example(field)}))
    assert [fault.hint for fault in caught.value.errors] == [f'Did you mean "{field.name}"?']


@pytest.mark.parametrize("attribute", COMMON)
def test_a_field_of_both_protocols_is_followed_in_v1_and_kept_by_conversions(attribute: str) -> None:
    field = COMMON[attribute]
    first = read_document(in_v1({field.name: example(field)}))
    second = read_document(to_v2(first).text)
    third = read_document(to_v1(second).text)
    values = [getattr(document.spec, attribute) for document in (first, second, third)]
    assert values == [getattr(read_document(in_v2({field.name: example(field)})).spec, attribute)] * 3
    assert field.name in third.spec.extras[KEY]
