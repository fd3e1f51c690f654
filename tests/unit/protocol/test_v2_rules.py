"""The rules of protocol v2, one by one, each with where it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import (
    Completion,
    Dialect,
    ImageAuth,
    JobSpec,
    PortSpec,
    PriorityClass,
    Scheduling,
    StorageMount,
    TaskRole,
)
from pai_backend.protocol import Document, place_of, read_document

HEAD = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: "python:3.11"}
"""
RESOURCES = "{cpu: 1, memoryMB: 1024, gpu: 0}"


def role(name: str = "worker", more: str = "", resources: str = RESOURCES, commands: str = "[run]") -> str:
    lines = f"  {name}:\n    dockerImage: img\n    resourcePerInstance: {resources}\n    commands: {commands}\n"
    return lines + "".join(f"    {line}\n" for line in more.splitlines())


def read(*roles: str, head: str = "", tail: str = "") -> Document:
    return read_document(HEAD + head + "taskRoles:\n" + "".join(roles or (role(),)) + tail)


def only_role(document: Document) -> TaskRole:
    (found,) = document.spec.task_roles
    return found


def codes(document: Document) -> list[str]:
    return [warning.code for warning in document.warnings]


def test_the_least_document_gets_the_protocols_defaults() -> None:
    document = read()
    assert document.spec == JobSpec(
        name="demo",
        dialect=Dialect.OPENPAI_V2,
        image="python:3.11",
        task_roles=(
            TaskRole(
                name="worker",
                resources={"cpus": 1, "memory_mb": 1024, "gpus": 0, "shm_mb": 512},  # type: ignore[arg-type]
                ports=(PortSpec(label="http", implicit=True), PortSpec(label="ssh", implicit=True)),
                command="run",
                strict=True,
                completion=Completion(min_failed=1, min_succeeded=1),
            ),
        ),
    )
    assert (document.warnings, document.secrets) == ((), {})


# Source: upstream's server: 0, null and a missing count mean the default, -1 switches the rule off.
@pytest.mark.parametrize(
    ("completion", "failed", "succeeded"),
    [
        ("", 1, 3),
        ("completion: {}", 1, 3),
        ("completion:", 1, 3),
        ("completion: {minFailedInstances: 0, minSucceededInstances: 0}", 1, 3),
        ("completion: {minFailedInstances: null, minSucceededInstances: ~}", 1, 3),
        ("completion: {minFailedInstances: -1, minSucceededInstances: -1}", None, None),
        ("completion: {minFailedInstances: 2, minSucceededInstances: 3}", 2, 3),
    ],
)
def test_completion(completion: str, failed: int | None, succeeded: int | None) -> None:
    document = read(role(more=f"instances: 3\n{completion}"))
    assert only_role(document).completion == Completion(min_failed=failed, min_succeeded=succeeded)
    assert document.warnings == ()


# Source: official examples of 0.13 and 0.14 write the names of v1 inside of completion.
@pytest.mark.parametrize(
    ("completion", "failed", "succeeded", "warnings"),
    [
        ("{minSucceededTaskCount: 2}", 1, 2, ["v1-name"]),
        ("{minFailedTaskCount: null, minSucceededTaskCount: null}", None, None, ["v1-name", "v1-name"]),
        ("{minFailedInstances: 2, minFailedTaskCount: 1}", 2, 3, ["v1-name"]),
    ],
)
def test_names_of_v1_in_completion(
    completion: str, failed: int | None, succeeded: int | None, warnings: list[str]
) -> None:
    document = read(role(more=f"instances: 3\ncompletion: {completion}"))
    assert only_role(document).completion == Completion(min_failed=failed, min_succeeded=succeeded)
    assert codes(document) == warnings


@pytest.mark.parametrize(
    ("more", "code", "path"),
    [
        (
            "instances: 2\ncompletion: {minSucceededInstances: 1}",
            "first-task-ends-job",
            ".completion.minSucceededInstances",
        ),
        ("completion: {minFailedInstances: 2}", "unreachable-count", ".completion.minFailedInstances"),
        ("completion: {minSucceededInstances: 2}", "unreachable-count", ".completion.minSucceededInstances"),
        ("taskRetryCount: 1", "task-retry-unused", ".taskRetryCount"),
        ("extraContainerOptions: {shmMB: 2048}", "shm-over-memory", ".extraContainerOptions.shmMB"),
        ("instances: '2'", "number-as-text", ".instances"),
        ("extraContainerOptions: {infiniband: 'true'}", "flag-as-text", ".extraContainerOptions.infiniband"),
    ],
)
def test_what_a_role_is_warned_of(more: str, code: str, path: str) -> None:
    (warning,) = read(role(more=more)).warnings
    assert (warning.code, warning.path) == (code, f"$.taskRoles.worker{path}")
    assert warning.hint


