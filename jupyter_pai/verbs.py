"""The one table of verbs, of which ``pai``, ``%pai``, completion, the man page and docs/cli.md are made.

A verb is a function under the decorator :func:`verb`. Its docstring is its help: the first paragraph is its line in
lists, the rest is told by ``--help``. It gives its answer to :class:`~jupyter_pai.commands.output.Output`, which shows
it as text, as JSON or in a cell. The table is in English; a parser says it in the user's language. Beside that this
module loads the standard library only: ``pai`` must answer at once.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from jupyter_pai.help_text import Formatter, complaint
from jupyter_pai.language import tr

if TYPE_CHECKING:
    from jupyter_pai.commands.output import Output

USAGE = 2
"""The exit code of a wrong command line. Source: argparse, ``ArgumentParser.error``."""

Run = Callable[[argparse.Namespace, "Output"], int]
"""Does what a verb says; returns the exit code of ``pai``. Raises ClientError."""

Completer = Callable[[argparse.Namespace], Iterable[str]]
"""Values that an argument may have, given what was typed so far. Raises ClientError, also when no backend answers."""


@dataclass(frozen=True)
class Argument:
    """An argument as ``ArgumentParser.add_argument`` takes it, and what a completion and a notebook must know of it.

    ``document``: a file in the shell; in a notebook also a variable with its path, text or dict, or the cell.
    ``literal``: a word that begins with ``$`` is no variable of a notebook. ``files``: Tab offers files, as it does for
    documents and paths.
    """

    names: tuple[str, ...]
    options: Mapping[str, Any]
    completer: Completer | None = None
    document: bool = False
    literal: bool = False
    files: bool = False

    @property
    def is_option(self) -> bool:
        """Whether it has a name of its own on the command line."""
        return self.names[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        """Whether a word follows it."""
        flags = ("store_true", "store_const", argparse.BooleanOptionalAction)
        return self.options.get("action") not in flags

    @property
    def names_file(self) -> bool:
        """Whether Tab offers files and directories."""
        return self.files or self.document or self.options.get("type") is Path

    @property
    def dest(self) -> str:
        """Its attribute of the parsed arguments."""
        return str(self.options.get("dest") or self.names[-1].lstrip("-").replace("-", "_"))

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have, when they are few."""
        return tuple(map(str, self.options.get("choices", ())))

    @property
    def metavar(self) -> str:
        """What stands for its value in texts."""
        return str(self.options.get("metavar") or "|".join(self.choices) or self.dest.upper())

    @property
    def help(self) -> str:
        """What it means."""
        return str(self.options["help"])


@dataclass(frozen=True)
class OneOf:
    """Arguments that exclude each other."""

    arguments: tuple[Argument, ...]
    required: bool = False


Conversion = Callable[[Argument], Callable[[str], object] | None]
"""The type that an argument's words get in a parser."""


@dataclass(frozen=True)
class Verb:
    """A row of the table. ``name`` has two words for a verb of a group; ``shell_only`` ones are not in notebooks."""

    name: str
    summary: str
    details: str
    parts: tuple[Argument | OneOf, ...]
    run: Run
    shell_only: bool

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All its arguments."""
        return tuple(
            argument for part in self.parts for argument in (part.arguments if isinstance(part, OneOf) else (part,))
        )

    def add_to(self, parser: argparse.ArgumentParser, conversion: Conversion) -> None:
        """Give a parser the verb's arguments, and ``run`` as a default."""
        for part in self.parts:
            if isinstance(part, Argument):
                _add(parser, part, conversion)
                continue
            group = parser.add_mutually_exclusive_group(required=part.required)
            for argument in part.arguments:
                _add(group, argument, conversion)
        parser.set_defaults(run=self.run)


def _add(parser: argparse._ActionsContainer, argument: Argument, conversion: Conversion) -> None:
    options = {**argument.options, "help": tr(argument.help)}
    if argument.takes_value and (typed := conversion(argument)) is not None:
        options["type"] = typed
    action = parser.add_argument(*argument.names, **options)
    if argument.completer is not None:
        action.completer = _quiet(argument.completer)  # type: ignore[attr-defined]  # argcomplete looks for it
    elif argument.names_file:
        action.completer = _files  # type: ignore[attr-defined]


def _quiet(completer: Completer) -> Callable[..., Sequence[str]]:
    def complete(*, parsed_args: argparse.Namespace, **_: object) -> Sequence[str]:
        """Called by argcomplete."""
        return completions(completer, parsed_args)

    return complete


def _files(*, prefix: str, **_: object) -> Iterable[str]:
    """Called by argcomplete."""
    from argcomplete.completers import FilesCompleter

    return cast(Iterable[str], FilesCompleter()(prefix))


def completions(completer: Completer, args: argparse.Namespace) -> Sequence[str]:
    """The values that a completer knows; none when it cannot ask, since a completion has no place for an error."""
    from jupyter_pai.errors import ClientError

    try:
        return list(completer(args))
    except ClientError:
        return []


VERBS: dict[str, Verb] = {}
"""All verbs by name, in the order of the help. ``jupyter_pai.commands`` fills it."""

GROUPS: dict[str, str] = {}
"""What the verbs of two words have in common, by the first word."""


