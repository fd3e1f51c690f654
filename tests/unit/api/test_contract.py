"""The types of the fronts are those that the API's models make, and none of them is written a second time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from jupyter_pai import wire_types
from pai_backend.api.key_wire import NewShare
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.api.wire import PlacedEvent
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Event
from pai_backend.testing.builders import T0
from tools import contract


def test_the_python_types_are_what_the_models_say() -> None:
    assert contract.same_python(contract.PYTHON.read_text(encoding="utf-8"), contract.python_types())


def test_the_panels_types_are_what_the_models_say() -> None:
    made = contract.typescript_types()  # None without Node.js; make check has it
    assert made is None or contract.same_typescript(contract.TYPESCRIPT.read_text(encoding="utf-8"), made)


def test_a_changed_type_is_stale() -> None:
    text = contract.PYTHON.read_text(encoding="utf-8")
    assert contract.same_python(text, text.replace("\n\n\n", "\n\n").replace('    """', '    """Words: '))
    assert not contract.same_python(text, text.replace("    alias: str\n", "    alias: str | None\n", 1))
    panel = contract.TYPESCRIPT.read_text(encoding="utf-8")
    assert contract.same_typescript(panel, panel.replace("* @description ", "* @description Words: "))
    assert not contract.same_typescript(panel, panel.replace("alias: string", "alias: string | null", 1))


def test_only_shapes_that_a_front_uses_are_written() -> None:
    tree = ast.parse(contract.PYTHON.read_text(encoding="utf-8"))
    written = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert contract.python_names() <= set(vars(wire_types))
    assert written <= set(contract.schemas_of(contract.python_names()))


def test_the_panel_names_shapes_of_the_backend_and_of_the_jupyter_server() -> None:
    assert {"JobDetail", "Fault", "Guide"} <= contract.typescript_names()


OPENPAIS_OWN = {"authn_type"}
"""Names that OpenPAI writes so."""
SNAKE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")


def properties(value: object) -> Iterator[str]:
    """The names of all properties and parameters in a description."""
    if isinstance(value, dict):
        yield from value.get("properties", {})
        if "in" in value and "schema" in value:
            yield value["name"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from properties(each)


def test_no_name_on_the_wire_is_in_snake_case() -> None:
    described = describe(ROUTES, "")
    every = contract.schemas_of(contract.typescript_names() | contract.python_names())
    names = {name for name in properties([described, *every.values()]) if "_" in name}
    assert names == OPENPAIS_OWN


def test_no_fixture_of_the_fronts_has_a_name_in_snake_case() -> None:
    panel = (contract.ROOT / "labextension/test/wire.ts").read_text(encoding="utf-8")
    names = re.findall(rf"^\s*({SNAKE.pattern}):", panel, re.MULTILINE)
    fake = ast.parse((contract.ROOT / "tests/support/fake_backend.py").read_text(encoding="utf-8"))
    for node in ast.walk(fake):
        keys = node.keys if isinstance(node, ast.Dict) else [node.slice] if isinstance(node, ast.Subscript) else []
        names += [key.value for key in keys if isinstance(key, ast.Constant) and SNAKE.fullmatch(str(key.value))]
    assert names == []


def test_no_shape_of_the_page_has_a_name_in_snake_case() -> None:
    page = (contract.ROOT / "docs/rest.md").read_text(encoding="utf-8")
    shapes = [text for text in re.findall(r"`([^`]+)`", page) if text.startswith("{") and "," in text]
    assert len(shapes) > 20
    assert [name for text in shapes for name in SNAKE.findall(text)] == []


def test_an_event_is_stored_with_the_names_of_its_writer_and_sent_in_camel_case() -> None:
    payload: dict[str, object] = {"backoff_until": None, "ports": {"my_port": [1]}}
    event = Event(job=JobUid("j0123456789abcdef"), seq=1, at=T0, type="job.retry", payload=payload)
    assert event.model_dump()["payload"] == payload
    placed = PlacedEvent(position="1", event=event).model_dump(by_alias=True)
    assert placed["event"]["payload"] == {"backoffUntil": None, "ports": {"my_port": [1]}}


def test_a_body_has_no_second_spelling() -> None:
    assert NewShare.model_validate({"user": "bob", "lifetimeS": 60}).lifetime_s == 60
    with pytest.raises(ValidationError, match="lifetime_s"):
        NewShare.model_validate({"user": "bob", "lifetime_s": 60})
