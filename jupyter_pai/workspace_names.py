"""Workspace names: calls about them, on a client, and their table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from urllib.parse import quote

from jupyter_pai.client import AsyncClient
from jupyter_pai.language import tr
from jupyter_pai.render import table
from jupyter_pai.streams import decoded
from jupyter_pai.wire_types import AddressWire

_ADDRESSES = "/api/v2/addresses"


async def addresses(api: AsyncClient) -> list[AddressWire]:
    """The caller's workspace names, in order."""
    answer = await api.request("GET", _ADDRESSES)
    return cast(dict[str, list[AddressWire]], decoded(answer.body))["data"]


async def release(api: AsyncClient, name: str) -> None:
    """Release one. Raises NotFound, and Denied while a job that has not ended holds it."""
    await api.request("DELETE", f"{_ADDRESSES}/{quote(name, safe='')}")


def addresses_text(names: Sequence[AddressWire]) -> str:
    """All of them: who holds each, and where it answers."""
    rows: list[tuple[str, str, str, str, str]] = []
    for each in names:
        urls = [f"{service['label']} {service['url']}" for service in each["services"]] or [""]
        rows.append((each["name"], each["job"] or "-", each["state"] or "-", f"ssh {each['name']}", urls[0]))
        rows += [("", "", "", "", url) for url in urls[1:]]
    return (
        table(("NAME", "HELD BY", "STATE", "SSH", "SERVICES"), rows) if rows else tr("No workspace name is reserved.")
    )
