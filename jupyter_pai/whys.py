"""Why jobs wait, in the user's language: lists of jobs have the sentence in English only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jupyter_pai.errors import ClientError
from jupyter_pai.language import ENGLISH, language
from jupyter_pai.render import told_in_language

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.wire_types import JobDetail, Summary

MOST = 50
"""Waiting jobs that are asked about, the first of a list; those behind keep the English sentence."""
AT_ONCE = 8
"""Requests at a time."""


async def sentences(api: AsyncClient, jobs: Sequence[Summary | JobDetail]) -> Mapping[str, str]:
    """The reasons of waiting jobs by uid. Empty in English; a job whose reason cannot be asked is left out."""
    if language() == ENGLISH:
        return {}
    import asyncio

    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(uid: str) -> str:
        async with turns:
            try:
                waiting = (await api.why(uid))["waiting"]
            except ClientError:  # it has gone meanwhile, or is another user's
                return ""
        return told_in_language(waiting["texts"])["sentence"] if waiting is not None else ""

    uids = [job["uid"] for job in jobs if job["state"] == "WAITING" and job["why"]][:MOST]
    found = await asyncio.gather(*map(ask, uids))
    return {uid: said for uid, said in zip(uids, found, strict=True) if said}
