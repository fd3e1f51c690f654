"""Masking: no secret value survives, in whatever style it is written, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pai_backend.protocol import read_document
from pai_backend.protocol.mask import MASKED_WHOLE, masked

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
ROLES = """\
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: [echo]
"""
IMAGE = "prerequisites:\n  - {name: image, type: dockerimage, uri: python}\n"
HEAD = f"protocolVersion: 2\nname: demo\ntype: job\n{IMAGE}"

# What is written for the top-level key "secrets", and what becomes of it.
SECRETS = {
    "plain": ("secrets:\n  a: hunter2\n", 'secrets:\n  a: "******"\n'),
    "plain over lines": ("secrets:\n  a: hunter2\n    more\n  b: x\n", 'secrets:\n  a: "******"\n  b: "******"\n'),
    "single quotes": ("secrets: {a: 'it''s hunter2'}\n", 'secrets: {a: "******"}\n'),
    "double quotes": ('secrets: {"a": "hunter2\\n"}\n', 'secrets: {"a": "******"}\n'),
    "quotes over lines": ('secrets:\n  a: "hunter2\n\n    more"\n', 'secrets:\n  a: "******"\n'),
    "flow without spaces": ('secrets: {"a":"hunter2","b":hunter3}\n', 'secrets: {"a":"******","b":"******"}\n'),
    "flow over lines": ("secrets: {\n  a: hunter2, # c\n  }\n", 'secrets: {\n  a: "******", # c\n  }\n'),
    "a quoted key": ('"secrets":\n  a: hunter2\n', '"secrets":\n  a: "******"\n'),
    "a space before the colon": ("secrets :\n  a: hunter2\n", 'secrets :\n  a: "******"\n'),
    "a key of its own line": ("? secrets\n: a: hunter2\n", '? secrets\n: a: "******"\n'),
    "a block": ("secrets:\n  a: |\n    hunter2\n    x\n  b: 1\n", 'secrets:\n  a: "******"\n  b: "******"\n'),
    "a block with a comment": ("secrets:\n  a: >-  # why\n    hunter2\n", 'secrets:\n  a: "******"  # why\n'),
    "a block and blank lines": ("secrets:\n  a: |+\n    hunter2\n\n\n", 'secrets:\n  a: "******"\n\n\n'),
    "a block with its indentation": ("secrets:\n  a: |2-\n    hunter2\n", 'secrets:\n  a: "******"\n'),
    "numbers and words": (
        "secrets: {a: 12, b: true, c: null, d: 1.5}\n",
        'secrets: {a: "******", b: "******", c: "******", d: "******"}\n',
    ),
    "nothing": ("secrets:\n  a:\n", "secrets:\n  a:\n"),
    "nested": ("secrets:\n  a:\n    b: [x, {c: y}]\n", 'secrets:\n  a:\n    b: ["******", {c: "******"}]\n'),
    "an anchor": ("secrets:\n  a: &k hunter2\n  b: *k\n", 'secrets:\n  a: &k "******"\n  b: *k\n'),
    "a tag": ("secrets:\n  a: !!str hunter2\n", 'secrets:\n  a: "******"\n'),
    "an anchor and a tag": ("secrets:\n  a: &k !!str hunter2\n", 'secrets:\n  a: &k "******"\n'),
    "an anchor and a block": ("secrets:\n  a: &k |\n    hunter2\n", 'secrets:\n  a: &k "******"\n'),
    "comments": (
        "# one\nsecrets: # two\n  # three\n  a: hunter2 # four\n# five\n",
        '# one\nsecrets: # two\n  # three\n  a: "******" # four\n# five\n',
    ),
    "a comment before a quoted key": (
        'secrets:\n  a: hunter2\n# x\n"description": d\n',
        'secrets:\n  a: "******"\n# x\n"description": d\n',
    ),
    "other spaces": (
        "secrets:\n  a: |\n    hunter2\u00a0\n  b: '\u00a0'\n",
        'secrets:\n  a: "******"\n  b: "******"\n',
    ),
    "other letters": ("description: 作业 😀\nsecrets: {密: 😀密}\n", 'description: 作业 😀\nsecrets: {密: "******"}\n'),
    "a secret of another place": (
        "parameters: {p: &k hunter2}\nsecrets: {a: *k}\n",
        'parameters: {p: &k "******"}\nsecrets: {a: *k}\n',
    ),
    "merged": (
        "parameters: {p: &k {x: hunter2}}\nsecrets:\n  <<: *k\n  b: 1\n",
        'parameters: {p: &k {x: "******"}}\nsecrets:\n  <<: *k\n  b: "******"\n',
    ),
}


@pytest.mark.parametrize("style", SECRETS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_style_of_a_secret_is_masked_and_nothing_else(style: str, end: str, mark: str) -> None:
    before, after = (mark + (HEAD + part + ROLES).replace("\n", end) for part in SECRETS[style])
    assert masked(before.encode()).decode() == after
    assert read_document(after).spec == read_document(before).spec


def document_with(auth: str, rest: str = "") -> str:
    image = f"prerequisites:\n  - name: image\n    type: dockerimage\n    uri: python\n    auth: {auth}\n"
    return HEAD.replace(IMAGE, image) + rest + ROLES


@pytest.mark.parametrize(
    ("auth", "after"),
    [
        ("{username: u, password: hunter2}", '{username: u, password: "******"}'),
        ("{password: 'hunter2', registryuri: r}", '{password: "******", registryuri: r}'),
        ("{password: x<% $secrets.a %>}", '{password: "******"}'),
        ("{password: <% $secrets.a %>}", "{password: <% $secrets.a %>}"),
        ("{password: ' <% $secrets.a %>'}", '{password: "******"}'),
        ("{password: <% $secrets.a %><% $secrets.a %>}", "{password: <% $secrets.a %><% $secrets.a %>}"),
        ("{passward: hunter2}", '{passward: "******"}'),
        ("{password: }", "{password: }"),
        ("{password: ''}", "{password: ''}"),
        ("{password: null}", "{password: null}"),
        ("{password: !!null ~}", "{password: !!null ~}"),
        ("{password: 'null'}", '{password: "******"}'),
        ("{password: !!str null}", '{password: "******"}'),
        ("{<<: {password: x<% $secrets.a %>}}", '{<<: {password: "******"}}'),
    ],
)
def test_a_literal_password_of_an_image_is_masked(auth: str, after: str) -> None:
    secrets = 'secrets: {a: "******"}\n'
    assert masked(document_with(auth, secrets).encode()).decode() == document_with(after, secrets)
    assert same_secrets(document_with(auth, secrets), document_with(after, secrets))


def same_secrets(before: str, after: str) -> bool:
    """Whether both read as jobs with secrets of the same names, where the image's password is made of the same."""
    one, other = read_document(before), read_document(after)
    return one.secrets.keys() == other.secrets.keys() and one.spec.task_roles == other.spec.task_roles


