"""Images of the machine that runs the tasks: the calls of ``pai images``, and the text of the list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.language import tr
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.wire_types import ImageList, ImageShown

PATH = "/api/v2/images"
SHORT = 12
"""Digits of an identity that are shown."""
REMOVE_TIMEOUT_S = 600.0
"""An image of many small files takes its time."""


async def images(api: AsyncClient) -> ImageList:
    """Those that the caller may see, the last used first."""
    return cast("ImageList", json.loads((await api.request("GET", PATH)).body))


async def remove(api: AsyncClient, image: str) -> None:
    """Remove one by its name or identity. Raises NotFound, Denied, ClientError when it is in use."""
    await api.request("DELETE", f"{PATH}/{quote(image, safe='')}", timeout_s=REMOVE_TIMEOUT_S)


def images_text(found: ImageList) -> str:
    """An image a line, and for administrators what all of them take."""
    if not found["data"]:
        return tr("There is no image that you ran a task with.")
    table = render.table(("IMAGE", "SIZE", "LAST USE", "TASKS", "STAYS"), [_row(each) for each in found["data"]])
    total, most = found["totalBytes"], found["mostBytes"]
    if total is None:
        return table
    if most is None:
        return f"{table}\n" + tr("Together: {total}; containers.images.most_bytes sets no limit.", total=_size(total))
    return f"{table}\n" + tr("Together: {total} of {most}.", total=_size(total), most=_size(most))


def _row(image: ImageShown) -> Sequence[object]:
    names = ", ".join(image["names"]) or image["id"][:SHORT]
    why = ", ".join(tr(_WORDS.get(each, each)) for each in image["kept"])
    return names, _size(image["sizeBytes"]), render.clock(image["usedAt"]) or "-", image["tasks"] or "-", why or "-"


_WORDS = {
    "in-use": Text("in use"),
    "runtime": Text("runtime"),
    "waiting": Text("a job waits"),
    "offered": Text("offered"),
    "not-fetched": Text("put here by hand"),
}


def _size(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
