"""Jobs of all contexts as one list."""

from __future__ import annotations

import asyncio

from jupyter_pai import contexts
from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint, client_file, from_file, of_context, private_endpoint
from jupyter_pai.errors import BackendAway, ClientError
from jupyter_pai.sync import LoopThread
from jupyter_pai.wire_types import Summary

Found = list[tuple[str, Summary]]


def jobs_everywhere(
    *, state: str | None, keyword: str | None, gpu_type: str | None, limit: int | None
) -> tuple[Found, dict[str, ClientError]]:
    """Jobs with their contexts, newest first and ``limit`` at most, and why others have none, by context.

    All are asked at once. The private backend has none while it does not run. Raises ClientError when no backend
    answers of those that were asked, or the file of a context is broken.
    """
    endpoints = {row.name: place for row in contexts.rows() if (place := _endpoint(row.name)) is not None}

    async def ask(endpoint: Endpoint) -> list[Summary] | ClientError:
        client = AsyncClient(endpoint)
        try:
            return await client.jobs(state=state, keyword=keyword, gpu_type=gpu_type, limit=limit)
        except ClientError as error:
            return error
        finally:
            client.close()

    async def ask_all() -> list[list[Summary] | ClientError]:
        return await asyncio.gather(*map(ask, endpoints.values()))

    thread = LoopThread()
    try:
        answers = dict(zip(endpoints, thread.run(ask_all()), strict=True))
    finally:
        thread.close()
    failures = {name: answer for name, answer in answers.items() if isinstance(answer, ClientError)}
    if failures and len(failures) == len(answers):
        raise next(iter(failures.values()))
    found = [(name, job) for name, answer in answers.items() if not isinstance(answer, ClientError) for job in answer]
    found.sort(key=lambda each: each[1]["submissionTime"], reverse=True)
    return found[:limit], failures


def _endpoint(context: str) -> Endpoint | None:
    """Of a row of contexts; None for the private backend while it does not run."""
    if context == client_file().name:
        return from_file(client_file())
    try:
        return of_context(context) or private_endpoint(start=False)
    except BackendAway:
        return None
