"""Writes the statements of the schema when it is imported: warm processes do so once for all that they fork."""

from __future__ import annotations

from pai_backend.store.migrate import creation

creation("sqlite")
