"""Lines with secrets are not repeated beside faults; all others are."""

from __future__ import annotations

import pytest

from jupyter_pai.excerpt import lines_to_show

YAML = """\
protocolVersion: 2
name: x
secrets:
  token: hidden
  pem: |
    hidden
# hidden
taskRoles:
  w:
    instances: tow
    commands: ["echo <% $secrets.token %>"]
"""

JSON = """\
{
  "protocolVersion": 2,
  "secrets": {
    "a": "hidden"
  },
  "taskRoles": {}
}
"""


def shown(text: str) -> list[str]:
    return [line for line in lines_to_show(text) if line is not None]


@pytest.mark.parametrize("text", [YAML, YAML.replace("secrets:", '"secrets" :'), YAML.replace("secrets:", "Secrets:")])
def test_lines_of_the_secrets_are_hidden_whatever_is_wrong_with_them(text: str) -> None:
    assert [line for line in text.splitlines() if line not in shown(text)] == text.splitlines()[2:7]


def test_json_is_hidden_likewise() -> None:
    assert shown(JSON) == ["{", '  "protocolVersion": 2,', '  "taskRoles": {}', "}"]
    assert shown('{"protocolVersion": 2, "secrets": {"a": "hidden"}, "name": 5}') == []


def test_a_key_of_a_secret_does_not_end_them() -> None:
    assert shown("secrets:\n  name: hidden\n  type: hidden\n\tname: hidden\nname: x\n") == ["name: x"]


@pytest.mark.parametrize(
    "line",
    ["    password: hidden", '  "API_TOKEN": "hidden",', "  AWS_SECRET_KEY: hidden", "{passwd: hidden}", "pwd=x"],
)
def test_a_line_that_names_what_is_secret_is_hidden(line: str) -> None:
    assert shown(f"jobEnvs:\n{line}\nx: 1") == ["jobEnvs:", "x: 1"]


def test_lines_keep_their_numbers() -> None:
    assert lines_to_show("a: 1\nsecrets: {b: c}\ntaskRoles: 2") == ["a: 1", None, "taskRoles: 2"]
