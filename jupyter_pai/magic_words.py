"""IPython's argument decorators with types that keep the decorated function's own."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any, TypeVar, cast

from IPython.core import magic_arguments as _ipython

Verb = TypeVar("Verb", bound=Callable[..., Any])


def verb(name: str) -> Callable[[Verb], Verb]:
    """The outermost decorator: makes a parser of the arguments below it, shown as ``%name``."""
    return cast(Callable[[Verb], Verb], _ipython.magic_arguments(name))  # type: ignore[no-untyped-call]


def argument(*names: str, **options: Any) -> Callable[[Verb], Verb]:
    """One argument, as ``ArgumentParser.add_argument`` takes it."""
    return cast(Callable[[Verb], Verb], _ipython.argument(*names, **options))  # type: ignore[no-untyped-call]


def parse(run: Callable[..., Any], line: str) -> Namespace:
    """The arguments of a line. Raises IPython's UsageError, which shows as one line."""
    return cast(Namespace, _ipython.parse_argstring(run, line))  # type: ignore[no-untyped-call]