@pytest.mark.parametrize(
    "more", ["completion: {minSucceededInstances: 1}", "instances: 4\ncompletion: {minSucceededInstances: 2}"]
)
def test_no_warning_for_a_count_that_is_meant(more: str) -> None:
    assert read(role(more=more)).warnings == ()


# Source: upstream's default of minSucceededInstances is the number of instances, whatever the other roles do.
def test_the_first_complete_role_ends_a_job_of_several_unless_it_says_otherwise() -> None:
    says = "completion: {minSucceededInstances: -1}"
    assert codes(read(role("ps", says), role("worker", says))) == []
    (warning,) = read(role("ps"), role("worker", says)).warnings
    assert (warning.code, warning.path) == ("first-role-ends-job", "$.taskRoles.ps")
    (warning,) = read(role("ps", says), role("worker", "completion: {minSucceededInstances: null}")).warnings
    assert (warning.code, warning.path) == ("first-role-ends-job", "$.taskRoles.worker")


@pytest.mark.parametrize("count", [-2, -1, 0, 5])
def test_retries(count: int) -> None:
    document = read(role(more=f"taskRetryCount: {count}"), head=f"jobRetryCount: {count}\n")
    assert (document.spec.retry_count, only_role(document).task_retry_count) == (count, count)


# Source: upstream adds ssh and http to every role that does not declare them.
@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ("{}", [("http", 1, True), ("ssh", 1, True)]),
        ("", [("http", 1, True), ("ssh", 1, True)]),
        ("{ssh: 2}", [("ssh", 2, False), ("http", 1, True)]),
        ("{b: 1, a: '3'}", [("b", 1, False), ("a", 3, False), ("http", 1, True), ("ssh", 1, True)]),
    ],
)
def test_ports(ports: str, expected: list[tuple[str, int, bool]]) -> None:
    document = read(role(resources=f"{{cpu: 1, memoryMB: 1, gpu: 0, ports: {ports}}}"))
    assert [(port.label, port.count, port.implicit) for port in only_role(document).ports] == expected


@pytest.mark.parametrize(
    ("word", "cpus"), [("1e3", 1000), ("8.0", 8), ("0o10", 8), ("0x10", 16), ("+4", 4), ("010", 10)]
)
def test_whole_numbers_as_yaml_writes_them(word: str, cpus: int) -> None:
    assert only_role(read(role(resources=f"{{cpu: {word}, memoryMB: 1, gpu: 0}}"))).resources.cpus == cpus


@pytest.mark.parametrize("name", ["on", "off", "yes", "y", "null", "true", "_", "a" * 255])
def test_a_role_called_as_a_word_of_yaml_is_text(name: str) -> None:
    assert only_role(read(role(name))).name == name


def test_commands_are_trimmed_and_joined_and_run_strictly() -> None:
    document = read(role(commands="['  a  ', \"b\\n\", ' ', \"c\\n  d\"]"))
    assert (only_role(document).command, only_role(document).strict) == ("a\nb\nc\n  d", True)


def test_the_active_deployment_surrounds_the_commands() -> None:
    deployments = """\
deployments:
  - name: other
    taskRoles: {worker: {preCommands: [other]}}
  - name: here
    version: 1.0
    taskRoles:
      worker: {preCommands: [before, <% $parameters.a %>], postCommands: [after]}
      idle:
defaults: {deployment: here, virtualCluster: vc1}
parameters: {a: 1}
"""
    document = read(role(), role("idle"), tail=deployments)
    worker, idle = document.spec.task_roles
    assert (worker.command, idle.command) == ("before\n1\nrun\nafter", "run")
    assert document.spec.virtual_cluster == "vc1"


def test_without_an_active_deployment_none_is_used() -> None:
    tail = "deployments:\n  - name: here\n    taskRoles: {worker: {preCommands: [before]}}\n"
    assert only_role(read(tail=tail)).command == "run"


