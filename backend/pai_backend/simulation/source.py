"""Where a trace says something: a line of its text, and in it the column of a field."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pai_backend.model.errors import Fault

_DECODER = json.JSONDecoder(strict=False)
_GAP = re.compile(r"[\s:,{]*")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line: its 1-based number and its text."""

    number: int
    text: str

    def fault(self, path: str, message: str, hint: str = "") -> Fault:
        """What is wrong at a field, ``members[0].gpus`` for example; an empty path is the line as a whole."""
        return Fault(
            path=f"$.{path}" if path else "$",
            message=message,
            line=self.number,
            column=self._column(path),
            hint=hint,
        )

    def _column(self, path: str) -> int | None:
        """Where the outermost key of a path stands; of a field that is not there, where the line begins."""
        if not self.text:
            return None
        return self._columns().get(re.split(r"[.\[]", path)[0], len(self.text) - len(self.text.lstrip()) + 1)

    def _columns(self) -> dict[str, int]:
        """Columns of the keys of the object that the line is, as far as it is one."""
        found: dict[str, int] = {}
        at = _after_gap(self.text, 0)
        while self.text.startswith('"', at):
            try:
                key, after = _DECODER.raw_decode(self.text, at)
                _, end = _DECODER.raw_decode(self.text, _after_gap(self.text, after))
            except (ValueError, RecursionError):
                break  # the fault is that this is no JSON, and has its place already
            found.setdefault(key, at + 1)
            at = _after_gap(self.text, end)
        return found


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return at if gap is None else gap.end()
