"""The holder record of a local engine: a file below its root, changed under a lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pai_backend.engine.base import EngineError
from pai_backend.engine.holding import EngineHolder
from pai_backend.engine.local import layout
from pai_backend.engine.local.builder import replace_file
from pai_backend.engine.local.layout import HANDOVER_S, take_lock

Change = Callable[[EngineHolder | None], EngineHolder]


class HolderFile:
    """The record below one root. All methods block on the disk."""

    def __init__(self, root: Path) -> None:
        self._path = root / layout.HOLDER
        self._lock = root / layout.HOLDER_LOCK
        self.place = f"the task directory {root}"

    def read(self) -> EngineHolder | None:
        """The record; None when there is none. Raises EngineError."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{self._path} cannot be read: {error}") from None
        return EngineHolder.read(text, str(self._path))

    def change(self, change: Change, *, unreadable_is_none: bool = False) -> EngineHolder:
        """Write what ``change`` makes of the record, and return it. Raises what ``change`` raises, and EngineError."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = take_lock(self._lock, HANDOVER_S)
        except OSError as error:
            raise EngineError(f"{self._lock} cannot be used: {error.strerror or error}") from None
        if lock is None:
            raise EngineError(f"{self._lock} is held by another process")
        try:
            try:
                found = self.read()
            except EngineError:
                if not unreadable_is_none:
                    raise
                found = None
            made = change(found)
            replace_file(self._path, made.model_dump_json().encode())
            if found is None or found.identity != made.identity:  # heartbeats need not survive a power cut
                layout.sync_directory(str(self._path.parent))
            return made
        except OSError as error:
            raise EngineError(f"{self._path} cannot be written: {error.strerror or error}") from None
        finally:
            with suppress(OSError):
                os.close(lock)
