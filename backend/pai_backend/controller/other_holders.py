"""Tells other processes what pods of others hold of nodes, which the controller alone follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from pai_backend.model.errors import Unavailable
from pai_backend.model.node import Node, Others
from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

LOOK_S = 2.0


def held_by_others(nodes: Mapping[str, Node]) -> dict[str, Others]:
    """What others hold, of the nodes where they hold anything."""
    return {name: node.others for name, node in nodes.items() if node.others != Others()}


async def tell_other_holders(store: Store, nodes: Callable[[], Mapping[str, Node] | None]) -> None:
    """Write what others hold whenever that has changed, for ever. ``nodes``: None as long as they are not listed."""
    told: dict[str, Others] | None = None
    while True:
        known = nodes()
        found = told if known is None else held_by_others(known)
        if found is not None and found != told:
            try:
                await store.other_holders.put(found)
                told = found
            except Unavailable as error:
                log.warning("what pods of others hold is not written: %s", error.message)
        await asyncio.sleep(LOOK_S)
