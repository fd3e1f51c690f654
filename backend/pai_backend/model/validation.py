"""Pydantic's complaints in our own words: where, what is wrong, and the remedy.

Used for configuration and for requests alike, so that one mistake reads the same everywhere. Values are
never quoted: they may be secrets.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from pai_backend.model.text import NO_TEXT, Text

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Loc = tuple[str | int, ...]

_PLAIN = {
    "missing": Text("is required"),
    "extra_forbidden": Text("is not known"),
    "int_type": Text("must be a whole number"),
    "int_parsing": Text("must be a whole number"),
    "int_from_float": Text("must be a whole number"),
    "float_type": Text("must be a number"),
    "float_parsing": Text("must be a number"),
    "bool_type": Text("must be true or false"),
    "bool_parsing": Text("must be true or false"),
    "string_type": Text("must be text"),
    "path_type": Text("must be a path"),
    "list_type": Text("must be a list"),
    "tuple_type": Text("must be a list"),
    "dict_type": Text("must be an object"),
    "mapping_type": Text("must be an object"),
    "model_type": Text("must be an object"),
    "model_attributes_type": Text("must be an object"),
    "none_required": Text("must be null"),
}
_LIMITS: Mapping[str, tuple[Callable[[object], Text], str]] = {
    "greater_than": (lambda limit: Text("must be greater than {limit}", limit=limit), "gt"),
    "greater_than_equal": (lambda limit: Text("must be at least {limit}", limit=limit), "ge"),
    "less_than": (lambda limit: Text("must be less than {limit}", limit=limit), "lt"),
    "less_than_equal": (lambda limit: Text("must be at most {limit}", limit=limit), "le"),
    "string_too_short": (lambda limit: Text("must have at least {limit} characters", limit=limit), "min_length"),
    "string_too_long": (lambda limit: Text("must have at most {limit} characters", limit=limit), "max_length"),
    "too_short": (lambda limit: Text("must have a length of at least {limit}", limit=limit), "min_length"),
    "too_long": (lambda limit: Text("must have a length of at most {limit}", limit=limit), "max_length"),
    "enum": (lambda limit: Text("must be one of {limit}", limit=limit), "expected"),
    "literal_error": (lambda limit: Text("must be one of {limit}", limit=limit), "expected"),
}


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like ``word``, or an empty text when none is like it."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else ""


def dotted(loc: Loc) -> str:
    """``("engine", "nodes", 0, "name")`` as ``engine.nodes[0].name``."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def complaint(error: ErrorDetails) -> Text:
    """What is wrong, as the end of a sentence that starts with the place."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _LIMITS:
        say, key = _LIMITS[kind]
        return say(context.get(key))
    if kind == "value_error" and "error" in context:
        return _said(context["error"])
    return Text("is not valid")


def _said(error: Exception) -> Text:
    """What a validator of ours, or pydantic, raised."""
    said = error.args[0] if error.args else None
    return said if isinstance(said, Text) else Text("{error}", error=error)


def known_keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys that may stand beside the last part of ``loc`` in this model, for hints."""
    here: Any = model
    for part in loc[:-1]:
        if isinstance(part, str):
            fields: dict[str, Any] = getattr(here, "model_fields", {})
            here = _inner_model(fields[part].annotation) if part in fields else None
    return list(getattr(here, "model_fields", {}))


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside ``M``, ``list[M]``, ``tuple[M, ...]`` or ``M | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _inner_model(inner)
        if found is not None:
            return found
    return None


def faults(error: ValidationError, model: type[BaseModel]) -> list[tuple[Loc, Text, Text]]:
    """Every complaint as (place, what is wrong, hint)."""
    found = []
    for detail in error.errors(include_url=False, include_input=False):
        loc, hint = detail["loc"], NO_TEXT
        if detail["type"] == "extra_forbidden":
            like = nearest(str(loc[-1]), known_keys(model, loc))
            hint = Text("Did you mean {name}?", name=dotted((*loc[:-1], like))) if like else NO_TEXT
        found.append((loc, complaint(detail), hint))
    return found
