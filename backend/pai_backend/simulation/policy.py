"""The rules of the queue for a simulation: what the settings of a backend say under ``queue``, and single options.

The rest of the settings is not looked at, so that a file may be played with on a machine that is no backend.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import ValidationError

from pai_backend.config.files import ConfigError, ConfigFile, read_file
from pai_backend.config.queue import QueueSettings
from pai_backend.config.queue_policy import policy_of
from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.validation import Loc, dotted, faults
from pai_backend.scheduling.queue import Policy

SECTION = "queue"


def read_policy(settings: str | None, options: list[str]) -> Policy:
    """Caps and patience of a settings file, over which go options like ``user.gpus=8``.

    Raises DocumentError with every fault: the line of the file, or the option.
    """
    file = _file(settings)
    values = file.values.get(SECTION) or {}
    if not isinstance(values, dict):
        _refuse([_fault(file, (), "must hold keys and values", "")])
    given: set[Loc] = set()
    for option in options:
        given.add(_put(values, option))
    try:
        return policy_of(QueueSettings.model_validate(values))
    except ValidationError as error:
        found = []
        for loc, complaint, hint in faults(error, QueueSettings):
            is_option = any(loc[: len(each)] == each or each[: len(loc)] == loc for each in given)
            found.append(_fault(ConfigFile("", {}) if is_option else file, loc, complaint, hint))
        _refuse(found)


def _file(settings: str | None) -> ConfigFile:
    if settings is None:
        return ConfigFile("", {})
    try:
        return read_file(Path(settings))
    except ConfigError as error:
        raise DocumentError(error.lines[0], hint="Give the settings file of a backend.") from error


def _put(values: dict[str, Any], option: str) -> Loc:
    """Set one key; answers which. Raises DocumentError for an unknown option."""
    name, equals, text = option.partition("=")
    parts = name.split(".")
    hint = "Write --queue user.gpus=8, with a key of the queue's settings."
    if not equals or not all(parts):
        raise DocumentError(f"{option} is not KEY=VALUE", hint=hint)
    here = values
    for part in parts[:-1]:
        inner = here.setdefault(part, {})
        if not isinstance(inner, dict):
            raise DocumentError(f"{name}: {part} has no keys", hint=hint)
        here = inner
    try:
        here[parts[-1]] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DocumentError(f"{name}: the value is not valid JSON or YAML", hint=hint) from error
    return tuple(parts)


def _fault(file: ConfigFile, loc: Loc, complaint: str, hint: str) -> Fault:
    path = (SECTION, *loc)
    lines = [file.lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in file.lines]
    place = dotted(path)
    return Fault(path=f"$.{place}", message=f"{place} {complaint}", line=lines[0] if lines else None, hint=hint)


def _refuse(found: list[Fault]) -> NoReturn:
    count = f"{len(found)} faults" if len(found) > 1 else "a fault"
    raise DocumentError(f"the rules of the queue have {count}: {found[0].message}", errors=found, hint=found[0].hint)
