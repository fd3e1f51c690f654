"""Documents that OpenPAI's own server takes, and those that the protocol's page or the published schema refuse.

Source: the seeds' page on protocol v2, upstream's schema of it, and the descriptions of its runtime plugins.
"""

from __future__ import annotations

import json

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import SshOptions, TaskRole
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.mask import masked

KEY = "com.microsoft.pai.runtimeplugin"
DOCUMENT = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: a}
  - {name: code, type: script, uri: u}
parameters: {rate: 1e-3, words: [a, b], sub: {on: true, none: null}, quote: "it's"}
secrets: {key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIs8n6YyZ1T9Jj, pw: x}
taskRoles:
  worker:
    instances: 2
    dockerImage: img
    script: code
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [run]
    completion: {minSucceededInstances: -1}
  ps:
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [serve]
    completion: {minSucceededInstances: -1}
"""


def read(tail: str = "", **replaced: str) -> Document:
    text = DOCUMENT + tail
    for old, new in replaced.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return read_document(text)


def plugin(parameters: str, name: str = "ssh") -> str:
    return f"extras:\n  {KEY}:\n    - {{plugin: {name}, parameters: {parameters}}}\n"


def faults_of(tail: str, text: str = DOCUMENT) -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        read_document(text + tail)
    assert all(fault.hint and fault.line for fault in caught.value.errors)
    return caught.value.errors


def codes(document: Document) -> list[tuple[str, str | None]]:
    return [(warning.code, warning.path) for warning in document.warnings]


def worker(document: Document) -> TaskRole:
    return document.spec.task_roles[0]


@pytest.mark.parametrize("key", ["<% $secrets.key %>", "<% $secrets.key %> alice@laptop"])
def test_a_public_key_may_be_a_secret_and_stays_one(key: str) -> None:
    document = read(plugin(f'{{jobssh: true, userssh: {{type: custom, value: "{key}"}}}}'))
    assert worker(document).ssh == SshOptions(job_ssh=True, authorized_keys=(key,))
    assert "AAAAC3" not in document.spec.model_dump_json()


def test_a_tag_beside_a_key_that_is_none_is_no_way_around_the_check() -> None:
    for key in ("nonsense", "<% $parameters.quote %>", "-----BEGIN OPENSSH PRIVATE KEY-----"):
        (fault,) = faults_of(plugin(f'{{userssh: {{type: custom, value: "{key}"}}}}'))
        assert fault.message == "this is not an OpenSSH public key"


# Upstream leaves such a plugin out: "parameters is empty, ignore this".
@pytest.mark.parametrize("name", ["tensorboard", "git"])
@pytest.mark.parametrize("parameters", ["", ", parameters: ", ", parameters: {}"])
def test_a_plugin_without_the_parameters_it_needs_is_left_out(name: str, parameters: str) -> None:
    document = read(f"extras:\n  {KEY}:\n    - {{plugin: {name}{parameters}}}\n")
    assert codes(document) == [("empty-plugin", f'$.extras["{KEY}"][0].plugin')]
    assert worker(document).command == "run"
    assert [port.label for port in worker(document).ports] == ["http", "ssh"]


@pytest.mark.parametrize(
    ("parameters", "roles"),
    [
        ("{jobssh: true, sshbarrier: true}", ()),
        ("{jobssh: true, sshbarrier: [ps, worker, ps]}", ("ps", "worker")),
        ("{jobssh: true, sshbarrier: true, sshbarriertaskroles: [ps]}", ("ps",)),
    ],
)
def test_the_barrier_waits_for_the_roles_that_it_names(parameters: str, roles: tuple[str, ...]) -> None:
    document = read(plugin(parameters))
    assert worker(document).ssh == SshOptions(job_ssh=True, barrier=True, barrier_roles=roles)
    assert f"for pai_role in {' '.join(roles or ('worker', 'ps'))}; do" in worker(document).command
    assert worker(document).command.endswith("\nrun")
    assert document.warnings == ()


def test_no_barrier_where_upstream_has_none() -> None:
    path = f'$.extras["{KEY}"][0].parameters.sshbarrier'
    document = read(plugin("{sshbarrier: [ps]}"))
    assert (worker(document).command, codes(document)) == ("run", [("barrier-without-jobssh", path)])
    for none in ("[]", "false", ""):
        document = read(plugin(f"{{jobssh: true, sshbarrier: {none}}}"))
        assert (worker(document).command, document.warnings) == ("run", ())
    alone = read(plugin("{jobssh: true, sshbarrier: true}") + "  gangAllocation: false\n")
    assert worker(alone).command == "run"
    assert [code for code, _ in codes(alone)] == ["barrier-without-gang"]


def test_a_barrier_for_a_role_that_is_not_there_is_a_fault() -> None:
    for parameters in ("{jobssh: true, sshbarrier: [sp]}", "{sshbarrier: true, sshbarriertaskroles: [sp]}"):
        (fault,) = faults_of(plugin(parameters))
        assert fault.message == '"sp" is not a task role of this job'


# Upstream's schema leaves these objects open.
@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("defaults: {priority: 3}\n", "$.defaults.priority"),
        ("defaults: {virtualcluster: other}\n", "$.defaults.virtualcluster"),
        ("deployments: [{name: d, owner: x, taskRoles: {ps: {}}}]\n", "$.deployments[0].owner"),
        ("extras: {hivedScheduler: {priority: prod}}\n", "$.extras.hivedScheduler.priority"),
        (
            "extras: {hivedScheduler: {taskRoles: {ps: {colour: red}}}}\n",
            "$.extras.hivedScheduler.taskRoles.ps.colour",
        ),
        ("extras: {storages: [{name: nfs, share: a}]}\n", "$.extras.storages[0].share"),
        (
            "extras: {jobStatusChangeNotification: {started: true}}\n",
            "$.extras.jobStatusChangeNotification.started",
        ),
        (plugin("{jobsh: true}"), f'$.extras["{KEY}"][0].parameters.jobsh'),
        (plugin("{userssh: {type: none, title: t}}"), f'$.extras["{KEY}"][0].parameters.userssh.title'),
    ],
)
def test_an_unknown_field_of_an_open_object_is_overlooked_and_told(tail: str, path: str) -> None:
    assert codes(read(tail)) == [("unknown-field", path)]


def test_an_unknown_field_elsewhere_is_a_fault() -> None:
    for tail in ("colour: red\n", "deployments: [{name: d, taskRoles: {ps: {command: x}}}]\n"):
        (fault,) = faults_of(tail)
        assert "unknown field" in fault.message
    (fault,) = faults_of("extras: {hivedScheduler: {taskRoles: {ps: {withinOne: NODE}}}}\n")
    assert fault.hint == 'Did you mean "withinOneCell"?'


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("extras: {hivedScheduler: {jobPriorityClass: ''}}\n", "$.extras.hivedScheduler.jobPriorityClass"),
        ("extras: {hivedScheduler: {jobPriorityClass: ' '}}\n", "$.extras.hivedScheduler.jobPriorityClass"),
        ("extras: {hivedScheduler: {jobPriorityClass: }}\n", "$.extras.hivedScheduler.jobPriorityClass"),
        ("extras: {hivedscheduler: {jobPriorityClass: ~}}\n", "$.extras.hivedscheduler.jobPriorityClass"),
        ("extras: {hivedScheduler: {taskRoles: {}}}\n", "$.extras.hivedScheduler.taskRoles"),
        ("deployments: [{name: d, taskRoles: {}}]\n", "$.deployments[0].taskRoles"),
        ("deployments: [{name: d.1, taskRoles: {ps: {}}}]\n", "$.deployments[0].name"),
        ("deployments: [{name: my d, taskRoles: {ps: {}}}]\n", "$.deployments[0].name"),
        ("defaults: {deployment: ''}\n", "$.defaults.deployment"),
        ("extras: {hivedScheduler: {taskRoles: }}\n", "$.extras.hivedScheduler.taskRoles"),
        *(
            (
                f"extras: {{hivedscheduler: {{taskRoles: {{ps: {{{name}: ''}}}}}}}}\n",
                f"$.extras.hivedscheduler.taskRoles.ps.{name}",
            )
            for name in ("gpuType", "reservationId", "skuType", "pinnedCellId")
        ),
        ("deployments: [{name: d, version: [1], taskRoles: {ps: {}}}]\n", "$.deployments[0].version"),
    ],
)
def test_what_the_page_requires_or_names_is_required(tail: str, path: str) -> None:
    (fault,) = faults_of(tail)
    assert fault.path == path


@pytest.mark.parametrize("name", ["a.b", "a b", "a/b", "ä"])
@pytest.mark.parametrize("kind", ["img", "code"])
def test_names_of_prerequisites_are_those_of_jobs(name: str, kind: str) -> None:
    text = DOCUMENT.replace(f"name: {kind}", f'name: "{name}"').replace(f": {kind}\n", f': "{name}"\n')
    (fault,) = faults_of("", text)
    assert fault.hint == "Use letters, digits, '-' and '_' only."


@pytest.mark.parametrize("version", ["[1]", "{a: 1}", "true"])
@pytest.mark.parametrize("kind", ["img", "code"])
def test_the_version_of_a_prerequisite_is_text_or_a_number(version: str, kind: str) -> None:
    (fault,) = faults_of("", DOCUMENT.replace(f"name: {kind}", f"name: {kind}, version: {version}"))
    assert fault.message.startswith("version must be text or a number")


def test_instances_left_empty_are_one() -> None:
    assert worker(read(**{"instances: 2": "instances:"})).instances == 1


def test_an_empty_choice_is_not_no_choice() -> None:
    (fault,) = faults_of("", DOCUMENT.replace("script: code", 'script: ""'))
    assert fault.path == "$.taskRoles.worker.script"
    read_document(DOCUMENT.replace("script: code", "script:"))


def test_all_parameters_together_are_json() -> None:
    document = read(**{"commands: [run]": "commands: [\"cat <<'END'\\n<% $parameters %>\\nEND\"]"})
    text = worker(document).command.split("\n")[1]
    assert json.loads(text) == {
        "rate": 0.001,
        "words": ["a", "b"],
        "sub": {"on": True, "none": None},
        "quote": "it's",
    }


def test_all_parameters_are_named_where_there_are_none_and_where_a_password_is_asked_for() -> None:
    text = DOCUMENT.replace("commands: [run]", "commands: [<% $parameters %>]")
    start, end = text.index("parameters: {rate"), text.index("secrets:")
    (fault,) = faults_of("", text[:start] + text[end:])
    assert fault.message == "the tag <% $parameters %> has no value: the document has no parameters"
    auth = DOCUMENT.replace("uri: a}", 'uri: a, auth: {username: u, password: "<% $parameters %>"}}')
    (fault,) = faults_of("", auth)
    assert fault.path == "$.prerequisites[0].auth.password"
    assert b"password: x" not in masked(auth.encode())


# "Component version, Default is latest."; "If omitted, follow the protocolVersion in root."
def test_a_prerequisite_has_the_version_of_the_page_by_default() -> None:
    tags = "<% $script.version %> <% $script.protocolVersion %>"
    for more in ("", ", version: ", ", version: ~"):
        document = read(**{"commands: [run]": f'commands: ["{tags}"]', "uri: u}": f"uri: u{more}}}"})
        assert worker(document).command == "latest 2"
    document = read(**{"commands: [run]": f'commands: ["{tags}"]', "uri: u}": "uri: u, version: 1.10}"})
    assert worker(document).command == "1.10 2"


def test_what_nothing_follows_is_told() -> None:
    extras = "extras:\n  hivedScheduler: {gangReleaseEnable: true}\n"
    assert codes(read(extras)) == [("gang-release-unused", "$.extras.hivedScheduler.gangReleaseEnable")]
    off = "extras:\n  hivedScheduler: {gangReleaseEnable: false}\n"
    assert read(off).warnings == ()
