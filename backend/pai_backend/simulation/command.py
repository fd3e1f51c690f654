"""``python -m pai_backend simulate CONFIG TRACE``: replay a trace of what happens on a cluster configuration.

Prints one JSON value, the report, or with ``--compare`` both; people use ``pai simulate``. What is wrong with a file is
printed as ``{"file": …, "error": …}``, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from pai_backend.model.errors import DocumentError, Fault, PaiError
from pai_backend.scheduling import ClusterConfig, read_config
from pai_backend.scheduling.queue import Policy
from pai_backend.simulation import Comparison, Report, Rules, Trace, picture, read_trace, replay
from pai_backend.simulation.policy import read_policy
from pai_backend.simulation.trace import MOST_SECONDS, NewConfig

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
        answer = _simulate(args)
        if args.picture:
            _write(args.picture, picture(answer))
    except _Wrong as wrong:
        body = wrong.error.body().model_dump(mode="json", by_alias=True)
        sys.stdout.write(json.dumps({"file": wrong.file, "error": body}) + "\n")
        return EXIT_INVALID
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    sys.stdout.write(answer.model_dump_json(by_alias=True) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pai_backend simulate", description=__doc__)
    parser.add_argument("config", help="cluster configuration in HiveD's schema")
    parser.add_argument("trace", help="what happens, one JSON object a line")
    parser.add_argument("--compare", metavar="CONFIG", help="another cluster configuration, to play the same trace on")
    parser.add_argument("--settings", metavar="FILE", help="settings of a backend; only `queue` is used")
    parser.add_argument("--queue", metavar="KEY=VALUE", action="append", default=[], help="one of these settings")
    parser.add_argument("--grace", type=_grace, default=0.0, help="seconds that evicted groups keep their place")
    parser.add_argument("--estimates", action="store_true", help="note the start times that waiting groups are shown")
    parser.add_argument("--picture", metavar="FILE", help="write an SVG too")
    return parser


def _grace(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(text)
    return seconds


def _simulate(args: argparse.Namespace) -> Report | Comparison:
    config = _config(args.config)
    other = _config(args.compare) if args.compare else None
    policy = _policy(args.settings, args.queue)
    try:
        trace = read_trace(_read(args.trace))
        later = _later(trace, Path(args.trace).parent)
    except PaiError as error:
        raise _Wrong(args.trace, error) from error
    rules = Rules(policy, args.grace, args.estimates, later, other)
    if other is None:
        return _played(config, trace, rules, args)
    one = _played(config, trace, rules, args)
    two = _played(other, trace, replace(rules, elsewhere=config), args, on=args.compare)
    return Comparison(configs=(args.config, args.compare), reports=(one, two))


def _played(config: ClusterConfig, trace: Trace, rules: Rules, args: argparse.Namespace, *, on: str = "") -> Report:
    """``on`` names the configuration where it is not the one that everybody thinks of."""
    try:
        return replay(config, trace, rules)
    except PaiError as error:
        message = f"on {on}: {error.message}" if on else error.message
        raise _Wrong(args.trace, DocumentError(message, errors=error.errors, hint=error.hint)) from error


def _config(file: str) -> ClusterConfig:
    try:
        return read_config(_read(file))
    except PaiError as error:
        raise _Wrong(file, error) from error


def _policy(settings: str | None, options: list[str]) -> Policy:
    try:
        return read_policy(settings, options)
    except PaiError as error:
        raise _Wrong(settings or "--queue", error) from error


def _later(trace: Trace, beside: Path) -> dict[str, ClusterConfig]:
    """The configurations that the trace goes over to. Raises DocumentError at the lines that name unreadable ones."""
    found: dict[str, ClusterConfig] = {}
    faults: list[Fault] = []
    for event, source in trace.lines:
        if not isinstance(event, NewConfig) or event.file in found:
            continue
        try:
            found[event.file] = read_config(_read(str(beside / event.file)))
        except PaiError as error:
            first = error.errors[0] if error.errors else Fault()
            place = f" (line {first.line})" if first.line else ""
            faults.append(source.fault("file", f"{event.file}: {error.message}{place}", first.hint or error.hint))
    if faults:
        message = f"the trace names configurations that cannot be used: {faults[0].message}"
        raise DocumentError(message, errors=faults, hint=faults[0].hint)
    return found


def _read(file: str) -> str:
    """The text of a file. Raises DocumentError for one that cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{file} is not UTF-8 text (byte {error.start})"
        raise DocumentError(message, hint="Save it as UTF-8.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DocumentError(f"cannot read {file}: {reason}", hint="Check its path and rights.") from error


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        hint = "Name a file in a directory that you may write to."
        raise _Wrong(file, DocumentError(f"cannot write {file}: {error.strerror}", hint=hint)) from error
