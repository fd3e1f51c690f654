"""What documents take of the secrets that their user keeps: read, refused, put in and converted."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.user_secret import MOST, SecretUse, is_secret_name
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2
from pai_backend.protocol.own_fields import SECRET_ENV
from pai_backend.protocol.user_secrets import with_users
from tests.support.wordings import in_english

V2 = """\
protocolVersion: 2
name: j
type: job
parameters: {line: "--key <% $secrets.inside %>"}
secrets: {own: s}
prerequisites:
  - {name: i, type: dockerimage, uri: i, auth: {username: u, password: <% $secrets.registry %>}}
taskRoles:
  r:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands:
      - run <% $secrets.own %> <% $parameters.line %>
      - run <% $secrets.token %> <% $secrets.token %>
extras:
  jupyterPai:
    secretEnv: {A: token, B: key}
"""


def in_v1(own: Any, **more: Any) -> str:
    role = {"name": "r", "command": "<% $secrets.x %>", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100}
    job = {"jobName": "j", "image": "i", "taskRoles": [role | {"gpuNumber": 0}], **more}
    return json.dumps(job | {"extras": {"jupyterPai": own}})


def faults(text: str) -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return tuple(caught.value.errors)


def test_each_name_that_the_document_does_not_have_is_noted_where_it_comes_first() -> None:
    document = read_document(V2)
    assert document.users_secrets == (
        SecretUse("registry", ("prerequisites", 0, "auth", "password"), 7, 72),
        SecretUse("inside", ("taskRoles", "r", "commands", 0), 13, 32),
        SecretUse("token", ("taskRoles", "r", "commands", 1), 14, 13),
        SecretUse("token", (*SECRET_ENV, "A"), 17, 20),
        SecretUse("key", (*SECRET_ENV, "B"), 17, 30),
    )
    assert document.spec.secret_names == ("own",)
    assert document.warnings == ()


def test_values_join_the_documents_own_and_get_into_no_text() -> None:
    values = {name: f"planted-{name}" for name in ("registry", "inside", "token", "key", "own", "unused")}
    document = with_users(read_document(V2), values)
    assert document.secrets == {"own": "s"} | {
        name: f"planted-{name}" for name in ("registry", "inside", "token", "key")
    }
    assert set(document.spec.secret_names) == set(document.secrets)
    assert "planted" not in document.spec.model_dump_json() + repr(document)


def test_a_missing_one_is_a_fault_with_what_was_perhaps_meant() -> None:
    with pytest.raises(DocumentError) as caught:
        with_users(read_document(V2), {"registry": "x", "inside": "x", "token": "x"}, ["registry", "keys"])
    hint = "Did you mean keys? Else `pai secret set key` keeps one."
    path = "$.extras.jupyterPai.secretEnv.B"
    fault = Fault(path=path, message="you have no secret key", line=17, column=30, hint=hint)
    assert tuple(map(in_english, caught.value.errors)) == (fault,)


def test_in_v1_variables_take_them_and_tags_are_text_of_the_shell() -> None:
    document = read_document(in_v1({"secretEnv": {"A": "x.y-z"}}))
    assert [use.name for use in document.users_secrets] == ["x.y-z"]
    assert document.spec.secret_env == {"A": "x.y-z"}
    assert with_users(document, {"x.y-z": "value"}).spec.secret_names == ("x.y-z",)


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"A": "not a name"}, ".A", "the name of a secret must have 1 to 63 letters"),
        ({"A": ""}, ".A", "the name of a secret must have"),
        ({"A": 5}, ".A", "the name of a secret must have"),
        ({"A": None}, ".A", "the name of a secret must have"),
        ({"A=": "x"}, '["A="]', "the name of a variable must not be empty"),
        ({"": "x"}, '[""]', "the name of a variable must not be empty"),
        (["A"], "", "secretEnv must be an object"),
        ({f"A{number}": "x" for number in range(MOST + 1)}, "", "secretEnv has 101 variables"),
    ],
    ids=["a value", "empty", "a number", "null", "no variable", "no name", "a list", "too many"],
)
def test_what_is_no_variable_with_a_name_is_a_fault(given: Any, path: str, message: str) -> None:
    (fault,) = faults(in_v1({"secretEnv": given}))
    assert fault.path == f"$.extras.jupyterPai.secretEnv{path}"
    assert fault.message.startswith(message)
    assert fault.hint


def test_a_variable_has_one_value() -> None:
    (fault,) = faults(in_v1({"secretEnv": {"A": "x", "B": "y"}}, jobEnvs={"B": 1}))
    assert (fault.path, fault.hint) == ("$.extras.jupyterPai.secretEnv.B", "Keep one of the two.")


def test_a_name_of_the_documents_own_secrets_is_not_taken_for_a_variable() -> None:
    (fault,) = faults(V2.replace("{A: token, B: key}", "{A: token, B: own}"))
    assert (fault.path, fault.line) == ("$.extras.jupyterPai.secretEnv.B", 17)
    assert fault.message == "the secrets of this document have that name, too"


@pytest.mark.parametrize("password", ["x<% $secrets.registry %>", "<% $parameters.line %>"])
def test_a_password_is_no_text_beside_one(password: str) -> None:
    (fault,) = faults(V2.replace("password: <% $secrets.registry %>", f'password: "{password}"'))
    assert fault.path == "$.prerequisites[0].auth.password"
    assert fault.message == "a password cannot be text beside a secret that the document does not have"


@pytest.mark.parametrize("name", ["_x", "x.y", "x" * 64])
def test_a_tag_that_no_secret_of_a_user_can_fill_is_a_fault(name: str) -> None:
    (fault,) = faults(V2.replace("$secrets.inside", f"$secrets.{name}"))
    assert "has no value" in fault.message


def test_names_of_the_platform_and_of_no_shell_are_warned_of() -> None:
    document = read_document(in_v1({"secretEnv": {"PAI_X": "x", "a-b": "x"}}))
    assert {warning.code for warning in document.warnings} == {"reserved-variable", "unreachable-variable"}
    assert document.spec.secret_env == {"PAI_X": "x", "a-b": "x"}


def test_a_conversion_keeps_variables_and_gives_no_secret_of_the_document_their_names() -> None:
    text = in_v1({"secretEnv": {"A": "DB_PASSWORD"}}, jobEnvs={"DB_PASSWORD": "of-the-document"})
    there = to_v2(read_document(text.replace("<% $secrets.x %>", "x")))
    assert yaml.safe_load(there.text)["secrets"] == {"DB_PASSWORD_": "of-the-document"}
    second = read_document(there.text)
    assert [use.name for use in second.users_secrets] == ["DB_PASSWORD"]
    assert second.spec.secret_env == {"A": "DB_PASSWORD"}


def test_v1_again_has_the_variables_of_a_document_without_tags() -> None:
    plain = V2.replace("<% $secrets.token %>", "x").replace("<% $secrets.own %>", "x").replace("$parameters.line", "x")
    text = plain.replace("run x <% x %>", "run").replace("<% $secrets.registry %>", "''")
    again = json.loads(to_v1(read_document(text)).text)
    assert again["extras"]["jupyterPai"]["secretEnv"] == {"A": "token", "B": "key"}


def test_names() -> None:
    good, bad = ["a", "A.b_c-9", "9", "x" * 63], ["", ".a", "-a", "a b", "a/b", "ä", "a\n", "x" * 64]
    assert [name for name in good + bad if is_secret_name(name)] == good


def test_what_is_read_is_not_shown() -> None:
    assert "planted" not in repr(Document(read_document(V2).spec, read_document(V2).dialect, b"", (), {"a": "planted"}))
