"""``%pai`` and ``%%pai``: the verbs of the command line in a notebook.

A failure ends the cell with a short text and no traceback, and marks the document's place; cells
behind it do not run on. A job outlives its cell: interrupting ``--wait`` leaves it running.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from jupyter_pai import render
from jupyter_pai.api import Job, document_bytes
from jupyter_pai.cell import MagicCell
from jupyter_pai.commands import VERBS
from jupyter_pai.commands.cells import CELL as CELL_VERB
from jupyter_pai.commands.cells import FORM
from jupyter_pai.commands.session import DocumentFile, read_document
from jupyter_pai.errors import ClientError
from jupyter_pai.help_text import complaint
from jupyter_pai.language import tr
from jupyter_pai.shown import CellFailure
from jupyter_pai.verbs import AnyOrder, Argument, Run, Verb, add_verbs, parse

IN_NOTEBOOKS = {name: verb for name, verb in VERBS.items() if not verb.shell_only} | {FORM.name: FORM}
WORDS = tuple(dict.fromkeys(name.partition(" ")[0] for name in IN_NOTEBOOKS))
"""What may stand behind ``%pai``."""

CELL = "-"
"""The word for the cell below the line, as it is for stdin in a shell."""

HELP = """\
%pai VERB … does what `pai VERB …` does in a shell. %pai VERB --help tells more of a verb. $name stands for the value
of a variable: a job, its name, a file, or a document. %%pai submit takes the cell below it as the document, %%pai run
runs it in a job."""


class _Parser(AnyOrder):
    """Tells of a mistake as magics do, where a shell's parser would end the process."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse. Raises UsageError, which shows as one line."""
        raise UsageError(tr("{prog}: {message}; {prog} --help tells more", prog=self.prog, message=complaint(message)))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Called by argparse behind the text of ``--help``."""
        raise _HelpShown


class _HelpShown(Exception):
    """The help that was asked for is printed."""


def parser(
    value_of: Callable[[str], object], cell: str | None = None, verbs: Iterable[Verb] = IN_NOTEBOOKS.values()
) -> argparse.ArgumentParser:
    """The parser of a line; ``value_of`` gives the value of a variable."""

    def conversion(argument: Argument) -> Callable[[str], object]:
        typed: Callable[[str], object] = argument.options.get("type", str)

        def convert(word: str) -> object:
            is_variable = word.startswith("$") and not argument.literal
            value = value_of(word[1:]) if is_variable else word
            if argument.document and word == CELL:
                if cell is None:
                    raise UsageError(tr("there is no cell below this line: use %%pai"))
                return DocumentFile(cell.encode(), "cell", None)
            if argument.document:
                return _document(value, word)
            text = str(value.uid if isinstance(value, Job) else value)
            return Path(text).expanduser() if typed is Path else typed(text)

        convert.__name__ = typed.__name__  # argparse names it when a value is wrong
        return convert

    whole = _Parser(prog="%pai", description=tr(HELP))
    add_verbs(whole, verbs, conversion=conversion)
    return whole


def _document(value: object, name: str) -> DocumentFile:
    """The document that a word names, or that is in a variable: a dict, bytes, text, or the path of a file."""
    if isinstance(value, str) and value is name:
        return read_document(str(Path(name).expanduser()))
    data, filename = document_bytes(value if isinstance(value, dict | bytes | Path) else str(value))
    return DocumentFile(data, str(value) if filename else name, filename)


def _takes_document(words: list[str]) -> bool:
    verbs = [IN_NOTEBOOKS.get(" ".join(words[:count])) for count in (1, 2)]
    return any(argument.document for verb in verbs if verb for argument in verb.arguments)


@magics_class
class PaiMagics(Magics):
    """The magics."""

    @no_var_expand
    @line_cell_magic
    def pai(self, line: str, cell: str | None = None) -> object:
        """Submit and watch jobs: ``%pai VERB …``; ``%pai`` lists the verbs, ``%pai VERB --help`` tells more.

        ``$name`` stands for a variable. ``%%pai submit`` takes the cell as the document.
        """
        shown = MagicCell()
        try:
            args = self._parsed(line, cell)
            cast(Run, args.run)(args, shown)
        except _HelpShown:
            return None
        except ClientError as error:
            raise CellFailure(render.error_text(error)) from None
        except KeyboardInterrupt:
            raise CellFailure(tr("Interrupted. Jobs keep running.")) from None
        return shown.value

    def _parsed(self, line: str, cell: str | None) -> argparse.Namespace:
        """The arguments of a line. Raises UsageError and ClientError, and _HelpShown when help was asked for."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%pai: {error}") from None
        if words[:1] == ["notebook"]:
            words[0] = "run-notebook"
        name = " ".join(words[:1])
        if name not in (*WORDS, "", "-h", "--help"):
            raise UsageError(tr("%pai {name}: no such verb; known: {words}", name=name, words=", ".join(WORDS)))
        if cell is not None and name == CELL_VERB.name:
            args = parse(parser(self._variable, cell, [CELL_VERB]), words)
            args.cell, args.namespace = cell, self._names
            return args
        if cell is not None and not _takes_document(words):
            raise UsageError(tr("%%pai takes a document or code: use %%pai submit or %%pai run"))
        words = words or ["--help"] if cell is None else [*words, CELL]
        return parse(parser(self._variable, cell), words)

    @property
    def _names(self) -> dict[str, Any]:
        assert self.shell is not None
        return cast(dict[str, Any], self.shell.user_ns)

    def _variable(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise UsageError(tr("there is no variable {name}", name=f"{name!r}")) from None
