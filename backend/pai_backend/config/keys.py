"""The settings as a flat table of keys: name, flag, variable, type, default, meaning.

Flags, ``--help`` and the reference page are all read off this table, so that none can lack a key.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Secret, SecretStr
from pydantic.fields import FieldInfo

from pai_backend.config.settings import Settings

ENV_PREFIX = "PAI_BACKEND_"
ENV_NESTED = "__"
COMPUTED_DEFAULTS = {"data_dir": "the user's data directory", "user": "the login name"}


@dataclass(frozen=True)
class Key:
    """One leaf of the settings."""

    path: tuple[str, ...]
    kind: str
    structured: bool
    secret: bool
    default: str
    meaning: str

    @property
    def name(self) -> str:
        """As files and messages have it: ``api.port``."""
        return ".".join(self.path)

    @property
    def flag(self) -> str | None:
        """``--api-port``; None for secrets, which would be seen in the process list."""
        return None if self.secret else "--" + "-".join(self.path).replace("_", "-")

    @property
    def variable(self) -> str:
        """``PAI_BACKEND_API__PORT``."""
        return ENV_PREFIX + ENV_NESTED.join(self.path).upper()


@cache
def keys() -> tuple[Key, ...]:
    """Every key in the order of the model: its leaves, and before those of a group within a group the group itself.

    Such a group may also be given whole, as an object; a leaf that is given beside it wins.
    """
    return tuple(_keys(Settings, ()))


def _keys(model: type[BaseModel], above: tuple[str, ...]) -> Iterator[Key]:
    for name, info in model.model_fields.items():
        path, inner = (*above, name), info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            if above:
                yield Key(path, "object", structured=True, secret=False, default="", meaning=info.description or "")
            yield from _keys(inner, path)
            continue
        yield Key(
            path=path,
            kind=_kind(inner),
            structured=_is_structured(inner),
            secret=_holds_secret(inner),
            default=_default(".".join(path), info),
            meaning=info.description or "",
        )


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables of keys that hold secrets, for processes that have them otherwise."""
    secret = tuple(key.variable for key in keys() if key.secret)
    return {
        name: value
        for name, value in environ.items()
        if not any(name.upper() == one or name.upper().startswith(one + ENV_NESTED) for one in secret)
    }


def _parts(annotation: Any) -> tuple[Any, ...]:
    return tuple(part for part in typing.get_args(annotation) if part is not type(None) and part is not Ellipsis)


def _is_structured(annotation: Any) -> bool:
    """Whether a value is written as JSON or YAML text in a flag."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        return _is_structured(_parts(annotation)[0])
    return origin in (tuple, dict)


def _holds_secret(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any(_holds_secret(info.annotation) for info in annotation.model_fields.values())
    secret = annotation is SecretStr or typing.get_origin(annotation) is Secret
    return secret or any(_holds_secret(part) for part in _parts(annotation))


def _kind(annotation: Any) -> str:
    """A type in a reader's words."""
    origin, parts = typing.get_origin(annotation), _parts(annotation)
    if origin is tuple:
        return f"list of {_kind(parts[0])}"
    if origin is dict:
        return "object"
    if origin is types.UnionType or origin is typing.Union:
        return _kind(parts[0])
    if origin is typing.Literal:
        return " or ".join(str(part) for part in parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "object"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(str(member.value) for member in annotation)
    return {int: "whole number", float: "number", bool: "true or false", Path: "path"}.get(annotation, "text")


def _default(name: str, info: FieldInfo) -> str:
    if name in COMPUTED_DEFAULTS:
        return COMPUTED_DEFAULTS[name]
    value = info.get_default()
    return "" if value is None else json.dumps(value) if not isinstance(value, str) else value
