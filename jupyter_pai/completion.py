"""What Tab offers behind ``%pai``: verbs, options, and the values of arguments, all from the table of verbs."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from jupyter_pai.magics import IN_NOTEBOOKS
from jupyter_pai.verbs import Argument, Verb, completions

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CompletionEvent(Protocol):
    """What IPython says of the line."""

    symbol: str
    text_until_cursor: str


def complete(shell: InteractiveShell, event: CompletionEvent) -> list[str]:
    """Called by IPython for a line that begins with ``%pai``: words that can stand at the cursor."""
    given = event.text_until_cursor.split()[1:]
    if event.symbol and given:
        given.pop()  # the word that is being typed
    return [word for word in words(given, event.symbol) if word.startswith(event.symbol)]


def words(given: Sequence[str], begun: str = "") -> list[str]:
    """What can follow these words; of files, those whose path begins as what is typed."""
    for count in (1, 2):
        if (verb := IN_NOTEBOOKS.get(" ".join(given[:count]))) is not None:
            return _behind(verb, given[count:], begun)
    names = [name.split() for name in IN_NOTEBOOKS]
    return list(dict.fromkeys(name[len(given)] for name in names if name[: len(given)] == list(given)))


def _behind(verb: Verb, given: Sequence[str], begun: str) -> list[str]:
    """What can follow these words of a verb: the values of the argument whose turn it is, or options."""
    options = {name: argument for argument in verb.arguments if argument.is_option for name in argument.names}
    args = argparse.Namespace(**{argument.dest: None for argument in verb.arguments})
    turns = [argument for argument in verb.arguments if not argument.is_option]
    wanted: Argument | None = None  # the option whose value comes next
    for word in given:
        if wanted is None and word in options:
            wanted = options[word] if options[word].takes_value else None
        elif wanted is not None:
            setattr(args, wanted.dest, word)
            wanted = None
        elif turns:
            setattr(args, turns[0].dest, word)
            if turns[0].options.get("nargs") not in ("*", "+"):
                turns.pop(0)
    if wanted is not None:
        return _values(wanted, args, begun)
    return [*(_values(turns[0], args, begun) if turns else []), *(name for name in options if name.startswith("--"))]


def _values(argument: Argument, args: argparse.Namespace, begun: str) -> list[str]:
    offered = completions(argument.completer, args) if argument.completer else ()
    return [*argument.choices, *offered, *(_files(begun) if argument.names_file else ())]


def _files(begun: str) -> Iterator[str]:
    for path in sorted(glob.glob(f"{glob.escape(begun)}*")):
        yield f"{path}/" if os.path.isdir(path) else path
