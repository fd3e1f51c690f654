"""A process that uses a store, for tests that need a second one. Run as a script: ``COMMAND URL``.

``submit``: submit jobs for ever, printing each name once it is acknowledged.
``open``: wait for a line, open the store, print ``open``.
``once``: open the store, print ``ready``, then submit one job for each line read, named by it, and print it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import sys

from pai_backend.model.ids import JobUid
from pai_backend.store.base import NewEvent
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job
from tests.support.sealing import KEYS

SUBMITTED = NewEvent("job.submitted", {"by": "alice"})


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _submit(store: Store, name: str) -> None:
    job = make_job(name, uid=JobUid(f"j{hashlib.sha256(name.encode()).hexdigest()[:16]}"))
    await store.jobs.submit(job, f"document of {name}".encode(), f"{name}.json", "application/json", [SUBMITTED])
    _say(name)


async def _submit_for_ever(url: str) -> None:
    store = Store(url, KEYS)
    await store.open()
    numbers = itertools.count()

    async def client() -> None:
        for number in numbers:
            await _submit(store, f"job-{number}")

    await asyncio.gather(*(client() for _ in range(4)))


async def _open(url: str) -> None:
    await asyncio.to_thread(sys.stdin.readline)
    store = Store(url, KEYS)
    await store.open()
    _say("open")
    await store.aclose()


async def _once(url: str) -> None:
    store = Store(url, KEYS)
    await store.open()
    _say("ready")
    while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await _submit(store, name)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run({"submit": _submit_for_ever, "open": _open, "once": _once}[sys.argv[1]](sys.argv[2]))
