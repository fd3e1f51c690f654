"""What pods of others hold of nodes, as the controller has counted it: for processes that do not follow those pods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlalchemy import Connection, delete, insert, select

from pai_backend.model.node import Others
from pai_backend.store.repository import Repository
from pai_backend.store.tables import other_holders as table


def put(conn: Connection, found: Mapping[str, Others]) -> None:
    """Make this what is held; nodes that are not named are not held."""
    if found == get(conn):
        return
    conn.execute(delete(table))
    if found:
        conn.execute(insert(table), [{"node": name, **dict(held)} for name, held in sorted(found.items())])


def get(conn: Connection) -> dict[str, Others]:
    """What is held, by node."""
    return {
        row.node: Others(cpus=row.cpus, memory_mb=row.memory_mb, gpus=row.gpus) for row in conn.execute(select(table))
    }


class OtherHolders(Repository):
    """What pods of others hold of nodes."""

    async def put(self, found: Mapping[str, Others]) -> None:
        """Make this what is held; nodes that are not named are not held."""
        await self._writer.run(partial(put, found=found), announce=False)

    async def get(self) -> dict[str, Others]:
        """What is held, by node."""
        return await self._database.read(get)