def test_every_role_has_its_own_image_and_credentials() -> None:
    head = """\
  - name: private
    type: dockerimage
    uri: registry/<% $parameters.tag %>
    auth: {username: <% $parameters.tag %>, password: <% $secrets.word %>, registryuri: registry}
parameters: {tag: v1}
secrets: {word: hunter2}
"""
    document = read(role(), role("other").replace("img", "private"), head=head)
    first, second = document.spec.task_roles
    assert (document.spec.image, first.image, first.image_auth) == ("python:3.11", None, None)
    assert second.image == "registry/v1"
    assert second.image_auth == ImageAuth(username="v1", password="<% $secrets.word %>", registry_uri="registry")
    assert document.spec.image_of(second) == "registry/v1"


def test_a_password_in_the_open_is_moved_to_the_secrets() -> None:
    head = """\
  - {name: x, type: data, uri: a}
  - name: private
    type: dockerimage
    uri: a
    auth: {username: me, password: hunter2}
secrets: {auth_2_password: taken}
"""
    document = read(role().replace("img", "private"), head=head)
    auth = only_role(document).image_auth
    assert auth is not None
    assert auth.password == "<% $secrets.auth_2_password_ %>"
    assert document.secrets == {"auth_2_password": "taken", "auth_2_password_": "hunter2"}
    assert document.spec.secret_names == ("auth_2_password", "auth_2_password_")
    assert "hunter2" not in document.spec.model_dump_json() + repr(document.warnings)
    assert codes(document) == ["literal-password"]


def with_password(password: str, more: str = "parameters: {p: x}\n") -> Document:
    head = (
        f"  - {{name: private, type: dockerimage, uri: a, auth: {{password: '{password}'}}}}\nsecrets: {{a: hunter2}}\n"
    )
    return read(role().replace("img", "private"), head=head + more)


@pytest.mark.parametrize(
    ("password", "whole"),
    [
        ("p <% $secrets.a %>", "p hunter2"),
        ("<% $secrets.a %> ", "hunter2 "),
        ("<% $secrets.a %><% $parameters.p %>", "hunter2x"),
        ("<<% $parameters.p %>%>", "<x%>"),
    ],
)
def test_a_password_that_is_more_than_a_tag_is_a_secret_as_a_whole(password: str, whole: str) -> None:
    document = with_password(password)
    auth = only_role(document).image_auth
    assert auth is not None
    assert auth.password == "<% $secrets.auth_1_password %>"
    assert document.secrets == {"a": "hunter2", "auth_1_password": whole}
    assert codes(document) == ["literal-password"]


def test_what_a_password_puts_together_is_scanned_once() -> None:
    document = with_password("<<% $parameters.p %>", "parameters: {p: '% $secrets.a %>'}\n")
    assert document.secrets["auth_1_password"] == "<% $secrets.a %>"


@pytest.mark.parametrize("password", ["<% $secrets.a %>", "<% $secrets.a %><% $parameters.p %>", "<% $parameters.p %>"])
@pytest.mark.parametrize("value", ["<% $secrets.a %>", "''", "[<% $secrets.a %>, '']"])
def test_a_password_of_tags_alone_is_no_further_secret(password: str, value: str) -> None:
    document = with_password(password, f"parameters: {{p: {value}}}\n")
    assert document.secrets == {"a": "hunter2"}
    assert codes(document) == []


def test_a_password_of_many_tags_grows_no_further_than_a_command() -> None:
    more = f"parameters: {{p: '{'<% $secrets.b %>' * 1000}'}}\n"
    head = f"  - {{name: private, type: dockerimage, uri: a, auth: {{password: 'x{'<% $parameters.p %>' * 100}'}}}}\n"
    secrets = f"secrets: {{b: {'x' * 100_000}}}\n"
    with pytest.raises(DocumentError, match="more than 4194304 characters"):
        read(role().replace("img", "private"), head=head + secrets + more)


@pytest.mark.parametrize(("password", "value"), [("hunter2", "hunter2"), ("12.50", "12.50"), ("true", "true")])
def test_the_password_of_data_reaches_a_command_as_a_secret(password: str, value: str) -> None:
    head = f"  - {{name: d, type: data, uri: a, auth: {{user: me, password: {password}}}}}\n"
    document = read(
        role(more="data: d", commands="['login <% $data.auth.user %> <% $data.auth.password %>']"), head=head
    )
    assert only_role(document).command == "login me <% $secrets.auth_1_password %>"
    assert document.secrets == {"auth_1_password": value}
    assert codes(document) == ["literal-password"]


