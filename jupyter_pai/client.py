"""The backend's REST interface as typed calls: :class:`AsyncClient`, and :class:`Client` for plain code.

There is one body for each call, the asynchronous one. :class:`Client` runs those bodies on a loop of
its own in a daemon thread, so it works in a kernel (whose loop runs already), in a widget's thread
and in the command line alike.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote, urlencode

from tornado.httpclient import HTTPError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import HTTPStreamClosedError, HTTPTimeoutError, SimpleAsyncHTTPClient

from jupyter_pai import streams
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import BackendAway, from_wire
from jupyter_pai.log_times import TimedLines
from jupyter_pai.wire import ACTIVE_STATES, LOG_TIMED_BYTES
from jupyter_pai.wire_types import (
    Announced,
    AnnouncementWire,
    BookingList,
    BookingWire,
    BudgetList,
    BudgetWire,
    ClusterUseWire,
    Event,
    Info,
    JobDetail,
    JobMetrics,
    KeyWire,
    LogTimes,
    MovedJobs,
    PlacedEvent,
    PriceListWire,
    Released,
    Said,
    SshAnswer,
    Summary,
    TaskUseRows,
    Ticket,
    Trial,
    Usage,
    Validation,
    Why,
)
from pai_backend.model.text import Text

MEDIA_TYPE = "application/vnd.jupyter-pai+json"
"""Asks the backend for the shapes of ``wire_types``; without it, it answers in OpenPAI's."""

REQUEST_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_RESERVATIONS = "/api/v2/reservations"
_BUDGETS = "/api/v2/budgets"
_PRICES = "/api/v2/prices"
_ANNOUNCEMENT = "/api/v2/announcement"
CONCURRENT_REQUESTS = 64  # tornado's default of 10 would queue a relay's requests behind slow ones

Query = Mapping[str, str | int | None]


@dataclass(frozen=True)
class LogChunk:
    """A piece of a log; ``first`` and ``next`` are byte offsets from the first byte ever written."""

    data: bytes
    first: int
    next: int


@dataclass(frozen=True)
class DocumentSource:
    """A submitted document, byte for byte."""

    data: bytes
    media_type: str
    is_masked: bool = False
    """Whether its secrets are masked, since it is another user's."""


def away(endpoint: Endpoint, reason: str) -> BackendAway:
    """The error for an address without an answer, or with one that is not to be trusted."""
    hint = Text("Start the private one with `pai backend start`, or check PAI_URL.")
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        hint = Text(
            "Check the name in PAI_URL. Where an authority of your own has signed its certificate, set SSL_CERT_FILE "
            "to a file with that one's certificate."
        )
    return BackendAway(
        Text("The backend at {url} does not answer: {reason}.", url=endpoint.url, reason=reason), hint=hint
    )


