"""The command ``pai``: parses, runs one verb, turns errors into text and exit codes.

Exit codes: 0 fine, 1 the job failed, 2 usage or invalid document, 3 backend away; 130 after Ctrl-C. The verb
``cluster plan`` has codes of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import cast

from jupyter_pai import contexts, language
from jupyter_pai.commands import VERBS
from jupyter_pai.commands.output import Output, abandon_stdout
from jupyter_pai.commands.waiting import INTERRUPTED
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import AnyOrder, Run, add_verbs, parse


class _Version(argparse.Action):
    """``--version``; the version is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from jupyter_pai import __version__

        print(f"pai {__version__}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = AnyOrder(prog="pai", description=tr("Submit job documents and reach their tasks."))
    whole.add_argument("--version", nargs=0, action=_Version, help=tr("print the version"))
    common = argparse.ArgumentParser(add_help=False)
    context = common.add_argument(
        "--context", metavar="NAME", help=tr("another of your backends, as `pai context list` shows")
    )
    context.completer = contexts.completions  # type: ignore[attr-defined]  # argcomplete looks for it
    common.add_argument("--json", action="store_true", help=tr("print JSON on stdout, and nothing else there"))
    add_verbs(whole, VERBS.values(), common=[common])
    return whole


@contextlib.contextmanager
def _using(context: str | None) -> Iterator[None]:
    """Another backend than the current one, also for what is started meanwhile."""
    before = os.environ.get("PAI_CONTEXT")
    if context is not None:
        os.environ["PAI_CONTEXT"] = context
    try:
        yield
    finally:
        if context is not None:
            os.environ.pop("PAI_CONTEXT")
            if before is not None:
                os.environ["PAI_CONTEXT"] = before


def _fit_language() -> None:
    """Speak English where a stream's encoding has no Chinese; names that it lacks must not end the verb either."""
    streams = [each for each in (sys.stdout, sys.stderr) if isinstance(each, io.TextIOWrapper)]
    lacking = [each for each in streams if not language.can_be_encoded(each.encoding)]
    language.keep_to_english(bool(lacking))
    for each in lacking:
        each.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    _fit_language()
    whole = parser()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        suppressed = argcomplete.completers.SuppressCompleter()
        argcomplete.autocomplete(whole, always_complete_options="long", default_completer=suppressed)
    args = parse(whole, sys.argv[1:] if argv is None else list(argv))
    out = Output(as_json=args.json)
    try:
        with _using(args.context):
            return cast(Run, args.run)(args, out)
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
