"""One HTTP session with one API server: a request in, its answer or a typed error out. Nothing is repeated here.

TLS, proxies and authentication are the library's; the bodies stay the JSON they are.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp

from pai_backend.engine.kubernetes.access import Access, Credentials, find_cluster
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.counts import RequestCounts
from pai_backend.engine.kubernetes.failures import AccessError, FailedRequest, Unreachable, Untrusted, refusal
from pai_backend.engine.kubernetes.library import library
from pai_backend.engine.kubernetes.proxies import proxy_for

if TYPE_CHECKING:
    from kubernetes_asyncio.client.configuration import Configuration

CONNECT_S = 10.0  # for a connection with its TLS handshake
OPEN_S = 30.0  # for the head of a stream's answer
LINE_MAX = 16 * 1024 * 1024  # bytes of one event: etcd takes objects of 1.5 MiB, and JSON may grow sixfold
READ_MAX = 2 * 1024 * 1024  # bytes that wait to be read of an answer: more than an object of etcd
ERROR_MAX = 65536  # bytes read of the answer to a refused stream

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Ask:
    """A request as it goes over the wire. ``body`` is its JSON, encoded by the client."""

    request: FailedRequest
    method: str
    query: Query = ()
    body: Mapping[str, Any] | Sequence[Any] | None = None
    content_type: str = "application/json"
    timeout_s: float = 30.0


class LineTooLong(Exception):
    """A line of a stream exceeds LINE_MAX: this is no stream of events."""


class LineStream:
    """The lines of an answer that goes on."""

    def __init__(self, response: aiohttp.ClientResponse, request: FailedRequest) -> None:
        self._response = response
        self._request = request

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Complete lines as they come, several at once when they came at once; ends when the server ends it.

        The rest of a line that was cut is left out. Raises Unreachable when the connection breaks, LineTooLong.
        """
        pending = bytearray()
        try:
            async for chunk in self._response.content.iter_any():
                pending += chunk
                end = pending.rfind(b"\n", len(pending) - len(chunk))
                if end >= 0:
                    lines = bytes(pending[:end]).split(b"\n")
                    del pending[: end + 1]
                    yield [line for line in lines if line.strip()]
                elif len(pending) > LINE_MAX:
                    raise LineTooLong(f"{self._request}: a line of more than {LINE_MAX} bytes")
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(self._request, error) from None


