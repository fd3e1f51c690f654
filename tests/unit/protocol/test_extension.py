"""``extras.jupyterPai``: what a v2 document says there is followed, and what is wrong there has its place."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import JobSpec
from pai_backend.protocol import read_document
from pai_backend.protocol.extension import original_names

DOCUMENT = """\
protocolVersion: 2
name: demo
type: job
prerequisites: [{name: image, type: dockerimage, uri: python}]
taskRoles:
  worker:
    instances: 3
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0, ports: {a: 2, b: 1}}
    commands: [echo]
extras:
  other: 1
  jupyterPai:
"""
UNKNOWN_TIME = "expectedRunTime is not a known duration"
OUT_OF_RANGE = "expectedRunTime must be from 1 second to 365 days"


def read(*lines: str) -> JobSpec:
    return read_document(DOCUMENT + "".join(f"    {line}\n" for line in lines)).spec


def test_everything_that_can_be_said_is_followed() -> None:
    spec = read(
        "authFile: auth",
        "dataDir: $PAI_DEFAULT_FS_URI/data",
        "outputDir: /out",
        "codeDir: /code",
        "gpuType: P100",
        "retryCount: -2",
        "killAllOnCompletedTaskNumber: 2",
        "isDebug: true",
        "expectedRunTime: 1d2h30m",
        "nodeSelector: {zone: a, kubernetes.io/hostname: carol}",
        "taskRoles: {worker: {storageGB: 5, beginAt: {a: 8000, b: 0}}}",
        "extras: {submitFrom: web}",
    )
    assert (spec.auth_file, spec.data_dir, spec.output_dir, spec.code_dir) == (
        "auth",
        "$PAI_DEFAULT_FS_URI/data",
        "/out",
        "/code",
    )
    assert (spec.gpu_type, spec.retry_count, spec.kill_all_on_completed, spec.debug) == ("P100", -2, 2, True)
    assert spec.expected_run_s == (26 * 60 + 30) * 60
    assert spec.node_selector == {"zone": "a", "kubernetes.io/hostname": "carol"}
    (role,) = spec.task_roles
    assert role.resources.storage_gb == 5
    assert [(port.label, port.begin_at) for port in role.ports if not port.implicit] == [("a", 8000), ("b", 0)]
    assert (spec.extras["other"], spec.extras["submitFrom"], spec.submit_from) == (1, "web", "")


INCREMENTAL = DOCUMENT.replace("  jupyterPai:", "  gangAllocation: false\n  jupyterPai:")
LEAST = "$.extras.jupyterPai.taskRoles.worker.minInstances"


def test_of_tasks_that_start_one_by_one_some_may_start_together() -> None:
    (role,) = read_document(INCREMENTAL + "    taskRoles: {worker: {minInstances: 2}}\n").spec.task_roles
    assert (role.instances, role.min_instances) == (3, 2)
    (plain,) = read_document(INCREMENTAL + "    taskRoles: {worker: {}}\n").spec.task_roles
    assert plain.min_instances is None


@pytest.mark.parametrize(
    ("document", "least", "message"),
    [
        (DOCUMENT, 2, "all tasks of a gang start together"),
        (INCREMENTAL, 4, "minInstances (4) is more than the role's 3 instances"),
        (INCREMENTAL, 0, "minInstances must be at least 1"),
    ],
)
def test_a_number_of_first_tasks_that_cannot_be_is_a_fault(document: str, least: int, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(f"{document}    taskRoles: {{worker: {{minInstances: {least}}}}}\n")
    (fault,) = caught.value.errors
    assert (fault.path, fault.message) == (LEAST, message)
    assert fault.hint


def test_a_document_without_it_is_as_it_was() -> None:
    plain = DOCUMENT.removesuffix("  jupyterPai:\n")
    assert read_document(plain).spec == read("{}").model_copy(update={"extras": {"other": 1}})
    assert read().task_roles == read("{}").task_roles


@pytest.mark.parametrize(
    ("line", "path", "message", "column"),
    [
        ("dataDirr: x", "$.extras.jupyterPai.dataDirr", 'unknown field "dataDirr" in jupyterPai', 5),
        ("retryCount: -3", "$.extras.jupyterPai.retryCount", "retryCount must be at least -2", 17),
        (
            "killAllOnCompletedTaskNumber: 4",
            "$.extras.jupyterPai.killAllOnCompletedTaskNumber",
            "killAllOnCompletedTaskNumber (4) is more than the job's 3 tasks",
            35,
        ),
        ("isDebug: 1", "$.extras.jupyterPai.isDebug", "isDebug must be true or false, not a number", 14),
        ("expectedRunTime: 90", "$.extras.jupyterPai.expectedRunTime", "expectedRunTime has no unit", 22),
        ("expectedRunTime: '90'", "$.extras.jupyterPai.expectedRunTime", "expectedRunTime has no unit", 22),
        ("expectedRunTime: 30m2h", "$.extras.jupyterPai.expectedRunTime", UNKNOWN_TIME, 22),
        ("expectedRunTime: 1.5h", "$.extras.jupyterPai.expectedRunTime", UNKNOWN_TIME, 22),
        ("expectedRunTime: ''", "$.extras.jupyterPai.expectedRunTime", UNKNOWN_TIME, 22),
        ("expectedRunTime: 2H", "$.extras.jupyterPai.expectedRunTime", UNKNOWN_TIME, 22),
        ("expectedRunTime: true", "$.extras.jupyterPai.expectedRunTime", UNKNOWN_TIME, 22),
        ("expectedRunTime: 0s", "$.extras.jupyterPai.expectedRunTime", OUT_OF_RANGE, 22),
        ("expectedRunTime: 365d1s", "$.extras.jupyterPai.expectedRunTime", OUT_OF_RANGE, 22),
        ("nodeSelector: zone", "$.extras.jupyterPai.nodeSelector", "nodeSelector must be an object, not text", 19),
        (
            "nodeSelector: {gpu: true}",
            "$.extras.jupyterPai.nodeSelector.gpu",
            "the value of gpu must be text, not true or false",
            25,
        ),
        ("nodeSelector: {z e: a}", '$.extras.jupyterPai.nodeSelector["z e"]', '"z e" is not a valid label key', 20),
        (
            "nodeSelector: {z: a/b}",
            "$.extras.jupyterPai.nodeSelector.z",
            "the value of z is not a valid label value",
            23,
        ),
        ("taskRoles: {ps: {}}", "$.extras.jupyterPai.taskRoles.ps", "this is not a task role of the job", 17),
        (
            "taskRoles: {worker: {beginAt: {c: 1}}}",
            "$.extras.jupyterPai.taskRoles.worker.beginAt.c",
            "the task role has no port of that label",
            36,
        ),
        (
            "taskRoles: {worker: {beginAt: {a: 70000}}}",
            "$.extras.jupyterPai.taskRoles.worker.beginAt.a",
            "no port from 0 to 65535",
            39,
        ),
        (
            "taskRoles: {worker: {beginAt: {a: 65535}}}",
            "$.extras.jupyterPai.taskRoles.worker.beginAt.a",
            "the ports 65535 to 65536 go beyond 65535",
            39,
        ),
        (
            "taskRoles: {worker: {beginAt: {a: 8000, b: 8001}}}",
            "$.extras.jupyterPai.taskRoles.worker.beginAt.b",
            'the ports 8001 to 8001 overlap those of label "a" (8000 to 8001)',
            48,
        ),
        (
            "names: {taskRoles: {worker: a b}}",
            "$.extras.jupyterPai.names.taskRoles.worker",
            "this is not a valid name in OpenPAI v1",
            33,
        ),
        ("names: {jobName: a/b}", "$.extras.jupyterPai.names.jobName", 'jobName holds "/" as character 2', 22),
    ],
)
def test_a_mistake_is_one_fault_with_its_place(line: str, path: str, message: str, column: int) -> None:
    with pytest.raises(DocumentError) as caught:
        read(line)
    (fault,) = caught.value.errors
    assert (fault.path, fault.message, fault.line, fault.column) == (path, message, 14, column)
    assert fault.hint


@pytest.mark.parametrize("value", ["1", "[]", "x"])
def test_it_must_be_an_object(value: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(DOCUMENT.replace("jupyterPai:", f"jupyterPai: {value}"))
    assert caught.value.errors[0].path == "$.extras.jupyterPai"


def test_the_names_before_a_conversion_change_nothing_here() -> None:
    spec = read("names: {jobName: a.b, taskRoles: {worker: 'w~'}, portList: {a: a.b}}")
    assert (spec.name, spec.task_roles[0].name) == ("demo", "worker")
    assert original_names(spec) == ("a.b", {"worker": "w~"}, {"a": "a.b"})
    assert original_names(read("{}")) == ("", {}, {})
