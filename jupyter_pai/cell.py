"""What a verb shows in a notebook: text and log below the cell, and its result as the cell's value."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.errors import ClientError
from jupyter_pai.language import tr
from jupyter_pai.log_text import cut_bytes, incremental_decoder
from jupyter_pai.shown import CellFailure, JobFailed, ServiceLink, ShownText
from jupyter_pai.sync import Client
from jupyter_pai.widgets.job_view import JobView
from jupyter_pai.wire_types import JobDetail, Ticket


def _say(text: str) -> None:
    """Text below the cell, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


class LineKeeper:
    """Text that comes in pieces, and lines of others that may stand between its lines but not within one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._has_begun = False
        self._held = ""

    def write(self, text: str) -> None:
        """Say a piece of the text."""
        whole, newline, rest = text.rpartition("\n")
        if newline and self._held:
            text, self._held = f"{whole}\n{self._held}{rest}", ""
        if text:
            self._say(text)
            self._has_begun = bool(rest)

    def between(self, line: str) -> None:
        """Say a line, once the text is between two of its own."""
        if self._has_begun:
            self._held += line
        else:
            self._say(line)

    def close(self) -> None:
        """Say what was held back: the text has ended."""
        if self._held:
            held, self._held = self._held, ""
            self._say(f"\n{held}")


@dataclass(frozen=True)
class MagicCell(Output):
    """Keeps the result of one verb. Failures end the cell: they are raised, as CellFailure or JobFailed."""

    as_json: bool = False
    in_cell = True
    _results: list[object] = field(default_factory=list)
    _decoder: codecs.IncrementalDecoder = field(default_factory=incremental_decoder)
    _log: LineKeeper = field(default_factory=lambda: LineKeeper(_say))

    @property
    def value(self) -> object:
        """The value of the cell: a view or link, or all text that is there to show; None when there is nothing."""
        if len(self._results) == 1 and not isinstance(self._results[0], str):
            return self._results[0]
        return ShownText("\n\n".join(map(str, self._results))) if self._results else None

    def show(self, value: object) -> None:
        """Keep what shows itself."""
        self._results.append(value)

    def result(self, value: object, text: str) -> None:
        """Keep the text."""
        self._results.append(ShownText(text))

    def job(self, client: Client, job: JobDetail) -> None:
        """Keep a live view."""
        self._results.append(JobView(client.api.endpoint, job))

    def ticket(self, client: Client, ticket: Ticket, address: str) -> None:
        """Keep a link."""
        self._results.append(ServiceLink(ticket, client.api.endpoint.url, address))

    def content(self, data: bytes) -> None:
        """Keep the text that the bytes are."""
        self._results.append(ShownText(data.decode(errors="replace")))

    def json_line(self, value: object, indent: int | None = None) -> None:
        """No cell asks for JSON."""
        raise AssertionError("a cell shows no JSON")

    def progress(self, text: str) -> None:
        """Show a line; behind the line of the log that has begun, if one has."""
        self._log.between(f"{text}\n")

    def raw(self, data: bytes, first: int = 0) -> None:
        """Show a piece of a log; a character that it has only a part of waits for the next piece."""
        self._log.write(self._decoder.decode(data[cut_bytes(data) if first else 0 :]))

    def awaited(self, client: Client, job: JobDetail) -> None:
        """Show the view now, and let it be the value at the end."""
        view = JobView(client.api.endpoint, job, show_log=False)
        view.show_once()
        self._results.append(view)

    def given_up(self, job: str) -> None:
        """End the cell."""
        self._log.close()
        raise CellFailure(
            tr("No longer waiting; the job keeps running. Stop it with %pai stop {job}", job=job)
        ) from None

    def ended(self, job: JobDetail) -> None:
        """End the cell when the job has not succeeded."""
        self._log.close()
        if job["state"] != "SUCCEEDED":
            raise JobFailed(render.verdict(job))
        for shown in self._results:
            if isinstance(shown, JobView):
                shown.wait()

    def agreed(self, act: str, otherwise: str) -> bool:
        """End the cell, which cannot be asked."""
        raise CellFailure(
            "\n\n".join(
                [*map(str, self._results), tr("{otherwise} Give --yes to {act}.", otherwise=tr(otherwise), act=act)]
            )
        )

    def error(self, error: ClientError, *, source: str = "", name: str = "") -> None:
        """End the cell."""
        self._log.close()
        raise CellFailure(render.error_text(error, source=source, name=name)) from None
