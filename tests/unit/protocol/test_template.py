"""Tags of a document's texts: places of what stands for nothing, and how much they may make of a little text."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import TaskRole
from pai_backend.protocol import read_document
from pai_backend.protocol.template import MAX_RENDERED, MAX_TAGS

HEAD = """\
protocolVersion: 2
name: demo
type: job
parameters: {}
secrets: {}
prerequisites:
  - {{name: img, type: dockerimage, uri: a}}
  - {{name: set, type: data, version: 1.10, uri: [one, two], size: {{gb: 007}}}}
taskRoles:
"""
ROLE = """\
  {name}:
    dockerImage: img
    data: set
    resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}
    completion: {{minSucceededInstances: -1}}
    commands:
{commands}
"""


def text_of(commands: str, *, parameters: str = "{}", secrets: str = "{}", roles: int = 1) -> str:
    head = HEAD.format(parameters, secrets)
    return head + "".join(ROLE.format(name=f"r{number}", commands=commands) for number in range(roles))


def command_of(commands: str, **scopes: str) -> str:
    roles: tuple[TaskRole, ...] = read_document(text_of(commands, **scopes)).spec.task_roles  # type: ignore[arg-type]
    return roles[0].command


def faults_of(text: str) -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return caught.value.errors


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("echo <% $data.name %> <% $data.uri[1] %> <% $data.uri %>", "echo set two one,two"),
        ("echo <% $data.version %> <% $data.size.gb %>", "echo 1.10 007"),
        ("echo <% $parameters.rate %> <% $parameters.flag %> <% $parameters.list.1.x %>", "echo 1e-5 true deep"),
        ("echo '<% $parameters.sharp %>'", "echo 'a&b<c>\"d'"),
        ("echo <%s> %> ${x}%> <%= erb %>", "echo <%s> %> ${x}%> <%= erb %>"),
        ("echo <% $parameters.late %>", "echo <% $secrets.word %>"),
    ],
)
def test_values_are_put_in_as_they_are_written(line: str, result: str) -> None:
    parameters = "{rate: 1e-5, flag: True, list: [a, {x: deep}], sharp: 'a&b<c>\"d', late: <% $secrets.word %>}"
    assert command_of(f"      - {line}", parameters=parameters, secrets="{word: hunter2}") == result


def test_secrets_stay_tags_and_are_handed_over_as_written() -> None:
    secrets = "{pin: 0123, ratio: 1.10, big: 98765432109876543, flag: yes, is: TRUE, nested: {list: [1e3]}}"
    document = read_document(text_of("      - echo <% $secrets.nested.list[0] %>", secrets=secrets))
    assert document.secrets == {
        "pin": "0123",
        "ratio": "1.10",
        "big": "98765432109876543",
        "flag": "yes",
        "is": True,
        "nested": {"list": ["1e3"]},
    }
    assert document.spec.task_roles[0].command == "echo <% $secrets.nested.list[0] %>"
    assert document.spec.secret_names == ("pin", "ratio", "big", "flag", "is", "nested")


@pytest.mark.parametrize(
    ("commands", "places"),
    [
        ("      - a <% $parameters.x %> b <% $parameters.y %>", [(16, 11), (16, 33)]),
        ("      - 'it''s <%s <% $parameters.x %>'", [(16, 20)]),
        ("      - |\n        a\n        b <% $parameters.x %>", [(18, 11)]),
        ("      - >-\n        a\n\n        <% $parameters.x %>\n        <% $parameters.x %>", [(19, 9), (20, 9)]),
        ("      - <%\n        $parameters.x\n        %>", [(16, 9)]),
        ('      - "\\u003c% $parameters.x %>"', [(16, 9)]),
        ("      - &a <% $parameters.x %>\n      - *a", [(16, 12)]),
    ],
)
def test_a_tag_is_placed_where_it_stands(commands: str, places: list[tuple[int, int]]) -> None:
    assert [(fault.line, fault.column) for fault in faults_of(text_of(commands))] == places


def test_a_tag_that_several_roles_share_is_one_fault() -> None:
    text = text_of("      - run", roles=3) + (
        "extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {preCommands: [<% $script.uri %>]}}]}\n"
    )
    (fault,) = faults_of(text)
    assert fault.path == '$.extras["com.microsoft.pai.runtimeplugin"][0].parameters.preCommands[0]'


def test_what_tags_may_make_of_a_text_is_bounded() -> None:
    value = "x" * 100_000
    many = "      - " + "<% $parameters.x %> " * (MAX_RENDERED // 100_000 + 1)
    (fault,) = faults_of(text_of(many, parameters=f"{{x: {value}}}"))
    assert str(MAX_RENDERED) in fault.message
    assert value not in fault.message


def test_what_roles_and_plugins_may_repeat_is_bounded() -> None:
    plugin = "x" * 100_000
    text = text_of("      - run", roles=100) + (
        f"extras: {{com.microsoft.pai.runtimeplugin: [{{plugin: cmd, parameters: {{preCommands: [{plugin}]}}}}]}}\n"
    )
    (fault,) = faults_of(text)
    assert str(MAX_RENDERED) in fault.message


def test_the_number_of_tags_is_bounded() -> None:
    (fault,) = faults_of(text_of("      - " + "<%$data.name%>" * (MAX_TAGS + 1)))
    assert fault.message.startswith(f"the commands have more than {MAX_TAGS} tags")


def test_the_uses_of_plugins_are_bounded() -> None:
    commands = ", ".join("a" * 1 for _ in range(400))
    text = text_of("      - run", roles=50) + (
        f"extras: {{com.microsoft.pai.runtimeplugin: [{{plugin: cmd, parameters: {{preCommands: [{commands}]}}}}]}}\n"
    )
    (fault,) = faults_of(text)
    assert fault.message == "the task roles use plugins with more than 10000 lines in all"


def test_aliases_in_a_list_that_is_printed_are_bounded() -> None:
    parameters = "{x: &x " + "y" * 200_000 + ", l: [" + "*x, " * 100 + "]}"
    (fault,) = faults_of(text_of("      - <% $parameters.l %>", parameters=parameters))
    assert "characters, those that aliases repeat counted again" in fault.message