def argument(
    *names: str,
    help: str,
    completer: Completer | None = None,
    document: bool = False,
    literal: bool = False,
    files: bool = False,
    **options: Any,
) -> Argument:
    """An argument; ``options`` are those of ``add_argument``."""
    return Argument(names, {"help": help, **options}, completer, document, literal, files)


def flag(*names: str, help: str, **options: Any) -> Argument:
    """An option without a value."""
    return argument(*names, help=help, **{"action": "store_true", **options})


def one_of(*arguments: Argument, required: bool = False) -> OneOf:
    """Arguments of which at most one, or exactly one, may be given."""
    return OneOf(arguments, required)


Declared = TypeVar("Declared", bound=Run)


def verb(name: str, *parts: Argument | OneOf, shell_only: bool = False) -> Callable[[Declared], Declared]:
    """Declare the decorated function as a verb."""

    def declare(run: Declared) -> Declared:
        summary, _, details = (inspect.getdoc(run) or "").replace("``", "`").partition("\n\n")
        summary = " ".join(summary.split()).removesuffix(".")
        VERBS[name] = Verb(name, summary, " ".join(details.split()), parts, run, shell_only)
        return run

    return declare


class AnyOrder(argparse.ArgumentParser):
    """A parser whose options may stand anywhere among its words, and that speaks the user's language.

    argparse fills all words that may be left out (``nargs`` of ``*`` and ``?``) with nothing as soon as an option
    follows the first word, and refuses those behind it.

    One with ``fill``, which gives it its arguments, makes itself when it is first used: a line has one of a hundred
    commands.
    """

    _within = False

    def __init__(self, *, fill: Callable[[AnyOrder], None] | None = None, **options: Any) -> None:
        if fill is not None:
            self._later = fill, options
            return
        super().__init__(**{"formatter_class": Formatter, **options})
        for group in self._action_groups:
            group.title = tr(group.title) if group.title else None
        for action in self._actions:  # only --help so far
            action.help = tr(action.help) if action.help else None

    def __getattr__(self, name: str) -> Any:
        """Called for what an instance lacks: before it has made itself that is all that a parser has."""
        if "_later" not in self.__dict__:
            raise AttributeError(name)
        fill, options = self.__dict__.pop("_later")
        AnyOrder.__init__(self, **options)
        fill(self)
        return getattr(self, name)

    def error(self, message: str) -> NoReturn:
        """Called by argparse: print usage and message, and end with the exit code of a wrong usage."""
        self.print_usage(sys.stderr)
        said = tr("{program}: error: {reason}", program=self.prog, reason=complaint(message))
        self.exit(USAGE, f"{said}\n")

    def parse_known_args(  # type: ignore[override]  # argparse's own overloads are of no use to callers here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse, but intermixed; its own helper calls this once for options and once for words."""
        whole = self._within or self._subparsers is not None
        if whole or "--" in (args or ()):  # what is intermixed loses the words behind "--"
            return super().parse_known_args(args, namespace)
        self._within, usage = True, self.usage
        if usage is None:  # argparse would take the first seven characters for "usage: "
            self.usage = self.format_usage().removeprefix(tr("usage: ")).replace("%", "%%")
        try:
            return super().parse_known_intermixed_args(args, namespace)
        finally:
            self._within, self.usage = False, usage


def add_verbs(
    whole: AnyOrder,
    verbs: Iterable[Verb],
    *,
    common: Sequence[argparse.ArgumentParser] = (),
    conversion: Conversion = lambda argument: argument.options.get("type"),
) -> None:
    """Give a parser a command for each verb. ``common``: parsers whose arguments each of them takes, too."""

    def add(add_parser: Callable[..., AnyOrder], name: str, each: Verb) -> None:
        summary = tr(each.summary)
        told = tr("{summary}. {details}", summary=summary, details=tr(each.details)).rstrip()
        fill = partial(each.add_to, conversion=conversion)
        add_parser(name, parents=common, help=summary, description=told, fill=fill)

    def add_group(add_parser: Callable[..., AnyOrder], group: str, members: Mapping[str, Verb]) -> None:
        def fill(above: AnyOrder) -> None:
            actions = above.add_subparsers(dest="action", required=True, metavar="ACTION")
            for name, each in members.items():
                add(actions.add_parser, name, each)

        words = tr(GROUPS[group])
        add_parser(group, help=words, description=words, fill=fill)

    groups: dict[str, dict[str, Verb]] = {}
    for each in verbs:
        group, _, name = each.name.rpartition(" ")
        groups.setdefault(group or name, {})[name] = each
    commands = whole.add_subparsers(dest="verb", required=True, metavar="VERB")
    for group, members in groups.items():
        if group in members:
            add(commands.add_parser, group, members[group])
        else:
            add_group(commands.add_parser, group, members)


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a line; what stands behind ``--`` of ``ssh`` or ``run`` is its command, word for word."""
    if not {"ssh", "run"}.intersection(words[:1]) or "--" not in words:
        return parser.parse_args(words)
    at = list(words).index("--")
    args = parser.parse_args(words[:at])
    args.command = [*args.command, *words[at + 1 :]]
    return args
