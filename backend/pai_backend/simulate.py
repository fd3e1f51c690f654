"""``python -m pai_backend simulate CONFIG TRACE``: replay a trace of arrivals on a cluster configuration.

Prints one JSON value, the report; people use ``pai simulate``. What is wrong with a file is printed as
``{"file": …, "error": …}``, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pai_backend.model.errors import DocumentError, PaiError
from pai_backend.scheduling import read_config
from pai_backend.scheduling.simulate import Report, picture, read_trace, replay
from pai_backend.scheduling.simulate.trace import MOST_SECONDS

EXIT_INVALID = 2
EXIT_INTERRUPTED = 130


class _Wrong(Exception):
    """A file is wrong."""

    def __init__(self, file: str, error: PaiError) -> None:
        super().__init__(error.message)
        self.file = file
        self.error = error


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    args = _parser().parse_args(arguments)
    try:
        report = _simulate(args.config, args.trace, args.grace)
        if args.picture:
            _write(args.picture, picture(report))
    except _Wrong as wrong:
        body = wrong.error.body().model_dump(mode="json")
        sys.stdout.write(json.dumps({"file": wrong.file, "error": body}) + "\n")
        return EXIT_INVALID
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    sys.stdout.write(report.model_dump_json() + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pai_backend simulate", description=__doc__)
    parser.add_argument("config", help="cluster configuration in HiveD's schema")
    parser.add_argument("trace", help="arrivals, one JSON object a line")
    parser.add_argument("--grace", type=_grace, default=0.0, help="seconds that evicted groups keep their place")
    parser.add_argument("--picture", metavar="FILE", help="write an SVG too")
    return parser


def _grace(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(text)
    return seconds


def _simulate(config_file: str, trace_file: str, grace_s: float) -> Report:
    try:
        config = read_config(_read(config_file))
    except PaiError as error:
        raise _Wrong(config_file, error) from error
    try:
        return replay(config, read_trace(_read(trace_file)), grace_s=grace_s)
    except PaiError as error:
        raise _Wrong(trace_file, error) from error


def _read(file: str) -> str:
    """The text of a file. Raises DocumentError for one that cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{file} is no UTF-8 text: byte {error.start} is not"
        raise DocumentError(message, hint="Save it as UTF-8.") from error
    except OSError as error:
        raise DocumentError(f"cannot read {file}: {error.strerror}", hint="Check its path and rights.") from error


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        hint = "Name a file in a directory that you may write to."
        raise _Wrong(file, DocumentError(f"cannot write {file}: {error.strerror}", hint=hint)) from error