@pytest.mark.parametrize("value", ["''", "null", "<% $secrets.a %>", "['<% $secrets.a %>', '<% $secrets.a %>', '']"])
@pytest.mark.parametrize("password", ["<% $parameters.p %>", "<% $parameters.p %><% $secrets.a %>"])
def test_a_parameter_that_adds_no_text_to_a_password_stays(password: str, value: str) -> None:
    auth = f"{{password: '{password}'}}"
    source = document_with(auth, f"parameters: {{p: {value}}}\nsecrets: {{a: '******'}}\n")
    assert masked(source.encode()).decode() == source.replace("'******'", '"******"')


def test_a_parameter_that_adds_text_beside_a_tag_is_masked() -> None:
    auth = "{password: '<% $parameters.p %>'}"
    before, after = (
        document_with(auth, f"parameters: {{p: {value}}}\nsecrets: {{a: '******'}}\n".replace("'", '"'))
        for value in ("'hunter2<% $secrets.a %>'", "'******'")
    )
    assert masked(before.encode()).decode() == after
    assert same_secrets(before, after)


def test_a_step_of_any_length_and_any_digits_leads_nowhere() -> None:
    for step in ("9" * 5000, "٣"):
        auth = f'{{password: "<% $parameters.p.{step} %>"}}'
        source = document_with(auth, "parameters: {p: [a, b, c, d]}\n")
        assert masked(source.encode()).decode() == source