class ApiClient:
    """A session with the API server. Make it with :func:`connect`, close it with :meth:`aclose`."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._api = _opened(credentials.configuration)
        self._identity = self._files()
        self.counts = RequestCounts()
        self.time = ClusterTime()

    def __repr__(self) -> str:
        return f"ApiClient({self.server})"

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._credentials.configuration.host)

    @property
    def namespace(self) -> str:
        """The namespace to work in when nothing else is said."""
        return self._credentials.namespace

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session itself, for WebSockets; give it the headers of :meth:`authorization`."""
        session = self._api.pool_manager
        assert isinstance(session, aiohttp.ClientSession)
        return session

    @property
    def route(self) -> tuple[str | None, str | None]:
        """Proxy, and the name that the server's certificate must bear where that is not its own; for WebSockets."""
        return self._api.proxy or None, self._credentials.configuration.tls_server_name or None

    async def authorization(self) -> dict[str, str]:
        """The headers that say who we are; secret. Raises AccessError when credentials cannot be renewed."""
        await self._credentials.current()
        if self._identity != self._files():
            await self._reopen()
        headers: dict[str, str] = {"User-Agent": "jupyter-pai"}
        settings = await self._credentials.configuration.auth_settings()
        return {**headers, **{each["key"]: each["value"] for each in settings.values() if each["value"]}}

    async def renew_credentials(self) -> bool:
        """Get new credentials after a 401; False when that was done just now. Raises AccessError."""
        return await self._credentials.refused()

    async def send(self, ask: Ask) -> bytes:
        """The whole answer. Raises Refused and Unreachable, with their kinds, and AccessError."""
        headers = {**await self.authorization(), "Accept": "application/json", "Content-Type": ask.content_type}
        timeout = aiohttp.ClientTimeout(total=ask.timeout_s, sock_connect=min(CONNECT_S, ask.timeout_s))
        try:
            response = await self._request(ask, headers, timeout)
            async with response:
                answer: bytes = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            self.counts.add(ask.request.verb, "unreachable")
            raise _unreachable(ask.request, error) from None
        self._judge(ask.request, response, answer)
        return answer

    @asynccontextmanager
    async def stream(self, ask: Ask) -> AsyncIterator[LineStream]:
        """An answer that goes on until it is left or ends. Raises as :meth:`send` when it begins."""
        headers = {**await self.authorization(), "Accept": "application/json"}
        # No time limit on reading: how long silence may last is decided by the caller, who knows what should come.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        try:
            async with asyncio.timeout(OPEN_S):
                response = await self._request(ask, headers, timeout)
        except (aiohttp.ClientError, OSError) as error:
            self.counts.add(ask.request.verb, "unreachable")
            raise _unreachable(ask.request, error) from None
        async with response:
            self._judge(ask.request, response, b"" if response.ok else await _error_body(response, ask.request))
            try:
                yield LineStream(response, ask.request)
            finally:
                response.close()  # not back into the pool: the server would go on writing

    async def aclose(self) -> None:
        """Close all connections; streams that are open break."""
        await self._api.close()

    def _files(self) -> tuple[str | None, str | None, str | None]:
        """What a session reads once, when it is made. The library names files by what is in them."""
        used = self._credentials.configuration
        return used.ssl_ca_cert, used.cert_file, used.key_file

    async def _reopen(self) -> None:
        """A new session, for a certificate that was renewed. What is open on the old one is cut."""
        old, self._identity = self._api, self._files()
        self._api = _opened(self._credentials.configuration)
        await old.close()

    async def _request(
        self, ask: Ask, headers: dict[str, str], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        response = await self._api.request(
            ask.method,
            self.server + ask.request.path,
            query_params=list(ask.query),
            headers=headers,
            body=ask.body,
            _preload_content=False,
            _request_timeout=limits,
        )
        assert isinstance(response, aiohttp.ClientResponse)
        self.time.heard(response.headers.get("Date"))
        return response

    def _judge(self, request: FailedRequest, response: aiohttp.ClientResponse, body: bytes) -> None:
        """Count an answer, and raise what it means when it is an error."""
        self.counts.add(request.verb, str(response.status))
        if response.status >= 400:
            raise refusal(request, response.status, body, response.headers.get("Retry-After"), datetime.now(UTC))


def _opened(configuration: Configuration) -> Any:
    """The library's client, with a session that looks for a proxy once.

    The library's own session asks two threads before each request what the environment and ``~/.netrc`` say now; and
    with a password for the server in the latter it refuses to send the token that a kubeconfig has.
    """
    api = library().rest_client(configuration)
    own = api.pool_manager
    api.proxy = api.proxy or proxy_for(str(configuration.host))
    api.pool_manager = aiohttp.ClientSession(connector=own.connector, read_bufsize=READ_MAX)
    own.detach()
    return api


async def connect(access: Access) -> ApiClient:
    """A client of the cluster that the settings mean. Raises AccessError naming place, reason and remedy.

    No request is made: a cluster that is away is no reason not to start.
    """
    credentials = await find_cluster(access)
    try:
        return ApiClient(credentials)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or type(error).__name__
        raise AccessError(f"{credentials.place}: a certificate or key in it cannot be used: {reason}") from None


async def _error_body(response: aiohttp.ClientResponse, request: FailedRequest) -> bytes:
    try:
        async with asyncio.timeout(OPEN_S):
            return await response.content.read(ERROR_MAX)
    except (aiohttp.ClientError, OSError) as error:
        raise _unreachable(request, error) from None


def _unreachable(request: FailedRequest, error: aiohttp.ClientError | OSError) -> Unreachable:
    """Say what broke in our own words: those of aiohttp may hold a proxy's URL with its password."""
    sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Unreachable(f"{request}: the proxy answers {error.status}", sent=False)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or "it cannot be verified"
        words = f"the certificate of the API server is not accepted: {reason}; check the authority in the kubeconfig"
        return Untrusted(f"{request}: {words}")
    if isinstance(error, TimeoutError):
        words = "the API server did not answer in time"
    elif isinstance(error, aiohttp.ClientConnectorError):
        words = f"the API server cannot be reached: {error.strerror or type(error.os_error).__name__}"
    else:
        words = "the connection to the API server was cut"
    return Unreachable(f"{request}: {words}", sent=sent)
