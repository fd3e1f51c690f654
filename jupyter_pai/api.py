"""Jobs from plain Python: submit, follow, reach and stop them, blocking or on an event loop.

::

    from jupyter_pai.api import Client

    with Client() as pai:
        job = pai.submit("train.yaml")
        job.wait()
        print(job.logs())

:class:`Client` finds the backend as ``pai`` does (``PAI_URL``, ``client.toml``, else the private one, which it starts).
:class:`AsyncClient` has the same calls as coroutines. Each call raises a :class:`~jupyter_pai.errors.ClientError` when
it fails. What ``%pai submit`` gives back is a :class:`Job`, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Self

from jupyter_pai import client, submitting, sync
from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.errors import BackendAway, InvalidDocument
from jupyter_pai.following import observe
from jupyter_pai.log_text import incremental_decoder
from jupyter_pai.wire import FINAL_STATES, LOG_PAGE_BYTES
from jupyter_pai.wire_types import JobDetail, Summary, TaskMetrics, Why
from pai_backend.model.text import Text

MOST_POINTS = 10_080
"""Samples of a task that are asked for: all that are kept."""

Document = str | bytes | Path | Mapping[str, object]
"""A job document: its text or bytes, the path of a file with it, or what is in it as a mapping."""


def document_bytes(document: Document) -> tuple[bytes, str | None]:
    """A document as it is submitted, and the name of its file. Text without a line break and ``{`` names a file.

    Raises InvalidDocument when the file cannot be read.
    """
    if isinstance(document, bytes):
        return document, None
    if isinstance(document, Mapping):
        return json.dumps(document, ensure_ascii=False, indent=2).encode(), None
    if isinstance(document, str) and ("\n" in document or document.lstrip().startswith("{")):
        return document.encode(), None
    path = Path(document).expanduser()
    try:
        return path.read_bytes(), path.name
    except OSError as error:
        raise InvalidDocument(
            Text("{document} cannot be read: {strerror}.", document=document, strerror=error.strerror),
            code="InvalidParametersError",
            hint="Check the file's name.",
        ) from error


class AsyncJob:
    """A job. ``detail`` is what was last heard of it, as ``docs/rest.md`` describes it."""

    def __init__(self, calls: client.AsyncClient, detail: JobDetail) -> None:
        self._calls = calls
        self.detail = detail

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.state}>"

    @property
    def uid(self) -> str:
        """Its own for ever, where a name may be another job's later."""
        return self.detail["uid"]

    @property
    def name(self) -> str:
        """The name that its owner gave it."""
        return self.detail["name"]

    @property
    def state(self) -> str:
        """WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED or FAILED, as last heard."""
        return self.detail["state"]

    @property
    def ended(self) -> bool:
        """Whether it has ended, as last heard."""
        return self.state in FINAL_STATES

    async def refresh(self) -> JobDetail:
        """Read everything about it from the backend. Raises NotFound when it was deleted."""
        self.detail = await self._calls.job(self.uid)
        return self.detail

    async def wait(self) -> JobDetail:
        """Wait until it has ended, and return how. Cancelling this leaves the job alone."""
        async for item in observe(self._calls, self.uid, log=False):
            if not isinstance(item, bytes):
                self.detail = item
        if not self.ended:
            raise BackendAway(Text("It is not known how {name} ended.", name=self.name))
        return self.detail

    async def logs(self, *, role: str | None = None, index: int | None = None, stream: str = "all") -> str:
        """All that a task has written until now; without ``role`` and ``index`` the first task.

        ``stream``: ``all``, ``stdout`` or ``stderr``.
        """
        read = partial(self._calls.log, self.uid, role=role, index=index, stream=stream)
        pieces = [await read()]
        while len(pieces[-1].data) >= LOG_PAGE_BYTES:  # what comes while this runs is for follow_logs
            pieces.append(await read(offset=pieces[-1].next))
        return b"".join(piece.data for piece in pieces).decode(errors="replace")

    async def follow_logs(
        self, *, role: str | None = None, index: int | None = None, stream: str = "all"
    ) -> AsyncIterator[str]:
        """What a task has written and writes, in pieces, until it has ended."""
        decoder = incremental_decoder()
        async for data in self._calls.follow_log(self.uid, role=role, index=index, stream=stream):
            if text := decoder.decode(data):
                yield text
        if rest := decoder.decode(b"", True):
            yield rest

    async def why(self) -> Why:
        """Why it waits, and what would start it now."""
        return await self._calls.why(self.uid)

    async def metrics(
        self, *, role: str | None = None, index: int | None = None, seconds: int | None = None
    ) -> list[TaskMetrics]:
        """GPUs, CPUs and memory that its tasks used in the last ``seconds``, a day by default; a task with its samples.

        ``pandas.DataFrame(job.metrics()[0]["samples"])`` is a table of the first task.
        """
        found = await self._calls.metrics(self.uid, role=role, index=index, seconds=seconds, points=MOST_POINTS)
        return list(found["tasks"])

    async def stop(self) -> None:
        """Ask it to stop. Asking again, or after its end, is fine."""
        await self._calls.stop(self.uid)

    async def document(self) -> str:
        """The document as it was submitted."""
        return (await self._calls.source(self.uid)).data.decode("utf-8-sig", "replace")

    async def open(self, label: str | None = None, *, role: str | None = None, index: int | None = None) -> str:
        """An address of a service that signs a browser in, once and within a minute; of the first without ``label``.

        It is the service's own where that leads to the backend from here, else the one below the backend's. Raises
        NotFound for no such service, and BackendAway when the service works at neither.
        """
        from jupyter_pai.addresses import address_of, service_label

        ticket = await self._calls.ticket(self.uid, service_label(self.detail, label), role=role, index=index)
        return await asyncio.to_thread(address_of, ticket, self._calls.endpoint)

    async def ssh(self, *, role: str | None = None, index: int | None = None) -> list[str]:
        """OpenSSH's command that logs in to a task; words may be put behind it, to run them there.

        Makes and registers the user's key. Raises ClientError when the task does not run.
        """
        return await asyncio.to_thread(_ssh_command, self._calls.endpoint, self.uid, role, index)

    async def clone(self, name: str | None = None) -> AsyncJob:
        """Submit its document again; without ``name`` under its name with a number behind (``train_2``)."""
        return AsyncJob(self._calls, await submitting.clone(self._calls, self.detail, name))


def _ssh_command(endpoint: Endpoint, job: str, role: str | None, index: int | None) -> list[str]:
    from jupyter_pai import access
    from jupyter_pai.connect.files import ssh_dir

    with sync.Client(endpoint) as calls:
        return access.reach(calls, job, ssh_dir(), role=role, index=index).command


class AsyncClient:
    """Jobs of one backend, on the event loop that it is made on. ``calls`` has the rest of the backend's interface."""

    def __init__(self, endpoint: Endpoint | None = None, *, calls: client.AsyncClient | None = None) -> None:
        self.calls = calls or client.AsyncClient(endpoint or resolve(start=True))

    async def submit(
        self,
        document: Document,
        *,
        name: str | None = None,
        fresh_name: bool = False,
        replace: bool = False,
        address: str | None = None,
    ) -> AsyncJob:
        """Submit a document; ``name`` and ``address`` (a workspace name) override the document's.

        When the name is taken: ``fresh_name`` appends a number, ``replace`` stops the job that has it. Raises
        InvalidDocument with every fault and its place, and NameTaken.
        """
        data, filename = document_bytes(document)
        work = submitting.submit(
            self.calls, data, name=name, filename=filename, fresh_name=fresh_name, replace=replace, address=address
        )
        return AsyncJob(self.calls, await work)

    async def job(self, name: str) -> AsyncJob:
        """A job by its name, alias or uid. Raises NotFound."""
        return AsyncJob(self.calls, await self.calls.job(name))

    async def jobs(
        self, *, state: str | None = None, keyword: str | None = None, gpu_type: str | None = None, limit: int = 100
    ) -> list[Summary]:
        """Summaries of jobs, newest first; ``keyword`` is a part of the name, the other two are comma lists."""
        return await self.calls.jobs(state=state, keyword=keyword, gpu_type=gpu_type, limit=limit)

    async def close(self) -> None:
        """Close what is open; no call may follow."""
        self.calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Job(sync.Blocking[AsyncJob]):
    """A job, with the calls of :class:`AsyncJob` as plain functions. Ctrl-C in :meth:`wait` leaves the job alone."""

    def __init__(self, calls: sync.Client, detail: JobDetail) -> None:
        super().__init__(calls.thread, AsyncJob(calls.api, detail))
        self._calls = calls

    def __repr__(self) -> str:
        return repr(self.api)

    @property
    def detail(self) -> JobDetail:
        """What was last heard of it, as ``docs/rest.md`` describes it."""
        return self.api.detail

    @property
    def uid(self) -> str:
        """Its own for ever, where a name may be another job's later."""
        return self.api.uid

    @property
    def name(self) -> str:
        """The name that its owner gave it."""
        return self.api.name

    @property
    def state(self) -> str:
        """WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED or FAILED, as last heard."""
        return self.api.state

    @property
    def ended(self) -> bool:
        """Whether it has ended, as last heard."""
        return self.api.ended

    refresh = sync.blocking(AsyncJob.refresh)
    wait = sync.blocking(AsyncJob.wait)
    logs = sync.blocking(AsyncJob.logs)
    follow_logs = sync.iterating(AsyncJob.follow_logs)
    why = sync.blocking(AsyncJob.why)
    metrics = sync.blocking(AsyncJob.metrics)
    stop = sync.blocking(AsyncJob.stop)
    document = sync.blocking(AsyncJob.document)
    open = sync.blocking(AsyncJob.open)
    ssh = sync.blocking(AsyncJob.ssh)

    def clone(self, name: str | None = None) -> Job:
        """Submit its document again; without ``name`` under its name with a number behind (``train_2``)."""
        return Job(self._calls, self.thread.run(self.api.clone(name)).detail)


class Client(sync.Blocking[AsyncClient]):
    """The calls of :class:`AsyncClient` as plain functions. May be shared by threads, and used in a running event loop.

    ``calls`` has the rest of the backend's interface, as a :class:`~jupyter_pai.sync.Client`. Close it, or use it as a
    context manager.
    """

    def __init__(self, endpoint: Endpoint | None = None) -> None:
        self.calls = sync.Client(endpoint or resolve(start=True))
        super().__init__(self.calls.thread, AsyncClient(calls=self.calls.api))

    def submit(
        self,
        document: Document,
        *,
        name: str | None = None,
        fresh_name: bool = False,
        replace: bool = False,
        address: str | None = None,
    ) -> Job:
        """As :meth:`AsyncClient.submit`."""
        work = self.api.submit(document, name=name, fresh_name=fresh_name, replace=replace, address=address)
        return Job(self.calls, self.thread.run(work).detail)

    def job(self, name: str) -> Job:
        """A job by its name, alias or uid. Raises NotFound."""
        return Job(self.calls, self.calls.job(name))

    jobs = sync.blocking(AsyncClient.jobs)

    def close(self) -> None:
        """End all calls; no call may follow."""
        self.calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
