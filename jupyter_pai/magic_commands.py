"""Commands of the shell that are the same in a notebook: ``%pai keys …``, ``%pai share …`` and their like.

Their words are parsed by the shell's own parsers, so that there is one list of arguments. What they would print is the
cell's value.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, cast

from IPython.core.error import UsageError

from jupyter_pai.commands import keys, share
from jupyter_pai.commands.output import Output
from jupyter_pai.shown import Shown

COMMANDS = ("keys", "share", "shares", "unshare")
"""Those of a notebook; a test holds them to the parser's."""


class _Parser(argparse.ArgumentParser):
    """Tells of a mistake as magics do, where a shell's parser would end the process."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse. Raises UsageError, which shows as one line."""
        raise UsageError(f"{self.prog}: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Called by argparse behind the text of ``--help``."""
        raise _Told


class _Told(Exception):
    """The help that was asked for is printed."""


@dataclass(frozen=True)
class _Kept(Output):
    """Keeps what a shell would print."""

    texts: list[str] = field(default_factory=list)

    def result(self, value: object, text: str) -> None:
        """Keep the text."""
        self.texts.append(text)


def parser() -> argparse.ArgumentParser:
    """The parser of these commands."""
    whole = _Parser(prog="%pai")
    verbs = whole.add_subparsers(dest="verb", required=True, metavar="VERB")
    common = argparse.ArgumentParser(add_help=False)
    for group in (keys, share):
        group.add(verbs, common)
    return whole


def run(name: str, words: str, variable: Callable[[str], str]) -> Shown | None:
    """Run a command with the words of its line; ``variable`` gives the text that a word ``$name`` stands for.

    Raises UsageError for a mistake in the line, and ClientError.
    """
    try:
        given = [variable(word) if word.startswith("$") else word for word in _split(words)]
        args = parser().parse_args([name, *given])
    except _Told:
        return None
    out = _Kept(as_json=False)
    cast(Callable[[argparse.Namespace, Output], int], args.run)(args, out)
    return Shown("\n".join(out.texts))


def _split(words: str) -> Sequence[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise UsageError(f"%pai: {error}") from None
