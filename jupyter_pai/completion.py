"""What Tab offers behind ``%pai``: verbs, actions, options and their words, all from the parsers. Asks nobody."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jupyter_pai import magic_commands
from jupyter_pai.magics import VERBS, PaiMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Event(Protocol):
    """What IPython says of the line."""

    symbol: str
    text_until_cursor: str


def complete(shell: InteractiveShell, event: Event) -> list[str]:
    """Called by IPython for a line that begins with ``%pai``: words that can stand at the cursor."""
    given = event.text_until_cursor.split()[1:]
    if event.symbol and given:
        given.pop()  # the word that is being typed
    return [word for word in words(given) if word.startswith(event.symbol)]


def words(given: Sequence[str]) -> list[str]:
    """What can follow these words."""
    if not given:
        return list(VERBS)
    if given[0] not in VERBS:
        return []
    command = _command(given)
    last = next((action for action in command._actions if given[-1] in action.option_strings), None)
    if last is not None and last.nargs != 0:
        return _choices(last)
    below = [word for action in command._actions if not action.option_strings for word in _choices(action)]
    return below + [name for action in command._actions for name in action.option_strings if name.startswith("--")]


def _command(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the verb, or of the action, that the words have got to."""
    if given[0] not in magic_commands.COMMANDS:
        found: argparse.ArgumentParser = getattr(PaiMagics, f"_{given[0]}").parser
        return found
    command = magic_commands.parser()
    for word in given:
        groups = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
        if groups and word in groups[0].choices:
            command = groups[0].choices[word]
    return command


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]
