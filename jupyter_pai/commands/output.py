"""What a verb prints: text for people, or one JSON value for machines, never both on stdout."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from jupyter_pai.errors import ClientError
from jupyter_pai.render import error_text


@dataclass(frozen=True)
class Output:
    """Where results go. With ``as_json`` stdout carries JSON alone and people read stderr."""

    as_json: bool

    def result(self, value: object, text: str) -> None:
        """The result: as JSON, or as text."""
        if self.as_json:
            self.json_line(value, indent=2)
        else:
            print(text)

    def json_line(self, value: object, indent: int | None = None) -> None:
        """One JSON value."""
        print(json.dumps(value, ensure_ascii=False, indent=indent), flush=True)

    def progress(self, text: str) -> None:
        """Something to know meanwhile; on stderr."""
        print(text, file=sys.stderr, flush=True)

    def raw(self, data: bytes) -> None:
        """Bytes as they are, on stdout."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def agreed(self, question: str) -> bool:
        """Whether the user answers yes. Raises ClientError where no answer can come: without a terminal, or as JSON."""
        if self.as_json or not sys.stdin.isatty():
            raise ClientError(f"{question} This needs confirmation.", code="InvalidParametersError", hint="Give --yes.")
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def error(self, error: ClientError, *, source: str = "", name: str = "") -> None:
        """A failure: its body on stdout as JSON, or its text on stderr."""
        if self.as_json:
            self.json_line(error.body(), indent=2)
        else:
            print(f"pai: {error_text(error, source=source, name=name)}", file=sys.stderr)


def abandon_stdout() -> None:
    """Nobody reads stdout any more (``pai logs | head``): keep the interpreter's last flush from failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
