"""Whether asyncssh has what is used of it beyond its documentation: each kind of change is noticed, and told once."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from asyncssh.channel import SSHChannel
from asyncssh.connection import SSHClientConnection, SSHConnection, SSHServerConnection

from pai_backend.engine.asyncssh_private import required

BACKEND = Path(required.__file__).parents[2]
ADAPTERS = ("access/gateway/joined", "engine/asyncssh_private/guesses.py", "engine/asyncssh_private/task_connection.py")


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    required.are_there.cache_clear()
    yield
    required.are_there.cache_clear()


def test_the_installed_release_has_all_of_it() -> None:
    assert required.missing() == ""


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        ("METHODS", {"asyncssh.connection:SSHConnection": {"_gone": "self"}}, "_gone"),
        ("METHODS", {"asyncssh.connection:SSHConnection": {"send_packet": "self"}}, "send_packet takes (self pkttype"),
        ("METHODS", {"asyncssh.gone:SSHConnection": {"send_packet": "self"}}, "asyncssh.gone"),
        ("ATTRIBUTES", {"asyncssh.connection:SSHConnection": "_channels _gone"}, "has no _gone"),
        ("NAMES", {"asyncssh.packet": "Gone"}, "Gone"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, table: str, change: Mapping[str, object], told: str
) -> None:
    monkeypatch.setattr(required, table, change)
    assert told in required.missing()


def test_a_method_that_takes_more_is_another_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SSHConnection, "_send_kexinit", lambda self, strict: None)
    with caplog.at_level(logging.WARNING):
        assert [required.are_there() for _ in range(2)] == [False, False]
    (record,) = caplog.records
    assert "_send_kexinit takes (self strict)" in record.getMessage()


def test_undocumented_modules_are_imported_by_the_adapters_only() -> None:
    found = {
        path.relative_to(BACKEND).as_posix()
        for path in BACKEND.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("asyncssh."))
        or (isinstance(node, ast.Import) and any(name.name.startswith("asyncssh.") for name in node.names))
    }
    assert found
    assert {path for path in found if not path.startswith(ADAPTERS)} == set()


def test_the_list_has_every_private_attribute_of_a_connection_that_the_adapters_use() -> None:
    kinds = (SSHServerConnection, SSHClientConnection, SSHChannel)
    known = {name for kind in kinds for base in kind.__mro__ for name in vars(base)}
    known = known.union(*(required._set_by(kind) for kind in kinds))
    listed = {"_packet_handlers"}  # of the class, and looked at by itself
    listed |= {name for methods in required.METHODS.values() for name in methods}
    listed |= {name for names in required.ATTRIBUTES.values() for name in names.split()}
    used = {
        node.attr
        for place in ADAPTERS
        for path in ([BACKEND / place] if place.endswith(".py") else sorted((BACKEND / place).glob("*.py")))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    assert used & known
    assert sorted((used & known) - listed) == []
