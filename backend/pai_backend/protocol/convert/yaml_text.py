"""Values as YAML that people read: long texts in blocks, and quotes where YAML 1.2 or 1.1 would see no text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from yaml.representer import SafeRepresenter

from pai_backend.protocol import yaml_scalars

_WIDTH = 1_000_000_000  # characters: lines of a text are never folded


def dumped(value: Mapping[str, Any]) -> str:
    """``value`` as a YAML document, in its order. Reads back as it is."""
    text: str = yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


def _represent(dumper: SafeRepresenter, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and _is_plain_block(text):
        style = "|"
    elif text and not isinstance(yaml_scalars.plain(text, 0), str):
        style = "'"  # 0o17 is a number in YAML 1.2 alone; what 1.1 takes for none the dumper knows
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_plain_block(text: str) -> bool:
    """Whether a block shows the text as it is: nothing at a line's end or at the beginning that YAML would lose."""
    lines = text.removesuffix("\n").split("\n")
    return all(line.isprintable() and line == line.rstrip() for line in lines) and bool(lines[0]) and lines[0][0] != " "


def _dumper() -> type[yaml.SafeDumper] | type[yaml.CSafeDumper]:
    """A dumper of our own, so that the ways of others' texts stay as they are; libyaml's where there is one."""
    if not yaml.__with_libyaml__:

        class Pure(yaml.SafeDumper):
            pass

        return Pure

    class Fast(yaml.CSafeDumper):
        pass

    return Fast


_DUMPER = _dumper()
_DUMPER.add_representer(str, _represent)
