"""Templates at the backend: documents that jobs begin with."""

from __future__ import annotations

import locale
from collections.abc import Sequence
from typing import cast
from urllib.parse import quote

from jupyter_pai import render, streams
from jupyter_pai.client import AsyncClient
from jupyter_pai.wire_types import TemplateWire

PATH = "/api/v2/templates"


def _one(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


async def templates(client: AsyncClient) -> list[TemplateWire]:
    """All that the user may begin with."""
    answer = streams.decoded((await client.request("GET", PATH)).body)
    return cast(dict[str, list[TemplateWire]], answer)["data"]


async def document(client: AsyncClient, name: str) -> bytes:
    """The text of a template. Raises NotFound."""
    return bytes((await client.request("GET", _one(name))).body)


async def save(client: AsyncClient, name: str, text: bytes, filename: str | None) -> None:
    """Keep a document as the user's own template; its secrets are masked."""
    query = {"filename": filename}
    await client.request("PUT", _one(name), query=query, body=text, media_type="text/plain")


async def delete(client: AsyncClient, name: str) -> None:
    """Delete a template of the user's own. Raises NotFound."""
    await client.request("DELETE", _one(name))


def templates_text(found: Sequence[TemplateWire]) -> str:
    """A table of them, in the user's language where a template has it."""
    language = (locale.getlocale()[0] or "")[:5]
    rows = []
    for each in found:
        words = each["words"].get(language) or each["words"]["en"]
        rows.append((each["name"], each["origin"], words["title"], words["about"]))
    return render.table(("NAME", "OF", "TITLE", "ABOUT"), rows)