def test_extras_for_the_scheduler() -> None:
    extras = """\
extras:
  gangAllocation: false
  hivedScheduler:
    jobPriorityClass: crit
    lazyPreemptionEnable: true
    ignoreK8sSuggestedNodes: false
    gangReleaseEnable: true
    taskRoles:
      worker: {skuType: V100, affinityGroupName: all, skuNum: 4}
      ps: {pinnedCellId: node-1}
      idle:
"""
    says = "completion: {minSucceededInstances: -1}"
    document = read(role("worker", says), role("ps", says), role("idle", says), tail=extras)
    worker, ps, idle = document.spec.task_roles
    assert document.spec.scheduling == Scheduling(
        gang_allocation=False,
        priority_class=PriorityClass.CRIT,
        lazy_preemption=True,
        ignore_suggested_nodes=False,
        gang_release=True,
    )
    assert (worker.sku_type, worker.pinned_cell_id, worker.affinity_group) == ("V100", None, "all")
    assert (ps.sku_type, ps.pinned_cell_id, ps.affinity_group) == (None, "node-1", None)
    assert (idle.sku_type, idle.pinned_cell_id, idle.affinity_group) == (None, None, None)
    assert (codes(document), document.spec.extras) == (["gang-release-unused"], {})


def within(scheduler: str, more: str = "") -> str:
    return f"extras: {{hivedScheduler: {{{scheduler}}}{more}}}\n"


def test_one_cell_may_be_asked_for_a_role_and_for_a_gang() -> None:
    document = read(tail=within("withinOneCell: RACK, taskRoles: {worker: {withinOneCell: NODE}}"))
    assert document.spec.scheduling.within_one_cell == "RACK"
    assert only_role(document).within_one_cell == "NODE"
    assert read(tail=within("taskRoles: {worker: {}}")).spec.scheduling.within_one_cell is None


WORKER_WITHIN = "$.extras.hivedScheduler.taskRoles.worker.withinOneCell"


@pytest.mark.parametrize(
    ("tail", "path", "said"),
    [
        (
            within("taskRoles: {worker: {withinOneCell: NODE}}", ", gangAllocation: false"),
            WORKER_WITHIN,
            "tasks that start one by one are not placed together",
        ),
        (
            within("withinOneCell: RACK", ", gangAllocation: false"),
            "$.extras.hivedScheduler.withinOneCell",
            "tasks that start one by one are not placed together",
        ),
        (
            within("taskRoles: {worker: {withinOneCell: NODE}, ps: {affinityGroupName: a}}"),
            WORKER_WITHIN,
            "each task of this one is placed by itself",
        ),
        (within("taskRoles: {worker: {withinOne: NODE}}"), WORKER_WITHIN[:-4], "unknown field"),
    ],
)
def test_one_cell_is_refused_where_tasks_are_not_placed_together(tail: str, path: str, said: str) -> None:
    says = "completion: {minSucceededInstances: -1}"
    with pytest.raises(DocumentError) as caught:
        read(role("worker", says), role("ps", says), tail=tail)
    (fault,) = caught.value.errors
    assert fault.path == path
    assert said in fault.message
    assert fault.hint
    assert (fault.column or 0) > len("extras: {")


# Source: the protocol's page writes it so; upstream's server ignores that spelling.
def test_the_pages_spelling_of_the_scheduler() -> None:
    extras = "extras: {hivedscheduler: {jobPriorityClass: oppo, taskRoles: {worker: {%s}}}}\n"
    document = read(tail=extras % "gpuType: K80")
    assert document.spec.scheduling.priority_class is PriorityClass.OPPO
    assert only_role(document).sku_type == "K80"
    assert codes(document) == ["lower-case-hivedscheduler"]
    assert only_role(read(tail=extras % "reservationId: r")).pinned_cell_id == "r"


@pytest.mark.parametrize("word", ["crit", "prod", "test", "oppo"])
def test_priority_classes(word: str) -> None:
    document = read(tail=f"extras: {{hivedScheduler: {{jobPriorityClass: {word}}}}}\n")
    assert document.spec.scheduling.priority_class == PriorityClass(word)


def test_other_extras_are_kept_as_they_are() -> None:
    extras = """\
extras:
  submitFrom: form
  jobStatusChangeNotification: {running: true, failed: true, stopped: false}
  storages: [{name: nfs}, {name: blob, mountPath: /data/}, {name: nfs}]
  ours: {list: [1, a, null, 1.5], on: true}
"""
    document = read(tail=extras)
    assert document.spec.submit_from == "form"
    assert document.spec.notify == ("running", "failed")
    assert document.spec.storages == (
        StorageMount(name="nfs", mount_path="/mnt/nfs"),
        StorageMount(name="blob", mount_path="/data"),
    )
    assert document.spec.extras == {"ours": {"list": [1, "a", None, 1.5], "on": True}}
    assert codes(document) == []