def target(path: str, query: Query | None = None) -> str:
    """A path with its query; entries that are None are left out."""
    given = {key: str(value) for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def job_path(job: str, rest: str = "") -> str:
    """Path of a job; any name works (``user~name``, alias, uid, own name) because it is quoted."""
    return f"/api/v2/jobs/{quote(job, safe='~')}{rest}"


class AsyncClient:
    """Calls of the backend. Every one raises a :class:`~jupyter_pai.errors.ClientError` when it fails.

    No call is repeated by itself, except ``submit``, and that the ``follow_`` streams go on after a broken connection.
    """

    def __init__(self, endpoint: Endpoint, *, assistant: str = "") -> None:
        """``assistant``: the name of a program that acts for the user by itself; the audit has it with its changes."""
        self.endpoint = endpoint
        self._assistant = assistant
        self._http = SimpleAsyncHTTPClient(
            force_instance=True, max_clients=CONCURRENT_REQUESTS, max_buffer_size=MAX_ANSWER_BYTES
        )

    def close(self) -> None:
        """Close what is open; no call may follow. Call it on the client's loop."""
        self._http.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | None = None,
        media_type: str = "",
        timeout_s: float = REQUEST_TIMEOUT_S,
        also: tuple[int, ...] = (),
        key: str = "",
    ) -> HTTPResponse:
        """Any request; returns the answer when it is a success or its status one of ``also``.

        ``key`` is by which it is recognised when it is sent again. Raises ClientError otherwise.
        """
        headers = {"Authorization": f"Bearer {self.endpoint.token}", "Accept": MEDIA_TYPE}
        if media_type:
            headers["Content-Type"] = media_type
        if key:
            headers["Idempotency-Key"] = key
        if self._assistant:
            headers["X-Pai-Assistant"] = self._assistant
        request = HTTPRequest(
            self.endpoint.url + target(path, query),
            method=method,
            headers=headers,
            body=body,
            allow_nonstandard_methods=True,
            connect_timeout=CONNECT_TIMEOUT_S,
            request_timeout=timeout_s,
            follow_redirects=False,
        )
        try:
            response = await self._http.fetch(request, raise_error=False)
        except (OSError, HTTPError) as error:
            raise away(self.endpoint, streams.reason_of(error)) from error
        if response.code == 599 or isinstance(response.error, HTTPStreamClosedError | HTTPTimeoutError | OSError):
            raise away(self.endpoint, streams.reason_of(response.error))
        if response.code >= 300 and response.code not in also:
            raise from_wire(response.code, streams.decoded(response.body))
        return response

    async def _json(self, method: str, path: str, query: Query | None = None, value: object = None) -> object:
        body = None if value is None else json.dumps(value).encode()
        media_type = "" if value is None else "application/json"
        response = await self.request(method, path, query=query, body=body, media_type=media_type)
        return streams.decoded(response.body)

    async def info(self) -> Info:
        """Which backend this is, and its addresses."""
        return cast(Info, await self._json("GET", "/api/v2/info"))

    async def submit(
        self,
        document: bytes,
        *,
        name: str | None = None,
        filename: str | None = None,
        replace: bool = False,
        address: str | None = None,
        secrets_of: str | None = None,
    ) -> JobDetail:
        """Submit a document as it is; ``name`` and ``address`` override the document's.

        Its masked values are those of the job ``secrets_of``. With ``replace`` it takes the place of the job that has
        the name or the workspace name, which is stopped. It has a key of its own, so that it is sent once more, and
        makes one job, when no answer comes. Raises InvalidDocument, NameTaken.
        """
        query: Query = {
            "name": name,
            "filename": filename,
            "replace": "true" if replace else None,
            "address": address,
            "secretsOf": secrets_of,
        }
        send = partial(
            self.request,
            "POST",
            "/api/v2/jobs",
            query=query,
            body=document,
            media_type="text/plain",
            key=secrets.token_hex(16),
        )
        try:
            response = await send()
        except BackendAway as error:
            if error.status:  # it has answered
                raise
            response = await send()
        return cast(JobDetail, streams.decoded(response.body))

    async def validate(self, document: bytes, *, filename: str | None = None) -> Validation:
        """Read a document and change nothing; an invalid one is an answer here, not an exception."""
        response = await self.request(
            "POST", "/api/v2/validate", query={"filename": filename}, body=document, media_type="text/plain"
        )
        return cast(Validation, streams.decoded(response.body))

    async def trial(self, document: bytes) -> Trial:
        """What would become of a document's job if it were submitted now; nothing is submitted."""
        response = await self.request("POST", "/api/v2/trial", body=document, media_type="text/plain")
        return cast(Trial, streams.decoded(response.body))

    async def jobs(
        self,
        *,
        state: str | None = None,
        username: str | None = None,
        vc: str | None = None,
        keyword: str | None = None,
        gpu_type: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> list[Summary]:
        """A page of the list, newest first; ``state`` and ``gpu_type`` are comma lists."""
        query: Query = {
            "state": state,
            "username": username,
            "vc": vc,
            "keyword": keyword,
            "gpuType": gpu_type,
            "offset": offset,
            "limit": limit,
        }
        return cast(list[Summary], await self._json("GET", "/api/v2/jobs", query))

    async def job(self, job: str) -> JobDetail:
        """Everything about one job. Raises NotFound."""
        return cast(JobDetail, await self._json("GET", job_path(job)))

    async def stop(self, job: str) -> None:
        """Ask a job to stop; asking again, or after its end, is fine. Raises NotFound."""
        await self._json("PUT", job_path(job, "/executionType"), value={"value": "STOP"})

    async def start(self, job: str) -> Said:
        """Let a job that has ended run again; one that goes on is left alone.

        Raises NotFound, and ClientError for one that is being stopped or deleted, or may not run now.
        """
        return cast(Said, await self._json("PUT", job_path(job, "/executionType"), value={"value": "START"}))

    async def delete(self, job: str) -> Said:
        """Delete a job that has ended, for good. Raises NotFound, and ClientError for one that has not ended."""
        return cast(Said, await self._json("DELETE", job_path(job)))

    async def release(self, job: str, tasks: Sequence[str] = ()) -> Released:
        """Release tasks kept for debugging, by their names (``role-index``); of all when none is named.

        Asking again is fine. Raises NotFound.
        """
        query: Query = {"task": ",".join(tasks) or None}
        return cast(Released, await self._json("POST", job_path(job, "/release"), query, value={}))

    async def move(
        self, job: str, *, before: str | None = None, after: str | None = None, to: str | None = None
    ) -> MovedJobs:
        """Let a waiting job stand before or after another one in its queue, or at an end: ``to`` first or last.

        Asking again is fine. Raises NotFound, and ClientError for jobs that do not wait in one queue.
        """
        places = {"before": before, "after": after, "to": to}
        value = {name: place for name, place in places.items() if place is not None}
        return cast(MovedJobs, await self._json("POST", job_path(job, "/move"), value=value))

    async def why(self, job: str) -> Why:
        """Why a job waits, and what would start it now. Raises NotFound."""
        return cast(Why, await self._json("GET", job_path(job, "/why")))

    async def metrics(
        self,
        job: str,
        *,
        role: str | None = None,
        index: int | None = None,
        seconds: int | None = None,
        points: int | None = None,
    ) -> JobMetrics:
        """GPUs, CPUs and memory that tasks of a job used in the last ``seconds``; a day by default. Raises NotFound."""
        query: Query = {"role": role, "index": index, "seconds": seconds, "points": points}
        return cast(JobMetrics, await self._json("GET", job_path(job, "/metrics"), query))

    async def task_uses(self, *, points: int = 0) -> TaskUseRows:
        """Running tasks that the caller may see, and what they use now; with ``points`` of the last hour."""
        return cast(TaskUseRows, await self._json("GET", "/api/v2/cluster/tasks", {"points": points}))

    async def announcement(self) -> AnnouncementWire | None:
        """What administrators announce to all users now; None: nothing."""
        return cast(Announced, await self._json("GET", _ANNOUNCEMENT))["announcement"]

    async def announce(
        self, text: str, *, lifetime_s: int | None = None, no_starts_from: datetime | None = None
    ) -> None:
        """Announce this to all users in place of it, until it is ended or for so many seconds. Raises Denied.

        With ``no_starts_from`` it is a maintenance: from then on no job starts.
        """
        begins = None if no_starts_from is None else no_starts_from.isoformat()
        await self._json("PUT", _ANNOUNCEMENT, value={"text": text, "lifetimeS": lifetime_s, "noStartsFrom": begins})

    async def end_announcement(self) -> None:
        """Announce nothing. Raises Denied."""
        await self.request("DELETE", _ANNOUNCEMENT)

    async def usage(self, *, by: Sequence[str], since: datetime | None = None, until: datetime | None = None) -> Usage:
        """GPU and CPU hours and their cost; of 30 days without ``since``.

        Told apart by some of user, group, vc, type, day, job and quota.
        """
        times = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at is not None}
        return cast(Usage, await self._json("GET", "/api/v2/usage", {"by": ",".join(by), **times}))

    async def prices(self) -> PriceListWire:
        """What an hour of each GPU type costs, and from when on."""
        return cast(PriceListWire, await self._json("GET", _PRICES))

    async def set_price(self, price: Mapping[str, Any]) -> PriceListWire:
        """Set a price, in the words of ``PUT /api/v2/prices``; returns all. Raises Denied."""
        return cast(PriceListWire, await self._json("PUT", _PRICES, value=dict(price)))

    async def reservations(self) -> BookingList:
        """Reservations in virtual clusters that the caller may use or manages, those of the last 30 days included."""
        return cast(BookingList, await self._json("GET", _RESERVATIONS))

    async def reserve(self, reservation: Mapping[str, Any]) -> BookingWire:
        """Make a reservation, in the words of ``POST /api/v2/reservations``. Raises Denied."""
        return cast(BookingWire, await self._json("POST", _RESERVATIONS, value=dict(reservation)))

    async def remove_reservation(self, reservation: str) -> None:
        """Remove the reservation of this id. Raises Denied."""
        await self.request("DELETE", f"{_RESERVATIONS}/{quote(reservation, safe='')}")

    async def budgets(self) -> BudgetList:
        """Budgets that concern the caller, and what of each is used; all for an administrator."""
        return cast(BudgetList, await self._json("GET", _BUDGETS))

    async def set_budget(self, budget: Mapping[str, Any]) -> BudgetWire:
        """Set a budget, in the words of ``PUT /api/v2/budgets``. Raises Denied."""
        return cast(BudgetWire, await self._json("PUT", _BUDGETS, value=dict(budget)))

    async def remove_budget(self, budget: str) -> None:
        """Remove the budget of this id. Raises Denied."""
        await self.request("DELETE", f"{_BUDGETS}/{quote(budget, safe='')}")

    async def cluster_use(self) -> ClusterUseWire:
        """Virtual clusters, nodes and who uses them, as far as the caller may see it."""
        return cast(ClusterUseWire, await self._json("GET", "/api/v2/cluster/use"))

    async def source(self, job: str) -> DocumentSource:
        """The submitted document, byte for byte."""
        response = await self.request("GET", job_path(job, "/config"))
        media_type = response.headers.get("Content-Type", "application/octet-stream")
        return DocumentSource(response.body, media_type, "X-Pai-Masked" in response.headers)

    async def events(self, job: str, *, after: int = 0) -> list[Event]:
        """History of a job behind sequence number ``after``."""
        answer = await self._json("GET", job_path(job, "/events"), {"after": after})
        return cast(dict[str, list[Event]], answer)["data"]

    async def log(
        self,
        job: str,
        *,
        role: str | None = None,
        index: int | None = None,
        stream: str = "all",
        offset: int = 0,
        limit: int | None = None,
        lines: TimedLines | None = None,
    ) -> LogChunk:
        """What a task has written from byte ``offset`` on (negative: from the end).

        With ``lines`` its data is stamped with the times of its lines, and its offsets are those of the log.
        """
        query: Query = {"role": role, "index": index, "stream": stream, "offset": offset, "limit": limit}
        response = await self.request("GET", job_path(job, "/logs"), query=query)
        first = int(response.headers.get("X-Pai-Offset", "0"))
        data = response.body
        chunk = LogChunk(data, first, int(response.headers.get("X-Pai-Next", first + len(data))))
        if lines is None or not data:
            return chunk
        for at in range(first, first + len(data), LOG_TIMED_BYTES):
            limit = min(LOG_TIMED_BYTES, first + len(data) - at)
            asked: Query = {**query, "offset": at, "limit": limit}
            told = cast(LogTimes, await self._json("GET", job_path(job, "/logs/times"), asked))
            lines.learn(told["times"], first)
        return replace(chunk, data=lines.stamped(data, first))

    async def ssh(self, job: str) -> SshAnswer:
        """Gateway, login names and known_hosts lines of a job."""
        return cast(SshAnswer, await self._json("GET", job_path(job, "/ssh")))

    async def ticket(self, job: str, label: str, *, role: str | None = None, index: int | None = None) -> Ticket:
        """A one-time sign-in for a browser, good for 60 seconds. Raises NotFound."""
        path = job_path(job, f"/services/{quote(label, safe='')}/ticket")
        return cast(Ticket, await self._json("POST", path, {"role": role, "index": index}, value={}))

    async def keys(self) -> list[KeyWire]:
        """The caller's registered SSH public keys."""
        answer = await self._json("GET", "/api/v2/keys")
        return cast(dict[str, list[KeyWire]], answer)["data"]

    async def add_key(self, public_key: str, comment: str = "") -> KeyWire:
        """Register a public key; registering the same one again is fine."""
        value = {"publicKey": public_key, "comment": comment}
        return cast(KeyWire, await self._json("POST", "/api/v2/keys", value=value))

    async def delete_key(self, fingerprint: str) -> None:
        """Remove a public key. Raises NotFound."""
        await self._json("DELETE", f"/api/v2/keys/{quote(fingerprint, safe='')}")

    async def active_count(self) -> int:
        """How many of the jobs that the caller may see have not ended."""
        query: Query = {"state": ",".join(ACTIVE_STATES), "limit": 1, "withTotalCount": "true"}
        return cast(dict[str, int], await self._json("GET", "/api/v2/jobs", query))["totalCount"]

    def follow_events(self, job: str, *, after: int = 0) -> AsyncIterator[Event]:
        """History and then news of a job, each event once and in order, until its final one."""
        return streams.job_events(self, job_path(job, "/events/stream"), after)

    def follow_all_events(self, *, position: str | None = None) -> AsyncIterator[PlacedEvent]:
        """Events of all jobs that the caller may see; never ends by itself."""
        return streams.all_events(self, "/api/v2/events/stream", position)

    def follow_log(
        self,
        job: str,
        *,
        role: str | None = None,
        index: int | None = None,
        stream: str = "all",
        offset: int = 0,
        lines: TimedLines | None = None,
    ) -> AsyncIterator[bytes]:
        """What a task writes from byte ``offset`` on (negative: from the end), until the task has ended.

        With ``lines`` each line begins with the time at which it came.
        """
        return streams.log(self, job, role=role, index=index, stream=stream, offset=offset, lines=lines)
