"""Submitting under a name of its own when the document's name is taken."""

from __future__ import annotations

from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import NameTaken
from jupyter_pai.wire_types import JobDetail

MAX_TRIES = 1000


async def submit(
    client: AsyncClient,
    document: bytes,
    *,
    name: str | None,
    filename: str | None,
    fresh_name: bool = False,
    replace: bool = False,
    address: str | None = None,
) -> JobDetail:
    """Submit, with ``replace`` in the place of the job that has the name or the workspace name ``address``.

    With ``fresh_name`` a taken name gets the first free number behind it (``train``, ``train_2``, …).
    Raises what :meth:`AsyncClient.submit` raises; NameTaken only without ``fresh_name``.
    """
    try:
        return await client.submit(document, name=name, filename=filename, replace=replace, address=address)
    except NameTaken:
        if not fresh_name:
            raise
    wanted = name or (await client.validate(document, filename=filename))["name"] or "job"
    for number in range(2, MAX_TRIES):
        try:
            return await client.submit(document, name=f"{wanted}_{number}", filename=filename, address=address)
        except NameTaken:
            continue
    raise NameTaken(f"{wanted} and {MAX_TRIES} names made from it are taken.", hint="Choose one with --name.")
