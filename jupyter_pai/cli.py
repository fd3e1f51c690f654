"""The command ``pai``: parses, runs one verb, turns errors into text and exit codes.

Exit codes: 0 fine, 1 the job failed, 2 usage or invalid document, 3 backend away; 130 after Ctrl-C. The verb
``cluster plan`` has codes of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import cast

from jupyter_pai.commands import backend, cluster, connect, documents, files, jobs, keys, share, simulate, ssh
from jupyter_pai.commands.output import Output, abandon_stdout
from jupyter_pai.commands.waiting import INTERRUPTED
from jupyter_pai.errors import OK, ClientError

Verb = Callable[[argparse.Namespace, Output], int]


class _Version(argparse.Action):
    """``--version``; the version is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from jupyter_pai import __version__

        print(f"pai {__version__}")
        parser.exit()


class _AnyOrder(argparse.ArgumentParser):
    """A parser whose options may stand anywhere among its words.

    argparse fills all words that may be left out (``nargs`` of ``*`` and ``?``) with nothing as soon as an option
    follows the first word, and refuses those behind it.
    """

    _within = False

    def parse_known_args(  # type: ignore[override]  # argparse's own overloads are of no use to callers here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse, but intermixed; its own helper calls this once for options and once for words."""
        whole = self._within or self._subparsers is not None
        if whole or "--" in (args or ()):  # what is intermixed loses the words behind "--"
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            return super().parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = _AnyOrder(prog="pai", description="Submit job documents and reach their tasks.")
    whole.add_argument("--version", nargs=0, action=_Version, help="print the version")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON on stdout, and nothing else there")
    verbs = whole.add_subparsers(dest="verb", required=True, metavar="VERB")
    for group in (documents, jobs, files, ssh, connect, keys, share, cluster, simulate, backend):
        group.add(verbs, common)
    return whole


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The command line; what stands behind ``--`` of ``pai ssh`` is its command, word for word."""
    if argv[:1] != ["ssh"] or "--" not in argv:
        return parser().parse_args(argv)
    at = argv.index("--")
    args = parser().parse_args(argv[:at])
    args.command = [*args.command, *argv[at + 1 :]]
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    args = _parsed(sys.argv[1:] if argv is None else list(argv))
    out = Output(as_json=args.json)
    try:
        return cast(Verb, args.run)(args, out)
    except ClientError as error:
        out.error(error)
        return error.exit_code
    except BrokenPipeError:
        abandon_stdout()
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
