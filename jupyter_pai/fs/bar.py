"""A progress bar on standard error, or below a notebook's cell; nothing where it could not move."""

from __future__ import annotations

from typing import Any


class ProgressBar:
    """tqdm's, which knows terminals and notebooks. ``shown`` is whether there is one at all."""

    def __init__(self, *, shown: bool, notebook: bool = False) -> None:
        self._shown, self._notebook = shown, notebook
        self._bar: Any = None

    def begin(self, total: int | None) -> None:
        """Bytes to come; None when not known."""
        if not self._shown:
            return
        if self._notebook:
            from tqdm.auto import tqdm  # widgets in a kernel, text in a terminal's IPython
        else:
            from tqdm import tqdm
        self._bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1000, leave=False)

    def advance(self, size: int) -> None:
        """More bytes are there, or fewer when some are sent again."""
        if self._bar is not None:
            self._bar.update(size)

    def say(self, text: str) -> None:
        """A line beside the bar."""
        import sys

        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr)  # noqa: T201 - messages before the bar

    def close(self) -> None:
        """Take it away."""
        if self._bar is not None:
            self._bar.close()
