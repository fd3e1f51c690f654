"""A configuration file as values and the line of each key. YAML by default, TOML by its suffix."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

Path_ = tuple[str | int, ...]


class ConfigError(Exception):
    """The configuration is wrong; ``lines`` holds one clear sentence for each mistake."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class ConfigFile:
    """What a file says and where it says it."""

    name: str
    values: dict[str, Any]
    lines: dict[Path_, int] = field(default_factory=dict)

    def place(self, path: Path_) -> str:
        """``file:line`` of the key, or of the nearest thing above it that has a line."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return f"{self.name}:{line}"
        return self.name


def read_file(path: Path) -> ConfigFile:
    """Read a YAML or TOML file. Raises ConfigError naming file, line and reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: the file cannot be read: {error.strerror}") from None
    return _read_toml(str(path), text) if path.suffix == ".toml" else _read_yaml(str(path), text)


def check_mode(path: Path, file: ConfigFile, secret_places: Iterable[tuple[str, ...]]) -> None:
    """Refuse a file with secrets, at one of these places, that other users may read. Raises ConfigError.

    Of files that are not ours, such as those that Kubernetes mounts, the mode is not ours to change.
    """
    place = next((place for place in secret_places if _given(file.values, place)), None)
    if place is None:
        return
    about = path.stat()
    if about.st_uid == os.geteuid() and about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            f"{file.place(place)}: {'.'.join(place)} is secret, and other users may read the file (mode "
            f"{about.st_mode & 0o777:o}). Run `chmod 600 {path}`, and replace what they may have read."
        )


def _given(values: Mapping[str, Any], place: tuple[str, ...]) -> bool:
    found: Any = values
    for key in place:
        found = found.get(key) if isinstance(found, Mapping) else None
    if place != ("database",) or not found:
        return bool(found)
    url = urlsplit(str(found))  # its address is secret when it has a password in it
    return ":" in url.netloc.rpartition("@")[0] or any(name.endswith("password") for name, _ in parse_qsl(url.query))


def _read_yaml(name: str, text: str) -> ConfigFile:
    lines: dict[Path_, int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            return ConfigFile(name, {})
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{name}:1: the file must hold keys and values")
        _walk(name, node, (), lines)
        return ConfigFile(name, yaml.safe_load(text), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{name}:{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{name}: not valid YAML: it holds characters that YAML does not allow") from None


def _walk(name: str, node: yaml.Node, path: Path_, lines: dict[Path_, int]) -> None:
    """Note the line of every key and item below ``node``."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            line = key.start_mark.line + 1
            if inner in lines:
                raise ConfigError(f"{name}:{line}: the key {key.value} is given twice, first in line {lines[inner]}")
            lines[inner] = line
            _walk(name, value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*path, index)] = value.start_mark.line + 1
            _walk(name, value, (*path, index), lines)


def _read_toml(name: str, text: str) -> ConfigFile:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigError(f"{name}:{found[1] if found else 1}: not valid TOML: {reason}") from None
    return ConfigFile(name, values, _toml_lines(text))


_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?")
_ENTRY = re.compile(r"\s*([\w.-]+)\s*=")


def _toml_lines(text: str) -> dict[Path_, int]:
    """Lines of the keys of a valid TOML text. Keys inside inline tables have the line of their table."""
    lines: dict[Path_, int] = {}
    items: dict[str, int] = {}
    table: Path_ = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                items[header[2]] = items.get(header[2], -1) + 1
                table = (*table, items[header[2]])
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            lines.setdefault((*table, *entry[1].split(".")), number)
    return lines