def test_a_parameter_that_is_a_password_is_masked() -> None:
    auth = '{password: "<% $parameters.login.words[1] %>"}'
    before, after = (
        document_with(auth, f"parameters: {{login: {{words: [a, {word}]}}, other: hunter2}}\n")
        for word in ("hunter2", '"******"')
    )
    assert masked(before.encode()).decode() == after


def test_a_document_as_json_keeps_its_layout() -> None:
    text = '\ufeff{ // c\n "protocolVersion": 2, "secrets": {"a": "x\\"y", /* z */ "b": [1, null, {"c": -1.5e3}],}, }'
    after = text.replace('"x\\"y"', '"******"').replace("[1, null", '["******", "******"').replace("-1.5e3", '"******"')
    assert masked(text.encode()).decode() == after


def test_variables_of_v1_are_masked_by_their_names() -> None:
    variables = {
        "DB_PASSWORD": "hunter2",
        "token": 1,
        "AWS_SECRET_ACCESS_KEY": {"a": ["hunter2"]},
        "apiKey": None,
        "EPOCHS": "10",
        "isDebug": True,
    }
    job = {"jobName": "a", "image": "i", "jobEnvs": variables, "taskRoles": [{"name": "r", "command": "x"}]}
    source = json.dumps(job, indent=1).encode()
    after = json.loads(masked(source))
    assert after["jobEnvs"] == {
        "DB_PASSWORD": "******",
        "token": "******",
        "AWS_SECRET_ACCESS_KEY": {"a": ["******"]},
        "apiKey": "******",
        "EPOCHS": "10",
        "isDebug": True,
    }
    assert after | {"jobEnvs": 0} == job | {"jobEnvs": 0}
    assert read_document(masked(source)).spec.debug


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("*.json")), ids=lambda path: path.name)
def test_a_document_without_secrets_is_unchanged(path: Path) -> None:
    assert masked(path.read_bytes()) == path.read_bytes()


@pytest.mark.parametrize(
    "source",
    [
        b"\xff\xfe",
        b"{" * 100_000,
        b"secrets: [a",
        b'{"secrets": {"a": "hunter2}}',
        b"secrets: *nobody\n",
        b" " * 2_000_000,
        b"secrets: " + b"[" * 1_000_000,
        b"--- a\n" * 100_000,
    ],
)
def test_what_cannot_be_read_is_masked_whole(source: bytes) -> None:
    assert masked(source).strip() == MASKED_WHOLE.strip()


def test_only_the_document_that_cannot_be_read_is_masked_whole() -> None:
    before = f"name: [Symbol, required]: x\n---\n{HEAD}secrets: {{a: hunter2}}\n{ROLES}...\n# end\n"
    after = f'"******"\n---\n{HEAD}secrets: {{a: "******"}}\n{ROLES}...\n# end\n'
    assert masked(before.encode()).decode() == after
    assert read_document(after).spec == read_document(before).spec


def test_a_number_that_the_job_needs_masks_the_whole_when_it_is_a_secret_too() -> None:
    roles = ROLES.replace("cpu: 1", "cpu: &n 1")
    source = f"{HEAD}{roles}secrets: {{pin: *n}}\n".encode()
    assert read_document(source).secrets == {"pin": "1"}
    assert masked(source) == MASKED_WHOLE


def test_what_begins_on_the_line_of_the_marker_is_masked_in_place() -> None:
    assert masked(b"--- {secrets: {a: hunter2}}\n--- |\n a\n...\nsecrets: {a: hunter2}\n") == (
        b'--- {secrets: {a: "******"}}\n--- |\n a\n...\nsecrets: {a: "******"}\n'
    )


def test_an_alias_of_itself_ends() -> None:
    assert masked(b"secrets: &a {b: *a, <<: *a, c: hunter2}\n") == b'secrets: &a {b: *a, <<: *a, c: "******"}\n'
