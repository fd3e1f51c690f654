"""Submitting under a name of its own when the document's name is taken."""

from __future__ import annotations

import re
from typing import Final

from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import ClientError, NameTaken
from jupyter_pai.wire_types import JobDetail
from pai_backend.model.text import Text

MAX_TRIES = 1000
_NUMBERED: Final = re.compile(r"(.*?)(?:_([1-9]\d{0,2}))?", re.DOTALL)
"""A name and the number that a clone gave it; a longer one, such as a year, is part of the name."""


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
    return await _numbered(client, document, wanted, 2, filename=filename, address=address)


async def clone(client: AsyncClient, job: JobDetail, name: str | None = None) -> JobDetail:
    """Submit a job's document again; without ``name`` under its own with the next free number (``train_2``).

    Raises ClientError for another user's document with secrets, and what :meth:`AsyncClient.submit` raises.
    """
    source = await client.source(job["uid"])
    if source.is_masked:
        raise ClientError(
            Text("The secrets in the document of {id} are masked.", id=job["id"]),
            code="InvalidParametersError",
            hint=Text("Save it (`pai config {id}`), type them in, and submit that.", id=job["id"]),
        )
    if name is not None:
        return await client.submit(source.data, name=name)
    stem, number = _NUMBERED.fullmatch(job["name"]).groups()  # type: ignore[union-attr]  # it matches every name
    return await _numbered(client, source.data, stem, int(number or 1) + 1)


async def _numbered(
    client: AsyncClient,
    document: bytes,
    stem: str,
    first: int,
    *,
    filename: str | None = None,
    address: str | None = None,
) -> JobDetail:
    for number in range(first, first + MAX_TRIES):
        try:
            return await client.submit(document, name=f"{stem}_{number}", filename=filename, address=address)
        except NameTaken:
            continue
    raise NameTaken(
        Text("{stem} and {max_tries} names made from it are taken.", stem=stem, max_tries=MAX_TRIES),
        hint="Choose one with --name.",
    )
