"""The audit: its events, and checking that none was changed, put in or taken out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import cast

from jupyter_pai.client import AsyncClient
from jupyter_pai.streams import decoded
from jupyter_pai.wire_types import AuditChain, AuditEventWire, AuditPlace
from pai_backend.model.text import Text

BEGINNING: AuditPlace = {"position": 0, "hash": "0" * 64}
"""What stands before the first event."""
_PATH = "/api/v2/audit"
_PAGE = 10_000


class Broken(ValueError):
    """The events are no chain; the message says from which on."""


class ChainCheck:
    """Follows the chain, event after event, as ``docs/audit.md`` says."""

    def __init__(self, start: AuditPlace | None, wanted: Iterable[AuditPlace] = ()) -> None:
        """``start``: what the first event follows; None: the first event is taken as it is, for what is cut out.

        ``wanted``: places that the chain must pass.
        """
        self.last, self.checked = start, 0
        self._wanted = {each["position"]: each["hash"] for each in wanted}
        if start is not None:
            self._pass(start)

    def add(self, event: AuditEventWire) -> None:
        """The next event. Raises Broken."""
        position, last = event["position"], self.last
        if last is None and position == 1:
            last = BEGINNING
        if last is not None:
            if position != last["position"] + 1:
                raise Broken(
                    Text(
                        "Event {position} follows event {last}: what was between is missing.",
                        position=position,
                        last=last["position"],
                    )
                )
            if hash_of(event, last["hash"]) != event["hash"]:
                raise Broken(
                    Text(
                        "Event {position} or the one before was changed: its hash is not that of its fields.",
                        position=position,
                    )
                )
        self.last = {"position": position, "hash": event["hash"]}
        self.checked += 1
        self._pass(self.last)

    def end(self) -> None:
        """All events have been added. Raises Broken when the chain ends before a place that it must pass."""
        if self._wanted:
            reached = 0 if self.last is None else self.last["position"]
            missing = min(self._wanted)
            raise Broken(
                Text(
                    "Event {missing} must be there and is not: the events go up to {reached}.",
                    missing=missing,
                    reached=reached,
                )
            )

    def _pass(self, place: AuditPlace) -> None:
        wanted = self._wanted.pop(place["position"], place["hash"])
        if wanted != place["hash"]:
            raise Broken(
                Text(
                    "Event {position} is not the one that was there; all before may be changed.",
                    position=place["position"],
                )
            )


def hash_of(event: AuditEventWire, before: str) -> str:
    """The hash that an event must have after the one with the hash ``before``."""
    fields = {name: value for name, value in event.items() if name != "hash"}
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(before.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


async def page(api: AsyncClient, **query: str | int | None) -> list[AuditEventWire]:
    """Events, the newest first; the oldest first with ``after``."""
    answer = await api.request("GET", _PATH, query=query)
    return cast(dict[str, list[AuditEventWire]], decoded(answer.body))["data"]


async def chain(api: AsyncClient) -> AuditChain:
    """Where the chain begins and ends. Raises Denied when the caller is no administrator."""
    return cast(AuditChain, decoded((await api.request("GET", f"{_PATH}/chain")).body))


async def every(api: AsyncClient, after: int, **query: str | int | None) -> AsyncIterator[list[AuditEventWire]]:
    """All events after a position, some thousand at a time, the oldest first."""
    while found := await page(api, **query, after=after, limit=_PAGE):
        yield found
        after = found[-1]["position"]


async def verify(api: AsyncClient, wanted: Iterable[AuditPlace] = ()) -> ChainCheck:
    """Check all events of a backend, and that they end as it sealed them. Raises Broken, Denied.

    ``wanted``: places of the chain that were noted before.
    """
    ends = await chain(api)
    given = [*wanted, ends["head"], *([ends["sealed"]] if ends["sealed"] is not None else [])]
    agreed: dict[int, str] = {}
    for place in given:
        if agreed.setdefault(place["position"], place["hash"]) != place["hash"]:
            raise Broken(
                Text("Event {position} has two hashes: the end of the chain was changed.", position=place["position"])
            )
    if ends["sealed"] is None and ends["head"]["position"]:
        raise Broken(
            Text("The end is not sealed. After an upgrade the next event seals it; else the seal was removed.")
        )
    root = ends["root"]
    check, is_cut = ChainCheck(root, [place for place in given if place["position"] >= root["position"]]), False
    async for some in every(api, root["position"]):
        for event in some:
            check.add(event)
            is_cut |= event["type"] == "audit.cut" and event["subject"] == str(root["position"])
    check.end()
    if root["position"] and not is_cut:
        raise Broken(
            Text(
                "The chain begins after event {position}, and no event tells that it was cut there.",
                position=root["position"],
            )
        )
    return check
