"""Regular expressions mean the same on every Python that the project runs on.

The patterns avoid two faults of ``re``, because Debian 12 has Python 3.11.2:

- A possessive repeat of a group keeps the text that its last, failed round had matched (gh-106052, fixed in 3.11.5). A
  group whose last alternative is empty has no failed round.
- A capturing group inside a possessive repeat or an atomic group may lose its text (gh-101955).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

import pytest

import jupyter_pai
import pai_backend

RUN_NOT_IMPORTED = ("__main__", "env")


def patterns() -> Iterator[tuple[str, str]]:
    """Names and texts of all patterns that modules of ours keep."""
    for package in (pai_backend, jupyter_pai):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.rpartition(".")[2] in RUN_NOT_IMPORTED:
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    yield f"{module.name}.{name}", value.pattern


def trees(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every operation of a parsed pattern with its arguments, the outer ones first."""
    if isinstance(node, parser.SubPattern):
        for operation, arguments in node:
            yield operation, arguments
            yield from trees(arguments)
    elif isinstance(node, tuple | list):
        for inner in node:
            yield from trees(inner)


def is_one_character(body: Any) -> bool:
    return len(body) == 1 and body[0][0] in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY)


def ends_with_nothing(body: Any) -> bool:
    if len(body) == 1 and body[0][0] is ops.SUBPATTERN:
        body = body[0][1][-1]
    return len(body) == 1 and body[0][0] is ops.BRANCH and not len(body[0][1][1][-1])


def fault(pattern: str) -> str:
    """Why a pattern is not safe, or nothing."""
    for operation, arguments in trees(parser.parse(pattern)):
        if operation is ops.POSSESSIVE_REPEAT:
            body = arguments[2]
            if not is_one_character(body) and not ends_with_nothing(body):
                return "a possessive repeat of a group without an empty last alternative"
        elif operation is ops.ATOMIC_GROUP:
            body = arguments
        else:
            continue
        if any(inner is ops.SUBPATTERN and found[0] is not None for inner, found in trees(body)):
            return "a captured group that is matched possessively"
    return ""


def test_no_pattern_means_something_else_on_another_python() -> None:
    found = dict(patterns())
    assert len(found) > 100
    assert {name: why for name, text in found.items() if (why := fault(text))} == {}


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        (r"(?:a?b)*+", "empty"),
        (r"(?:a?b)?+c", "empty"),
        (r"x(?:a|b?c)*+", "empty"),
        (r"(?:(?:aa)*+|)*+", "empty"),
        (r"(a|)*+", "captured"),
        (r"(?>(a)b)", "captured"),
        (r"(?:a?b|)*+", ""),
        (r"[a-z]*+a++.?+", ""),
    ],
)
def test_the_rule_tells_safe_patterns_from_others(pattern: str, word: str) -> None:
    why = fault(pattern)
    assert word in why
    assert bool(word) == bool(why)


@pytest.mark.parametrize("text", ["a", "abcac", "ab", "abcab"])
def test_an_empty_alternative_makes_a_repeat_right(text: str) -> None:
    right = re.fullmatch(r"(?:ab?c)*", text)
    assert bool(re.fullmatch(r"(?:ab?+c|)*+", text)) == bool(right)
