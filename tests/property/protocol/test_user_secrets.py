"""Laws of secrets that a document takes of its user, whatever the names and wherever they are taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import DocumentError
from pai_backend.model.tags import fill
from pai_backend.protocol import read_document
from pai_backend.protocol.mask import masked
from pai_backend.protocol.user_secrets import with_users

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,8}", fullmatch=True)
VARIABLES = st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True)
PLANTED = "planted-"


def document(tags: list[str], own: list[str], variables: dict[str, str]) -> dict[str, Any]:
    role = {
        "dockerImage": "i",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
        "commands": ["echo", *(f"<% $secrets.{name} %>" for name in tags)],
    }
    return {
        "protocolVersion": 2,
        "name": "j",
        "type": "job",
        "secrets": {name: f"own-{name}" for name in own},
        "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "i"}],
        "taskRoles": {"r": role},
        "extras": {"jupyterPai": {"secretEnv": variables}},
    }


@settings(deadline=None)
@given(
    st.lists(NAMES, max_size=5),
    st.lists(NAMES, max_size=3, unique=True),
    st.dictionaries(VARIABLES, NAMES, max_size=3),
    st.sets(NAMES, max_size=3),
    st.data(),
)
def test_a_submission_has_every_value_it_names_and_none_besides(
    tags: list[str], own: list[str], variables: dict[str, str], spare: set[str], data: st.DataObject
) -> None:
    variables = {name: secret for name, secret in variables.items() if secret not in own}
    source = json.dumps(document(tags, own, variables))
    wanted = {*tags, *variables.values()} - set(own)
    kept = data.draw(st.sets(st.sampled_from(sorted(wanted)))) if wanted else set()
    values = {name: f"{PLANTED}{name}" for name in kept | (spare - wanted)}
    read = read_document(source)
    assert {use.name for use in read.users_secrets} == wanted
    if wanted - kept:
        with pytest.raises(DocumentError) as caught:
            with_users(read, values)
        assert {fault.message.split()[4].rstrip(",") for fault in caught.value.errors} == wanted - kept
        assert PLANTED not in f"{caught.value.errors}"
        return
    whole = with_users(read, values)
    assert set(whole.secrets) == set(own) | wanted
    command = fill(whole.spec.task_roles[0].command, "secrets", whole.secrets).split("\n")[1:]
    assert command == [f"own-{name}" if name in own else f"{PLANTED}{name}" for name in tags]
    assert {whole.secrets[name] for name in whole.spec.secret_env.values()} == {
        f"{PLANTED}{name}" for name in variables.values()
    }
    shown = whole.spec.model_dump_json() + repr(whole) + whole.source.decode() + masked(whole.source).decode()
    assert PLANTED not in shown
