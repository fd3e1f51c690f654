"""``…/pai/contexts`` of the Jupyter server: the user's backends, and which of them the panel uses."""

from __future__ import annotations

import asyncio

from typing_extensions import TypedDict

from jupyter_pai import contexts
from jupyter_pai.answering import AnsweringHandler, member
from jupyter_pai.contexts import ContextWire
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS


class ContextList(TypedDict):
    """All of them. ``fixedBy``: the variable that says which is used here, whatever is chosen; empty: none."""

    contexts: list[ContextWire]
    fixedBy: str


class ContextsHandler(AnsweringHandler):
    """Lists backends and changes between them."""

    @authenticated
    @authorized("read", JOBS)
    async def get(self) -> None:
        """The backends."""
        await self.answer(asyncio.to_thread(_listed))

    @authenticated
    @authorized("write", JOBS)
    async def put(self) -> None:
        """Use the one of this ``name`` from now on, as ``pai context use``; answers as GET."""
        await self.answer(self._used())

    async def _used(self) -> ContextList:
        name = member(self.asked(), "name", str, "")
        await asyncio.to_thread(contexts.use, name)
        return await asyncio.to_thread(_listed)


def _listed() -> ContextList:
    return {"contexts": [row.wire() for row in contexts.rows()], "fixedBy": contexts.fixed_by()}
