"""The backend's schema of documents, as far as a form in Python goes by it. Pure.

Keywords of our own are those of the backend (``docs/rest.md``): ``x-section``, ``x-widget``, ``x-words``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupyter_pai.errors import ClientError
from jupyter_pai.language import language
from pai_backend.model.text import Text

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]
"""From the root of a document to a value in it."""


def in_language(part: Schema) -> Schema:
    """A part of a schema with the words of the user's language, where it has them."""
    return {**part, **part.get("x-words", {}).get(language(), {})}


def dialect_of(value: Mapping[str, object]) -> str:
    """Which dialect's fields a document has. SCM has all of OpenPAI v1."""
    if "protocolVersion" in value or "protocol_version" in value:
        return "v2"
    return "qizhi" if "killAllOnCompletedTaskNumber" in value else "scm"


def roles(value: Mapping[str, Any]) -> list[tuple[str | int, str, Mapping[str, Any]]]:
    """The task roles of a document: where each stands below ``taskRoles``, its name, and what it says."""
    found = value.get("taskRoles")
    if isinstance(found, Mapping):
        return [(name, str(name), role) for name, role in found.items() if isinstance(role, Mapping)]
    listed = found if isinstance(found, list) else []
    return [(at, str(role.get("name", at)), role) for at, role in enumerate(listed) if isinstance(role, Mapping)]


def role_schema(schema: Schema) -> Schema:
    """The fields of a task role."""
    about = schema["properties"]["taskRoles"]
    found: Schema = about.get("items") or about["additionalProperties"]
    return found


def leaves(schema: Schema, below: Place = ()) -> Iterator[tuple[Place, Schema]]:
    """Every field that is no frame around others, with its place."""
    for name, field in schema.get("properties", {}).items():
        if field.get("properties") and not field.get("additionalProperties"):
            yield from leaves(field, (*below, name))
        else:
            yield (*below, name), field


def place_of(schema: Schema, value: Mapping[str, Any], name: str) -> Place:
    """Where the field of this name stands, of the job or of its one task role. Raises ClientError."""
    for place, _ in leaves(schema):
        if place[-1] == name:
            return place
    of_role = [place for place, _ in leaves(role_schema(schema)) if place[-1] == name]
    known = [str(place[-1]) for place, _ in [*leaves(schema), *leaves(role_schema(schema))]]
    if not of_role:
        close = difflib.get_close_matches(name, known, 1)
        hint = (
            Text("Do you mean {close}?", close=close[0])
            if close
            else Text("Known: {known}.", known=", ".join(sorted(set(known))))
        )
        raise ClientError(Text("A document has no field {name}.", name=name), code="InvalidParametersError", hint=hint)
    found = roles(value)
    if len(found) != 1:
        raise ClientError(
            Text(
                "{name} is a field of a task role, and the document has {count} of them.", name=name, count=len(found)
            ),
            code="InvalidParametersError",
            hint="Set form.value.",
        )
    return ("taskRoles", found[0][0], *of_role[0])


def value_at(value: object, place: Sequence[str | int]) -> object:
    """What stands at a place; None where nothing does."""
    for step in place:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def with_value(value: Any, place: Sequence[str | int], put: object) -> Any:
    """A copy with another value at a place; None takes it away. Objects on the way are made."""
    if not place:
        return put
    step, *rest = place
    if isinstance(value, list):
        return [with_value(each, rest, put) if at == step else each for at, each in enumerate(value)]
    members = dict(value) if isinstance(value, Mapping) else {}
    inner = with_value(members.get(step), rest, put)
    if inner is None or (inner == {} and step not in members):
        members.pop(step, None)
    else:
        members[step] = inner
    return members
