"""What a verb prints: text for people, or one JSON value for machines, never both on stdout."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jupyter_pai import render
from jupyter_pai.errors import ClientError
from jupyter_pai.language import tr
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import JobDetail, Ticket


@dataclass(frozen=True)
class Output:
    """Where results go. With ``as_json`` stdout carries JSON alone and people read stderr.

    A notebook's :class:`~jupyter_pai.cell.MagicCell` shows the same in a cell.
    """

    as_json: bool
    in_cell: ClassVar[bool] = False

    def result(self, value: object, text: str) -> None:
        """The result: as JSON, or as text."""
        if self.as_json:
            self.json_line(value, indent=2)
        else:
            print(text)

    def job(self, client: Client, job: JobDetail) -> None:
        """A job as the result."""
        self.result(job, render.job_page(job))

    def ticket(self, client: Client, ticket: Ticket, address: str) -> None:
        """A sign-in as the result; ``address`` is the one that works from here."""
        self.result(ticket, address)

    def content(self, data: bytes) -> None:
        """Bytes of a document or file as the result, as they are."""
        self.raw(data)

    def json_line(self, value: object, indent: int | None = None) -> None:
        """One JSON value."""
        print(json.dumps(value, ensure_ascii=False, indent=indent), flush=True)

    def progress(self, text: str) -> None:
        """Something to know meanwhile; on stderr."""
        print(text, file=sys.stderr, flush=True)

    def raw(self, data: bytes, first: int = 0) -> None:
        """Bytes as they are, on stdout; ``first`` is their offset in what they are a piece of."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def awaited(self, client: Client, job: JobDetail) -> None:
        """A job was submitted, and its end is waited for from now on."""
        for line in render.warning_lines(job["warnings"]):
            self.progress(line)

    def given_up(self, job: str) -> None:
        """The user has interrupted the waiting."""
        self.progress("\n" + tr("No longer waiting; the job keeps running. Stop it with `pai stop {job}`.", job=job))

    def ended(self, job: JobDetail) -> None:
        """The end that was waited for."""
        if self.as_json:
            self.json_line(job, indent=2)
        else:
            self.progress(render.verdict(job))

    def agreed(self, act: str, otherwise: str) -> bool:
        """Whether the user answers yes to an act; if not, ``otherwise`` is said.

        Raises ClientError where no answer can come: without a terminal, or as JSON.
        """
        question = Text("{act}?", act=f"{act[:1].upper()}{act[1:]}")
        if self.as_json or not sys.stdin.isatty():
            raise ClientError(
                Text("{question} This needs confirmation.", question=question),
                code="InvalidParametersError",
                hint="Give --yes.",
            )
        print(f"{tr(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
        if not agreed:
            self.progress(tr(otherwise))
        return agreed

    def error(self, error: ClientError, *, source: str = "", name: str = "") -> None:
        """A failure: its body on stdout as JSON, or its text on stderr."""
        if self.as_json:
            self.json_line(error.body(), indent=2)
        else:
            print(f"pai: {render.error_text(error, source=source, name=name)}", file=sys.stderr)


def abandon_stdout() -> None:
    """The reader of stdout is gone (``pai logs | head``): keep the interpreter's last flush from failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
