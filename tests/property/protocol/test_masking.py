"""Laws of masking: in whatever style a document is written, no secret survives and all else stays, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import DocumentError
from pai_backend.protocol import read_document
from pai_backend.protocol.mask import MASK, MASKED_WHOLE, masked

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | WORDS
NAMES = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
HIDDEN = "hunter2"
"""In every secret value, and nowhere else."""


def secret(text: str, number: int) -> str:
    return f"{text}{HIDDEN}{number}\n{text}" if number % 2 else f"{HIDDEN}{text}"


SECRETS = st.recursive(
    st.builds(secret, WORDS, st.integers(0, 9)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def v2_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job with secrets and an image that needs a password."""
    auth = draw(st.sampled_from([None, {"username": "u", "password": HIDDEN}, {"password": "<% $secrets.a %>"}]))
    image = {"name": "image", "type": "dockerimage", "uri": "python"} | ({"auth": auth} if auth else {})
    role = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
        "commands": draw(st.lists(WORDS.filter(lambda word: bool(word.strip()) and "<%" not in word), min_size=1)),
    }
    return {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "parameters": draw(st.dictionaries(NAMES, SCALARS, max_size=3)),
        "prerequisites": [image],
        "secrets": draw(st.dictionaries(NAMES, SECRETS, max_size=4)) | {"a": HIDDEN},
        "taskRoles": {"worker": role},
    }


PIECES = st.sampled_from(["", " ", "<", "% $secrets.a %>", "<% $secrets.a %>", "<% $secrets.b %>", "null", HIDDEN])
PARAMETERS = st.sampled_from(["<% $parameters.p %>", "<% $parameters.l %>", "<% $parameters.l[0] %>"])
LEAVES = st.lists(PIECES, max_size=2).map("".join)


@st.composite
def jobs_with_passwords(draw: st.DrawFn) -> dict[str, Any]:
    """A job whose image needs a password that may have tags of secrets and parameters in it, and text between them."""
    pieces = st.lists(PIECES | PARAMETERS, max_size=3).map("".join)
    password = draw(st.none() | pieces)
    job = draw(v2_jobs())
    kind = draw(st.sampled_from(["dockerimage", "data", "script"]))
    key = draw(st.sampled_from(["password", "passward"]))
    one = {"name": "other", "type": kind, "uri": "python", "auth": {key: password}}
    job["prerequisites"] = [*job["prerequisites"], one]
    job["taskRoles"]["worker"]["dockerImage"] = "other" if kind == "dockerimage" else "image"
    job["secrets"] |= {"b": [HIDDEN, HIDDEN]}
    texts = {"p": LEAVES | st.none(), "l": st.lists(LEAVES, min_size=1, max_size=3)}
    job["parameters"] = draw(st.fixed_dictionaries(texts))
    return job


STYLES = st.fixed_dictionaries(
    {
        "default_style": st.sampled_from([None, '"', "'", "|", ">"]),
        "default_flow_style": st.sampled_from([None, True, False]),
        "indent": st.integers(2, 6),
        "width": st.sampled_from([20, 80, 4096]),
        "allow_unicode": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
        "sort_keys": st.booleans(),
    }
)


def only_masks_are_new(before: str, after: str) -> bool:
    """Whether ``after`` is ``before`` with pieces replaced by the mask."""
    first, *rest = after.split(MASK)
    if not before.startswith(first) or not before.endswith(rest[-1] if rest else first):
        return False
    at = len(first)
    for piece in rest:
        found = before.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def hidden_values_replaced(value: object) -> object:
    if isinstance(value, dict):
        return {key: hidden_values_replaced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hidden_values_replaced(item) for item in value]
    return MASK.strip('"') if isinstance(value, str) and HIDDEN in value else value


@settings(deadline=None)
@given(v2_jobs(), STYLES)
def test_no_secret_of_a_yaml_document_survives_and_all_else_does(job: dict[str, Any], style: dict[str, Any]) -> None:
    source = yaml.safe_dump(job, **style)
    result = masked(source.encode()).decode()
    assert HIDDEN not in result
    assert only_masks_are_new(source, result)
    assert yaml.safe_load(result) == hidden_values_replaced(job)


@settings(deadline=None)
@given(v2_jobs(), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_no_secret_of_a_json_document_survives_and_all_else_does(
    job: dict[str, Any], indent: int | str | None, plain: bool
) -> None:
    source = json.dumps(job, indent=indent, ensure_ascii=plain)
    result = masked(source.encode()).decode()
    assert HIDDEN not in result
    assert only_masks_are_new(source, result)
    assert json.loads(result) == hidden_values_replaced(job)


@settings(deadline=None)
@given(v2_jobs(), STYLES)
def test_a_masked_document_reads_as_the_same_job(job: dict[str, Any], style: dict[str, Any]) -> None:
    source = yaml.safe_dump(job, **style)
    try:
        before = read_document(source)
    except DocumentError:  # a style that the writer knows and the reader refuses
        assume(False)
        return
    after = read_document(masked(source.encode()))
    assert after.secrets.keys() == before.secrets.keys()
    assert after.spec.secret_names == before.spec.secret_names
    assert [role.command for role in after.spec.task_roles] == [role.command for role in before.spec.task_roles]


@settings(deadline=None)
@given(jobs_with_passwords(), STYLES | st.none())
def test_a_password_is_the_same_secret_once_it_is_masked(job: dict[str, Any], style: dict[str, Any] | None) -> None:
    source = json.dumps(job) if style is None else yaml.safe_dump(job, **style)
    result = masked(source.encode())
    try:
        before = read_document(source)
    except DocumentError:  # a tag that stands for nothing, or a style that the writer knows and the reader refuses
        assume(False)
        return
    assert HIDDEN not in before.spec.model_dump_json()
    after = read_document(result)
    assert after.spec.secret_names == before.spec.secret_names
    assert HIDDEN not in str(after.secrets)
    (role,), (old,) = after.spec.task_roles, before.spec.task_roles
    assert role.image_auth == old.image_auth


@settings(deadline=None)
@example(b"\x0b")
@given(st.binary() | st.text().map(str.encode))
def test_masking_any_bytes_ends_in_bytes(source: bytes) -> None:
    result = masked(source)
    assert masked(result) == result or result == MASKED_WHOLE


def test_the_law_of_unchanged_bytes_refuses_a_change() -> None:
    before = "secrets: {a: x}\nname: b\n"
    assert only_masks_are_new(before, masked(before.encode()).decode())
    assert not only_masks_are_new(before, before.replace("name", "Name"))
    assert not only_masks_are_new(before, f"{before}{MASK}\n")