def test_an_empty_list_of_storages_asks_for_what_there_is_not() -> None:
    assert codes(read(tail="extras: {storages: []}\n")) == ["no-default-storage"]


@pytest.mark.parametrize("field", ["parameters", "secrets", "extras", "defaults", "deployments", "description"])
def test_a_field_may_be_left_empty(field: str) -> None:
    assert read(tail=f"{field}:\n").spec == read().spec


# Source: the protocol's drafts, and upstream's own first examples.
def test_a_draft_is_read_with_its_names_of_then() -> None:
    text = """\
protocol_version: "2"
name: demo
type: job
prerequisites:
  - protocol_version: "2"
    name: img
    type: dockerimage
    uri: a
    auth: {username: me, passward: <% $secrets.word %>}
secrets: {word: hunter2}
taskRoles:
  worker:
    instance: 2
    completion: {minFailedInstances: null, minSucceededInstances: null}
    dockerImage: img
    resourcePerInstanec: {cpu: 1, memoryMB: 1, gpu: 0, ports: {web: 0}}
    commands: [run]
deployments:
  - name: prod
    taskRoles: {worker: {pre_commands: [before]}}
default:
  deployment: prod
"""
    document = read_document(text)
    worker = only_role(document)
    assert document.dialect is document.spec.dialect is Dialect.OPENPAI_V2_DRAFT
    assert (worker.instances, worker.command) == (2, "before\nrun")
    assert worker.completion == Completion(min_failed=None, min_succeeded=None)
    assert worker.ports[0] == PortSpec(label="web")
    assert worker.image_auth == ImageAuth(username="me", password="<% $secrets.word %>")
    assert [warning.path for warning in document.warnings if warning.code == "draft-name"] == [
        "$.protocol_version",
        "$.default",
        "$.taskRoles.worker.instance",
        "$.taskRoles.worker.resourcePerInstanec",
        "$.prerequisites[0].protocol_version",
        "$.prerequisites[0].auth.passward",
        "$.deployments[0].taskRoles.worker.pre_commands",
    ]
    assert codes(document).count("draft-null") == 2
    assert codes(document).count("draft-port") == 1


def test_a_document_with_both_the_old_and_the_new_name_is_not_a_draft() -> None:
    with pytest.raises(Exception, match='unknown field "instance"'):
        read(role(more="instance: 1\ninstances: 1"))


JSON: dict[str, Any] = {
    "protocolVersion": "2",
    "name": "demo",
    "type": "job",
    "prerequisites": [{"name": "img", "type": "dockerimage", "uri": "python:3.11"}],
    "taskRoles": {
        "worker": {
            "dockerImage": "img",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1024, "gpu": 0},
            "commands": ["run"],
        }
    },
}


@pytest.mark.parametrize(
    "style", ["json", "json with comments", "flow", "quoted keys", "crlf", "bom", "explicit", "tabs"]
)
def test_the_same_document_in_other_styles(style: str) -> None:
    import json

    block = HEAD + "taskRoles:\n" + role()
    text = {
        "json": json.dumps(JSON, indent=2),
        "json with comments": "// v2\n" + json.dumps(JSON, indent=2).replace("[", "/* list */ [", 1),
        "flow": "{protocolVersion: 2, name: demo, type: job, # flow\n"
        " prerequisites: [{name: img, type: dockerimage, uri: 'python:3.11',},],\n"
        f" taskRoles: {{worker: {{dockerImage: img, resourcePerInstance: {RESOURCES}, commands: [run]}}}}}}\n",
        "quoted keys": block.replace("name: demo", '"name": demo').replace("protocolVersion", "'protocolVersion'"),
        "crlf": block.replace("\n", "\r\n"),
        "bom": "\ufeff" + block,
        "explicit": "%YAML 1.2\n--- # a job\n" + block + "...\n",
        "tabs": block.replace("name: demo", "name:\tdemo\t# tab"),
    }[style]
    assert read_document(text).spec == read().spec


def test_a_place_is_found_again() -> None:
    document = read(tail="defaults:\n  virtualCluster: vc\n")
    assert place_of(document, ("defaults", "virtualCluster")) == (12, 19)
    assert place_of(document, ("prerequisites", 0, "uri")) == (5, 41)
    assert place_of(document, ("defaults", "deployment")) is None
    assert place_of(document, ("prerequisites", 7)) is None
