"""Pydantic's complaints in our own words: where, what is wrong, and the remedy.

Used for configuration and for requests alike, so that one mistake reads the same everywhere. Values are
never quoted: they may be secrets.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Loc = tuple[str | int, ...]

_PLAIN = {
    "missing": "is required",
    "extra_forbidden": "is not known",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "path_type": "must be a path",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null",
}
_LIMITS = {
    "greater_than": ("must be greater than {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be less than {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "string_too_long": ("must have at most {} characters", "max_length"),
    "too_short": ("must have a length of at least {}", "min_length"),
    "too_long": ("must have a length of at most {}", "max_length"),
    "enum": ("must be one of {}", "expected"),
    "literal_error": ("must be one of {}", "expected"),
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


def complaint(error: ErrorDetails) -> str:
    """What is wrong, as the end of a sentence that starts with the place."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _LIMITS:
        text, key = _LIMITS[kind]
        return text.format(context.get(key))
    if kind == "value_error":
        return str(context.get("error", "is not valid"))
    return "is not valid"


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


def faults(error: ValidationError, model: type[BaseModel]) -> list[tuple[Loc, str, str]]:
    """Every complaint as (place, what is wrong, hint)."""
    found = []
    for detail in error.errors(include_url=False, include_input=False):
        loc, hint = detail["loc"], ""
        if detail["type"] == "extra_forbidden":
            like = nearest(str(loc[-1]), known_keys(model, loc))
            hint = f"Did you mean {dotted((*loc[:-1], like))}?" if like else ""
        found.append((loc, complaint(detail), hint))
    return found
