"""What the repositories of one store share: reads, writes in transactions, and the keys of what is sealed.

A repository is a class with the calls of one subject: plain values in, plain values out, one transaction a call. Its
module holds the SQL. :class:`~pai_backend.store.sql.Store` has one of each.
"""

from __future__ import annotations

from pai_backend.store.database import Database
from pai_backend.store.keyring import KeyRing
from pai_backend.store.writer import Writer


class Repository:
    """Calls of one subject."""

    def __init__(self, database: Database, writer: Writer, ring: KeyRing) -> None:
        self._database, self._writer, self._ring = database, writer, ring

    async def _text(self, sealed: bytes) -> str:
        """A text that was sealed."""
        return (await self._ring.open(sealed)).decode()
