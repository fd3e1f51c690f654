"""What v1 documents may leave out, may write loosely, and what their author is warned of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import Completion, Dialect, DocumentWarning, PortSpec, Resources
from pai_backend.protocol import Document, read_document
from tests.support.wordings import in_english


def document(role: dict[str, Any] | None = None, **job: Any) -> Document:
    """A small document with these fields of its one role and of the job; a field of ``...`` is left out."""
    whole_role = {"name": "worker", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 1024, "gpuNumber": 0, "command": "x"}
    whole_role |= role or {}
    whole = {"jobName": "demo", "image": "python", "taskRoles": [without_dots(whole_role)]} | job
    return read_document(json.dumps(without_dots(whole)))


def without_dots(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not ...}


def test_counts_left_out_get_the_defaults_of_openpai_and_a_warning() -> None:
    read = document({"taskNumber": ..., "cpuNumber": ..., "memoryMB": ..., "gpuNumber": ...})
    (role,) = read.spec.task_roles
    assert role.instances == 1
    assert role.resources == Resources(cpus=1, memory_mb=100, gpus=0, shm_mb=64)
    assert [(warning.code, warning.path) for warning in read.warnings] == [
        ("missing-field", f"$.taskRoles[0].{name}") for name in ("taskNumber", "cpuNumber", "memoryMB", "gpuNumber")
    ]
    assert read.warnings[2].message == "memoryMB is missing; 100 is used"


def test_optional_fields_left_out_are_silent() -> None:
    spec = document().spec
    assert (spec.virtual_cluster, spec.gpu_type, spec.retry_count, spec.kill_all_on_completed) == (
        "default",
        None,
        0,
        None,
    )
    assert spec.task_roles[0].completion == Completion(min_failed=1, min_succeeded=None)
    assert document().warnings == ()


def test_empty_texts_mean_the_default() -> None:
    spec = document(virtualCluster="", gpuType="", authFile="").spec
    assert (spec.virtual_cluster, spec.gpu_type, spec.auth_file) == ("default", None, "")


@pytest.mark.parametrize("name", ["a", "A-b.c_d~e", "0", "~", "a" * 255])
def test_job_names_as_the_guides_allow_them(name: str) -> None:
    assert document(jobName=name).spec.name == name


@pytest.mark.parametrize("written", ["8192", "8192.0", "8.192e3", "8192E0", '"8192"', '"8192.0"'])
def test_a_whole_number_may_be_written_in_several_ways(written: str) -> None:
    text = (
        '{"jobName":"a","image":"i","taskRoles":[{"name":"r","taskNumber":1,"cpuNumber":1,"gpuNumber":0,"command":"x",'
    )
    read = read_document(f'{text}"memoryMB":{written}}}]}}')
    assert read.spec.task_roles[0].resources.memory_mb == 8192
    warned = DocumentWarning(
        code="number-as-text",
        message="memoryMB is a number written as text",
        path="$.taskRoles[0].memoryMB",
        hint="Write 8192 without quotes.",
    )
    assert tuple(map(in_english, read.warnings)) == ((warned,) if '"' in written else ())


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1.5", "0x10", "1_0", "٣", "01", "+1", "one", "1e999"])
def test_a_text_that_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        document({"cpuNumber": text})
    assert caught.value.errors[0].message == "cpuNumber must be a whole number, not text"


@pytest.mark.parametrize("retries", [-2, -1, 0, 7])
def test_retries_from_always_to_a_number(retries: int) -> None:
    assert document(retryCount=retries).spec.retry_count == retries


def test_null_switches_a_completion_rule_off() -> None:
    read = document({"minFailedTaskCount": None, "minSucceededTaskCount": 2})
    assert read.spec.task_roles[0].completion == Completion(min_failed=None, min_succeeded=2)


def test_http_and_ssh_are_added_after_declared_ports() -> None:
    ports = [{"label": "ssh", "beginAt": 2200, "portNumber": 2}, {"label": "tb"}]
    assert document({"portList": ports}).spec.task_roles[0].ports == (
        PortSpec(label="ssh", begin_at=2200, count=2),
        PortSpec(label="tb"),
        PortSpec(label="http", implicit=True),
    )


def test_ranges_that_touch_or_that_another_role_uses_do_not_overlap() -> None:
    ports = [{"label": "a", "beginAt": 8000, "portNumber": 2}, {"label": "b", "beginAt": 8002}]
    role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "x"}
    read = document(taskRoles=[role | {"portList": ports}, role | {"name": "s", "portList": ports}])
    assert [port.begin_at for port in read.spec.task_roles[1].ports] == [8000, 8002, 0, 0]


def test_the_last_port_may_be_used() -> None:
    ports = [{"label": "a", "beginAt": 65534, "portNumber": 2}]
    assert document({"portList": ports}).spec.task_roles[0].ports[0].begin_at == 65534


def test_variables_hold_any_json_value_as_written() -> None:
    values = {"A": "$HOME", "B": 1, "C": 1.5, "D": True, "E": None, "F": [1, {"x": "y"}], "G": {}}
    read = document(jobEnvs=values, extras={"submitFrom": "web", "n": [1]})
    assert read.spec.env == values
    assert read.spec.extras == {"submitFrom": "web", "n": [1]}
    assert read.warnings == ()


@pytest.mark.parametrize(
    ("value", "debug", "codes"), [(True, True, []), (False, False, []), ("true", True, ["flag-as-text"])]
)
def test_is_debug(value: object, debug: bool, codes: list[str]) -> None:
    read = document(jobEnvs={"isDebug": value})
    assert read.spec.debug is debug
    assert read.spec.env == {"isDebug": value}
    assert [warning.code for warning in read.warnings] == codes


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("PAI_JOB_NAME", "reserved-variable"),
        ("QIZHI_X", "reserved-variable"),
        ("my-var", "unreachable-variable"),
        ("1st", "unreachable-variable"),
    ],
)
def test_variables_that_will_surprise_are_warned_of(name: str, code: str) -> None:
    assert [warning.code for warning in document(jobEnvs={name: 1}).warnings] == [code]


@pytest.mark.parametrize(("length", "codes"), [(131_071, []), (131_072, ["long-command"])])
def test_a_command_that_linux_cannot_start_is_warned_of(length: int, codes: list[str]) -> None:
    command = "训" + "x" * (length - len("训".encode()))
    assert [warning.code for warning in document({"command": command}).warnings] == codes


@pytest.mark.parametrize(("length", "codes"), [(131_069, []), (131_070, ["long-variable"])])
def test_a_variable_that_linux_cannot_pass_is_warned_of(length: int, codes: list[str]) -> None:
    assert [warning.code for warning in document(jobEnvs={"A": "x" * length}).warnings] == codes


@pytest.mark.parametrize(
    ("name", "most"), [("image", 4096), ("dataDir", 4096), ("gpuType", 255), ("virtualCluster", 255)]
)
def test_words_and_paths_are_bounded(name: str, most: int) -> None:
    fields: dict[str, Any] = {name: "x" * most}
    document(**fields)
    with pytest.raises(DocumentError) as caught:
        document(**(fields | {name: "x" * (most + 1)}))
    assert caught.value.errors[0].message == f"{name} is {most + 1} characters long"


def test_many_warnings_are_counted_not_listed() -> None:
    warnings = document(jobEnvs={f"PAI_{number}": 1 for number in range(150)}).warnings
    assert len(warnings) == 101
    assert warnings[-1].message == "and 50 more warnings"


@pytest.mark.parametrize(
    ("role", "job", "dialect"),
    [
        ({}, {}, Dialect.OPENPAI_V1),
        ({}, {"tmp": None}, Dialect.SCM),
        ({"storageGB": 0}, {}, Dialect.SCM),
        ({}, {"killAllOnCompletedTaskNumber": 0}, Dialect.QIZHI),
        ({"minFailedTaskCount": None}, {"killAllOnCompletedTaskNumber": 1}, Dialect.OPENPAI_V1),
        ({"command": "echo $QIZHI_JOB_NAME"}, {}, Dialect.QIZHI),
        ({"command": "echo $QIZHI_JOB_NAME"}, {"tmp": {}}, Dialect.QIZHI),
        ({}, {"dataDir": "$QIZHI_DEFAULT_FS_URI/x"}, Dialect.QIZHI),
        ({}, {"jobEnvs": {"A": "QIZHI_"}}, Dialect.OPENPAI_V1),
    ],
)
def test_the_dialect_is_told_from_the_text(role: dict[str, Any], job: dict[str, Any], dialect: Dialect) -> None:
    assert document(role, **job).dialect is dialect


def test_the_rule_of_qizhi_is_called_obsolete_elsewhere() -> None:
    kill_all: dict[str, Any] = {"killAllOnCompletedTaskNumber": 1}
    assert document(**kill_all).warnings == ()
    (warning,) = document({"minFailedTaskCount": 1}, **kill_all).warnings
    assert (warning.code, warning.path) == ("obsolete-field", "$.killAllOnCompletedTaskNumber")
    assert document({"minFailedTaskCount": 1}, **kill_all).spec.kill_all_on_completed == 1


@pytest.mark.parametrize("tmp", [None, 1, "x", [], {"vgInfo": {"名称": "test"}}])
def test_tmp_may_hold_anything(tmp: object) -> None:
    assert document(tmp=tmp).warnings == ()


def test_text_and_bytes_read_alike() -> None:
    text = json.dumps(
        {"jobName": "a", "image": "镜像", "taskRoles": [{"name": "r", "command": "x"}]}, ensure_ascii=False
    )
    assert read_document(text) == read_document(text.encode())
    assert read_document(text).source == text.encode()


def test_a_job_has_at_most_ten_thousand_tasks() -> None:
    role = {"taskNumber": 5001, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "x"}
    with pytest.raises(DocumentError) as caught:
        document(taskRoles=[role | {"name": "a"}, role | {"name": "b"}])
    assert caught.value.errors[0].message == "the job has 10002 tasks, more than 10000"
