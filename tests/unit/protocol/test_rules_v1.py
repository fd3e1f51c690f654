"""The rules of OpenPAI v1, QIZHI and SCM one by one, each with the source that it is taken from.

Sources: *seeds* are the guides' field tables (SCM section 4.2, QIZHI); *Joi* is the schema of OpenPAI's REST server
0.12 to 0.17; *wild* is what real documents were found to hold; *ours* is a decision of this reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import Completion, Dialect, JobSpec, TaskRole
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.fields import MAX_KEPT
from pai_backend.protocol.v1 import MAX_ROLES, UNKNOWN_FIELDS

ROLE: dict[str, Any] = {
    "name": "worker",
    "taskNumber": 2,
    "cpuNumber": 1,
    "memoryMB": 1024,
    "gpuNumber": 0,
    "command": "x",
}
PORT = {"label": "a", "beginAt": 0, "portNumber": 1}


def text_of(job: dict[str, Any], role: dict[str, Any]) -> str:
    """A document with these fields instead of those of a plain one; a field of ``...`` is left out."""
    whole = {"jobName": "demo", "image": "python", "taskRoles": [given(ROLE | role)]} | job
    return json.dumps(given(whole), ensure_ascii=False)


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not ...}


@dataclass(frozen=True)
class Taken:
    """What is accepted: ``part`` of the spec is then ``value``, with just these warnings."""

    source: str
    part: Callable[[JobSpec], object]
    value: object
    job: dict[str, Any] = field(default_factory=dict)
    role: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def role_of(part: Callable[[TaskRole], object]) -> Callable[[JobSpec], object]:
    return lambda spec: part(spec.task_roles[0])


def port_of(spec: JobSpec) -> tuple[str, int, int]:
    port = spec.task_roles[0].ports[0]
    return port.label, port.begin_at, port.count


def env(spec: JobSpec) -> object:
    return list(spec.env.items())


TAKEN = [
    Taken("seeds: ^[A-Za-z0-9\\-._~]+$", lambda spec: spec.name, "a-b.c_d~e", {"jobName": "a-b.c_d~e"}),
    Taken("seeds: jobName begins with anything", lambda spec: spec.name, "-.~", {"jobName": "-.~"}),
    Taken("seeds: role ^[A-Za-z0-9._~]+$", role_of(lambda role: role.name), "0.a_b~", role={"name": "0.a_b~"}),
    Taken("seeds: label as a role's name", port_of, ("0.~_", 0, 1), role={"portList": [PORT | {"label": "0.~_"}]}),
    Taken("Joi: authFile may be empty", lambda spec: spec.auth_file, "", {"authFile": ""}),
    Taken("seeds: authFile is a URI", lambda spec: spec.auth_file, "hdfs://h/auth", {"authFile": "hdfs://h/auth"}),
    Taken("Joi: an empty VC is the default one", lambda spec: spec.virtual_cluster, "default", {"virtualCluster": ""}),
    Taken("Joi: an empty gpuType is any", lambda spec: spec.gpu_type, None, {"gpuType": ""}),
    Taken("seeds: SCM's gpuType", lambda spec: spec.gpu_type, "TITANX", {"gpuType": "TITANX"}),
    Taken("Joi: -1 retries without end", lambda spec: spec.retry_count, -1, {"retryCount": -1}),
    Taken("Joi: -2 always runs again", lambda spec: spec.retry_count, -2, {"retryCount": -2}),
    Taken("seeds: 0 switches killAll off", lambda s: s.kill_all_on_completed, 0, {"killAllOnCompletedTaskNumber": 0}),
    Taken("QIZHI: killAll of all tasks", lambda s: s.kill_all_on_completed, 2, {"killAllOnCompletedTaskNumber": 2}),
    Taken(
        "OpenPAI 0.7.2: killAll beside min* is obsolete and followed",
        lambda spec: spec.kill_all_on_completed,
        1,
        {"killAllOnCompletedTaskNumber": 1},
        {"minFailedTaskCount": 1},
        ("obsolete-field",),
    ),
    Taken(
        "seeds: null switches a rule off",
        role_of(lambda role: role.completion),
        Completion(min_failed=None, min_succeeded=None),
        role={"minFailedTaskCount": None, "minSucceededTaskCount": None},
    ),
    Taken("Joi: defaults of the rules", role_of(lambda r: r.completion), Completion(min_failed=1, min_succeeded=None)),
    Taken("seeds: shmMB is 64 when left out", role_of(lambda role: role.resources.shm_mb), 64),
    Taken("Joi: shmMB up to memoryMB", role_of(lambda role: role.resources.shm_mb), 1024, role={"shmMB": 1024}),
    Taken("Joi: portList may be empty", role_of(lambda r: [p.label for p in r.ports]), ["http", "ssh"]),
    Taken("Joi: beginAt and portNumber have defaults", port_of, ("a", 0, 1), role={"portList": [{"label": "a"}]}),
    Taken(
        "seeds: beginAt names the first port",
        port_of,
        ("a", 8000, 3),
        role={"portList": [{"label": "a", "beginAt": 8000, "portNumber": 3}]},
    ),
    Taken(
        'wild: an official example has beginAt: "0"',
        port_of,
        ("a", 0, 1),
        role={"portList": [PORT | {"beginAt": "0"}]},
        warnings=("number-as-text",),
    ),
    Taken("Joi: 1e3 is an integer", role_of(lambda r: r.resources.memory_mb), 1000, role={"memoryMB": 1e3}),
    Taken("Joi: 8192.0 is an integer", role_of(lambda r: r.resources.memory_mb), 8192, role={"memoryMB": 8192.0}),
    Taken(
        "Joi: memoryMB has a default, and shmMB is compared with it",
        role_of(lambda role: (role.resources.memory_mb, role.resources.shm_mb)),
        (100, 100),
        role={"memoryMB": ..., "shmMB": 100},
        warnings=("missing-field",),
    ),
    Taken(
        "Joi: jobEnvs hold any value",
        env,
        [("A", [1, {"b": None}]), ("B", 1.5)],
        {"jobEnvs": {"A": [1, {"b": None}], "B": 1.5}},
    ),
    Taken("ours: integers are exact", env, [("A", 10**60), ("B", -(2**63))], {"jobEnvs": {"A": 10**60, "B": -(2**63)}}),
    Taken(
        "ours: the order of variables is kept",
        env,
        [("Z", 1), ("A", {"y": 1, "b": 2})],
        {"jobEnvs": {"Z": 1, "A": {"y": 1, "b": 2}}},
    ),
    Taken("seeds: isDebug", lambda spec: spec.debug, True, {"jobEnvs": {"isDebug": True}}),
    Taken("Joi: isDebug is off unless said", lambda spec: spec.debug, False, {"jobEnvs": {"isDebug": False}}),
    Taken(
        "ours: isDebug as text",
        lambda spec: spec.debug,
        True,
        {"jobEnvs": {"isDebug": "true"}},
        warnings=("flag-as-text",),
    ),
    Taken(
        "Joi: paiAzRDMA asks for RDMA devices",
        role_of(lambda role: role.infiniband),
        True,
        {"jobEnvs": {"paiAzRDMA": True}},
    ),
    Taken(
        "Joi: paiAzRDMA is off unless said",
        role_of(lambda role: role.infiniband),
        False,
        {"jobEnvs": {"paiAzRDMA": False}},
    ),
    Taken("Joi: extras are free", lambda spec: spec.extras, {"a.b": [1]}, {"extras": {"a.b": [1]}}),
    Taken("SCM: storageGB", role_of(lambda role: role.resources.storage_gb), 5, role={"storageGB": 5}),
    Taken(
        "SCM: tmp is its screen, without meaning",
        lambda s: (s.dialect, s.extras),
        (Dialect.SCM, {}),
        {"tmp": {"vgInfo": {"名称": "x"}}},
    ),
    Taken(
        "ours: a field of SCM that is not known is kept",
        lambda spec: spec.extras,
        {UNKNOWN_FIELDS: {"$.vgId": {"名": [1]}, "$.taskRoles[0].diskSpeed": "fast"}},
        {"tmp": {}, "vgId": {"名": [1]}},
        {"diskSpeed": "fast"},
        ("unknown-field", "unknown-field"),
    ),
    Taken(
        "ours: what extras already hold stays beside it",
        lambda spec: spec.extras,
        {"a": 1, UNKNOWN_FIELDS: {"$.vgId": 1}},
        {"tmp": {}, "vgId": 1, "extras": {"a": 1}},
        warnings=("unknown-field",),
    ),
]


@pytest.mark.parametrize("rule", TAKEN, ids=lambda rule: rule.source)
def test_what_a_rule_takes(rule: Taken) -> None:
    read = read_document(text_of(rule.job, rule.role))
    assert rule.part(read.spec) == rule.value
    assert tuple(warning.code for warning in read.warnings) == rule.warnings


@dataclass(frozen=True)
class Refused:
    """What is not accepted: the only fault is at ``path`` and says ``message``."""

    source: str
    path: str
    message: str
    job: dict[str, Any] = field(default_factory=dict)
    role: dict[str, Any] = field(default_factory=dict)
    hint: str = ""


WORKER = "$.taskRoles[0]"
REFUSED = [
    Refused("seeds: jobName is required", "$.jobName", "jobName is missing", {"jobName": ...}),
    Refused("seeds: image is required", "$.image", "image is missing", {"image": ...}),
    Refused("seeds: at least one role", "$.taskRoles", "taskRoles is empty", {"taskRoles": []}),
    Refused("seeds: taskRoles is required", "$.taskRoles", "taskRoles is missing", {"taskRoles": ...}),
    Refused("seeds: a command is not empty", f"{WORKER}.command", "command must not be empty", role={"command": ""}),
    Refused(
        "OpenPAI 0.4.1: no hyphen in a role", f"{WORKER}.name", 'name holds "-" as character 2', role={"name": "a-b"}
    ),
    Refused("seeds: ASCII only", f"{WORKER}.name", 'name holds "é" as character 2', role={"name": "aé"}),
    Refused(
        "ours: $ of an expression lets a line end through",
        "$.jobName",
        'jobName holds "\ufffd" as character 2',
        {"jobName": "a\n"},
    ),
    Refused(
        "seeds: one task at least", f"{WORKER}.taskNumber", "taskNumber must be at least 1", role={"taskNumber": 0}
    ),
    Refused("seeds: 100 MB at least", f"{WORKER}.memoryMB", "memoryMB must be at least 100", role={"memoryMB": 99}),
    Refused(
        "Joi: shmMB at most memoryMB",
        f"{WORKER}.shmMB",
        "shmMB (1025) is more than memoryMB (1024)",
        role={"shmMB": 1025},
    ),
    Refused(
        "wild: Joi compared before it filled in the default and named the wrong field",
        f"{WORKER}.shmMB",
        "shmMB (101) is more than memoryMB (missing, hence 100)",
        role={"memoryMB": ..., "shmMB": 101},
    ),
    Refused(
        "Joi: min* at most taskNumber",
        f"{WORKER}.minFailedTaskCount",
        "minFailedTaskCount (3) is more than taskNumber (2)",
        role={"minFailedTaskCount": 3},
    ),
    Refused(
        "Joi: min* is null or 1 and more",
        f"{WORKER}.minFailedTaskCount",
        "minFailedTaskCount must be at least 1",
        role={"minFailedTaskCount": 0},
    ),
    Refused(
        "OpenPAI 0.6.1: killAll at most all tasks",
        "$.killAllOnCompletedTaskNumber",
        "killAllOnCompletedTaskNumber (3) is more than the job's 2 tasks",
        {"killAllOnCompletedTaskNumber": 3},
    ),
    Refused("Joi: retries from -2", "$.retryCount", "retryCount must be at least -2", {"retryCount": -3}),
    Refused(
        "ours: true is no number",
        f"{WORKER}.cpuNumber",
        "cpuNumber must be a whole number, not true or false",
        role={"cpuNumber": True},
    ),
    Refused(
        "Joi: isDebug is a flag",
        "$.jobEnvs.isDebug",
        "isDebug must be true or false, not a number",
        {"jobEnvs": {"isDebug": 1}},
    ),
    Refused(
        "Joi: paiAzRDMA is a flag",
        "$.jobEnvs.paiAzRDMA",
        "paiAzRDMA must be true or false, not text",
        {"jobEnvs": {"paiAzRDMA": "yes"}},
    ),
    Refused(
        "ours: last one wins upstream, unseen",
        "$.taskRoles[1].name",
        'another role is already called "worker"',
        {"taskRoles": [ROLE, ROLE]},
    ),
    Refused(
        "Joi: objects are closed",
        "$.retryCont",
        'unknown field "retryCont" in the job',
        {"retryCont": 1},
        hint='Did you mean "retryCount"?',
    ),
    Refused(
        "ours: a slip of the keyboard is one in SCM too",
        "$.retryCont",
        'unknown field "retryCont" in the job',
        {"retryCont": 1, "tmp": {}},
        hint='Did you mean "retryCount"?',
    ),
    Refused(
        "ours: v2's names are known",
        f"{WORKER}.instances",
        'unknown field "instances" in a task role',
        role={"instances": 1, "storageGB": 1},
        hint='Did you mean "taskNumber"?',
    ),
    Refused("ours: only SCM has unknown fields", "$.vgId", 'unknown field "vgId" in the job', {"vgId": 1}),
    Refused(
        "ours: a port list has no free fields",
        f"{WORKER}.portList[0].proto",
        'unknown field "proto" in a port list entry',
        {"tmp": {}},
        {"portList": [PORT | {"proto": "tcp"}]},
    ),
    Refused(
        "ours: ports of a role do not overlap",
        f"{WORKER}.portList[1].beginAt",
        'the ports 8001 to 8001 overlap those of label "a" (8000 to 8001)',
        role={"portList": [{"label": "a", "beginAt": 8000, "portNumber": 2}, {"label": "b", "beginAt": 8001}]},
    ),
    Refused(
        "ours: an earlier range may come later",
        f"{WORKER}.portList[2].beginAt",
        'the ports 7999 to 8000 overlap those of label "b" (8000 to 8000)',
        role={
            "portList": [
                {"label": "a", "beginAt": 9000},
                {"label": "b", "beginAt": 8000},
                {"label": "c", "beginAt": 7999, "portNumber": 2},
            ]
        },
    ),
    Refused(
        "ours: a bound on roles",
        "$.taskRoles",
        f"{MAX_ROLES + 1} task roles, more than {MAX_ROLES}",
        {"taskRoles": [{"name": f"r{number}", "command": "x"} for number in range(MAX_ROLES + 1)]},
    ),
    Refused(
        "ours: a bound on labels",
        f"{WORKER}.portList",
        "257 entries in a port list, more than 256",
        role={"portList": [{"label": f"p{number}"} for number in range(257)]},
    ),
]


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.source)
def test_what_a_rule_refuses(rule: Refused) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(text_of(rule.job, rule.role))
    (fault,) = caught.value.errors
    assert (fault.path, fault.message) == (rule.path, rule.message)
    assert fault.line == 1
    assert fault.hint
    assert rule.hint in ("", fault.hint)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("NaN", "NaN and Infinity are not numbers of JSON"),
        ("Infinity", "NaN and Infinity are not numbers of JSON"),
        ("-Infinity", "NaN and Infinity are not numbers of JSON"),
        ("1e999", "a number too large to be kept"),
        ("9" * 5000, "a number of more than 100 characters"),
        ("0." + "1" * 5000, "a number of more than 100 characters"),
    ],
)
@pytest.mark.parametrize(
    "place",
    ['"retryCount": NUMBER', '"jobEnvs": {"A": NUMBER}', '"extras": {"a": [0, NUMBER]}'],
    ids=["field", "env", "list"],
)
def test_numbers_that_nothing_keeps_are_clean_refusals_anywhere(number: str, message: str, place: str) -> None:
    member = place.replace("NUMBER", number)
    with pytest.raises(DocumentError) as caught:
        read_document(text_of({}, {}).replace('"image"', f'{member}, "image"', 1))
    assert [fault.message for fault in caught.value.errors] == [message]


@pytest.mark.parametrize(
    ("before", "after"),
    [("\ufeff", ""), ("// a guide prints comments\n", ""), ("/* a */\r\n", "/* b */ // c"), ("\ufeff \t\n", "\n\n")],
)
def test_comments_and_a_byte_order_mark_change_nothing(before: str, after: str) -> None:
    plain = text_of({}, {})
    decorated = read_document(before + plain.replace(",", f", {after}\n") + after)
    assert decorated.spec == read_document(plain).spec
    assert decorated.warnings == ()


def test_one_comma_too_many_is_a_warning_wherever_it_stands() -> None:
    document = read_document(text_of({}, {"portList": [PORT]}).replace("}", ",}").replace("]", ",]"))
    assert {(warning.code, warning.path) for warning in document.warnings} == {
        ("trailing-comma", path)
        for path in (
            "$",
            "$.taskRoles",
            "$.taskRoles[0]",
            "$.taskRoles[0].portList",
            "$.taskRoles[0].portList[0]",
        )
    }


def test_fields_of_scm_are_kept_up_to_a_bound() -> None:
    assert len(read(tmp={}, **{f"vg{number}": 1 for number in range(MAX_KEPT)}).spec.extras[UNKNOWN_FIELDS]) == MAX_KEPT
    with pytest.raises(DocumentError, match='unknown field "vg200" in the job'):
        read(tmp={}, **{f"vg{number}": 1 for number in range(MAX_KEPT + 1)})


def test_warnings_of_unknown_fields_say_that_nothing_follows_them() -> None:
    (warning,) = read(tmp={}, vgId=1).warnings
    assert warning.message == 'unknown field "vgId" in the job; it is kept, but ignored'
    assert "jobName" in warning.hint


def read(**job: Any) -> Document:
    return read_document(text_of(job, {}))
