"""What all handlers share: who is calling, the request id, limits of bodies, one way to say what went wrong."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from http.client import responses
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

import tornado.web
import tornado.websocket
from pydantic import BaseModel, ValidationError

from pai_backend.access.proxy.visitor import same_host
from pai_backend.api.context import ApiContext
from pai_backend.api.errors import bad_body, bad_query, translate
from pai_backend.api.tls import HSTS
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.auth.users import User
from pai_backend.engine.base import EngineError
from pai_backend.model.audit import BEGUN, AuditEvent
from pai_backend.model.digits import whole_number
from pai_backend.model.errors import (
    Forbidden,
    InvalidParameters,
    LockedOut,
    MethodNotAllowed,
    MustChangePassword,
    NoSuchPath,
    PaiError,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from pai_backend.model.scope import Scope
from pai_backend.model.text import Text
from pai_backend.model.validation import nearest
from pai_backend.store import deeds
from pai_backend.store.audit import TOKEN_ID
from pai_backend.store.deeds import Deed

log = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)
ALL_VERBS = frozenset({"get", "head", "post", "put", "delete"})
BODY_BYTES = 65_536  # JSON bodies of ours are short; documents have their own limit
DRAIN_BYTES = 67_108_864  # a larger body is not read to its end: the connection closes
STRANGERS_BODY_S = 20.0
LOOK_S = 1.0
"""Seconds between two checks of a caller whose request goes on; an ended right counts within 2 s."""
_NOT_LET = (Forbidden, LockedOut, MustChangePassword, Unauthorized)
"""Refusals that the audit has: of who asks, not of what is asked for."""
DOCUMENT_TYPES = ("application/json", "application/yaml")
_ASSISTANT = re.compile(r"[ -~]{1,64}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class BaseHandler(tornado.web.RequestHandler):
    """A handler whose failures all look alike and whose caller is known before its verb runs."""

    public = False
    sets_passwords = False
    """Whether it answers sessions that are only for setting another password, too."""
    path_is_secret = False
    """Whether the path may hold a token, which the audit must not have."""
    scope: Scope | None = None
    """What a limited token must be allowed; None: READ for GET and JOBS for all else."""
    users_own: frozenset[str] = frozenset()
    """Verbs that concern all that the user has: not for tokens that are limited to the jobs of one virtual cluster."""
    user = User("")
    _checked_at = 0.0

    def initialize(self) -> None:
        """Called by tornado first of all; takes over the caller's request id or makes one."""
        self.path_args: list[str] = []  # tornado sets it only when it can read all of them; failures are told it
        given = self.request.headers.get("X-Request-Id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

    @property
    def ctx(self) -> ApiContext:
        """The surroundings that the application was made with."""
        return cast(ApiContext, self.settings["ctx"])

    def set_default_headers(self) -> None:
        """No caching of answers that change, no guessing of types."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        # Whatever an answer holds is data: it is no page, runs nothing, and no page shows it in a frame.
        self.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
        self.set_header("X-Frame-Options", "DENY")
        if self.request.protocol == "https":
            self.set_header("Strict-Transport-Security", HSTS)
        self.clear_header("Server")

    async def prepare(self) -> None:
        """Find out who is calling. Raises Unauthorized, Forbidden, LockedOut, TooManyRequests."""
        self.set_header("X-Request-Id", self.request_id)
        if not self.public:
            self.user = await self._caller()
            self._require_scope()
            self._checked_at = time.monotonic()
            self.ctx.limits.requests.take(self.user.name)

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """The scope that a limited token needs for a verb."""
        return cls.scope or (Scope.READ if verb in ("get", "head") else Scope.JOBS)

    def _require_scope(self) -> None:
        """Raise Forbidden for a token that is limited to other scopes: before any of the body is taken."""
        if self.user.must_change_password and not self.sets_passwords:
            raise MustChangePassword(
                Text("This password was set by an administrator; set one of your own first."),
                hint=Text("`pai password` does it."),
            )
        verb = (self.request.method or "").lower()
        if self.user.within and verb in self.users_own:
            raise Forbidden(
                Text(
                    "This token is for jobs of virtual cluster {within}; this is about all that its user has.",
                    within=self.user.within,
                ),
                hint=Text("Sign in, or use a token that is not limited to one: `pai token add NAME` makes it."),
            )
        scope = self.scope_of(verb)
        if not self.user.may(scope) and not self.user.must_change_password:
            raise Forbidden(
                Text("This token needs the scope {scope} for this.", scope=scope),
                hint=Text(
                    "It has: {scopes}. `pai token add --scope {scope}` makes another.",
                    scopes=", ".join(sorted(self.user.scopes)),
                    scope=scope,
                ),
            )

    async def require_still(self) -> None:
        """Check the caller again, unless that was done in the last second: a body may take hours to arrive.

        Raises Unauthorized, LockedOut.
        """
        if self.public or time.monotonic() - self._checked_at < LOOK_S:
            return
        user = await self.ctx.identity.of_digest(self.user.token)
        if user != self.user:
            raise Unauthorized(Text("The token is no longer valid."), hint=Text("Sign in again."))
        self._checked_at = time.monotonic()

    @asynccontextmanager
    async def audited(self, type_: str, path: Sequence[str], *, told_by_store: bool) -> AsyncIterator[None]:
        """What happens within it goes into the audit: whatever it writes with the first write, a refusal afterwards.

        ``type_``: empty for what is not for the audit. ``path``: the variable parts of the path.
        """
        if not type_:
            yield
            return
        deed = Deed(
            type_,
            self.ctx.clock(),
            by=self.user.name,
            source=self.request.remote_ip or "",
            token=self.user.token[:TOKEN_ID],
            request=self.request_id,
            subject="" if self.path_is_secret else "/".join(path),
            assistant=self._assistant(),
            told_by_store=told_by_store,
        )
        try:
            with deeds.doing(deed):
                yield
        except _NOT_LET as refusal:
            if deed.by and not deed.written:
                await self._note(deed.event(refusal.code))
            raise
        if not deed.written and not deed.told_by_store:
            await self.ctx.store.audit.add(deed.event())

    def _assistant(self) -> str:
        """The program that acts for the user by itself, if it says so."""
        given = self.request.headers.get("X-Pai-Assistant", "").strip()
        return given if _ASSISTANT.fullmatch(given) else ""

    def say(self, detail: str) -> None:
        """Tell the audit more about what is done."""
        deed = deeds.current()
        if deed is not None:
            deed.detail = detail

    async def begin_deed(self, detail: str = "") -> None:
        """Write down what is about to be done, where it cannot be written together with it. Raises Unavailable."""
        deed = deeds.current()
        if deed is not None:
            deed.detail = detail
            with deeds.doing(None):
                await self.ctx.store.audit.add(deed.event(BEGUN))
            deed.written = True

    async def _note(self, refused: AuditEvent) -> None:
        """Write down a refusal; a trouble of the database does not change what is answered."""
        try:
            await self.ctx.store.audit.add(refused)
        except Unavailable as error:
            log.warning("the audit lacks that %s was refused %s: %s", refused.by, refused.type, error.message)

    def begin_verb(self) -> None:
        """Called first in every verb; nothing to do here."""

    async def _caller(self) -> User:
        header = self.request.headers.get("Authorization", "")
        user = await self.ctx.identity.of_header(header) if header else None
        if user is None:
            self.set_header("WWW-Authenticate", "Bearer")
            message = Text("The token is not known.") if header else Text("This needs a token.")
            raise Unauthorized(
                message, hint=Text("Send the header `Authorization: Bearer TOKEN` with a token of this backend.")
            )
        return user

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        """Called by tornado for parts of the path and for parameters; parts of a path never hold control characters."""
        text = super().decode_argument(value, name)
        if name is None and not text.isprintable():
            raise tornado.web.HTTPError(404)
        return text

    def parse_query(self, model: type[M]) -> M:
        """The parameters of the URL as a model. Raises InvalidParameters, also for unknown and repeated ones."""
        given = self.request.query_arguments
        names = {field.alias or name for name, field in model.model_fields.items()}
        for name, values in given.items():
            if len(values) > 1:
                raise InvalidParameters(
                    Text("The parameter {name} is given twice.", name=name), hint=Text("Give it once.")
                )
            if name not in names:
                like = nearest(name, names)
                hint = (
                    Text("Did you mean {like}?", like=like)
                    if like
                    else Text("Known are: {names}.", names=", ".join(sorted(names)))
                )
                raise InvalidParameters(Text("The parameter {name} is not known.", name=name), hint=hint)
        try:
            return model.model_validate({name: self.get_query_argument(name, strip=False) for name in given})
        except ValidationError as error:
            raise bad_query(error, model) from None

    def wants_ours(self) -> bool:
        """Whether the client asks for our shape of an answer that OpenPAI has in a shape of its own."""
        self.set_header("Vary", "Accept")
        ranges = self.request.headers.get("Accept", "").split(",")
        return any(each.partition(";")[0].strip().lower() == MEDIA_TYPE for each in ranges)

    def write_json(self, answer: BaseModel, media_type: str = "application/json") -> None:
        """Write a model as JSON."""
        self.set_header("Content-Type", media_type)
        self.write(answer.model_dump_json(by_alias=True).encode())

    def write_made(self, answer: bytes) -> None:
        """Write JSON that was made before."""
        self.set_header("Content-Type", "application/json")
        self.write(answer)

    def write_document(self, text: bytes, kind: str) -> None:
        """Write what a user has submitted: as data of a kind of ours, never as a page of our origin."""
        self.set_header("Content-Type", kind if kind in DOCUMENT_TYPES else "application/octet-stream")
        self.set_header("Content-Disposition", "attachment")
        self.write(text)

    def compute_etag(self) -> str | None:
        """No ETag: answers are not cached, and hashing them costs time."""
        return None

    def log_exception(
        self, typ: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Log a mistake of ours once, with the request id its caller was told; users' mistakes not at all."""
        if isinstance(value, EngineError):
            log.warning("%s %s: %s [%s]", self.request.method, self.request.path, value, self.request_id)
        elif value is not None and not isinstance(value, (PaiError, tornado.web.HTTPError)):
            info = (type(value), value, tb)
            log.error("%s %s failed [%s]", self.request.method, self.request.path, self.request_id, exc_info=info)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Called by tornado with the exception of a failed request; answers in our one shape."""
        error: BaseException | None = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, tornado.web.HTTPError):
            error = self._ours(error)
        status, body = translate(error, self.request_id)
        self.set_status(status)
        self.set_header("X-Request-Id", self.request_id)
        if isinstance(error, Unauthorized):
            self.set_header("WWW-Authenticate", "Bearer")
        self.write_json(body)
        self.finish()

    def _ours(self, error: tornado.web.HTTPError) -> PaiError | None:
        """Tornado's own refusals in our words; None for one that is a mistake of ours."""
        if error.status_code == 405:
            allowed = ", ".join(self.verbs())
            self.set_header("Allow", allowed)
            return MethodNotAllowed(
                Text("{method} is not possible here.", method=self.request.method),
                hint=Text("Possible: {allowed}.", allowed=allowed),
            )
        if error.status_code == 404:
            return no_such_path(self.request.path)
        if 400 <= error.status_code < 500:
            reason = responses.get(error.status_code, "malformed")
            return InvalidParameters(
                Text("The request cannot be read: {reason}.", reason=reason),
                hint=Text("Check the URL and the headers."),
            )
        return None

    @classmethod
    def verbs(cls) -> list[str]:
        """The methods this handler has."""
        base = tornado.web.RequestHandler
        return [verb for verb in cls.SUPPORTED_METHODS if getattr(cls, verb.lower()) is not getattr(base, verb.lower())]


@tornado.web.stream_request_body
class ApiHandler(BaseHandler):
    """A handler of plain requests. Its body is bounded while it arrives, not after.

    A refusal that is known before the body has come is kept until it has: tornado closes a connection that is
    answered early without saying so, and the client's next request on it would be lost.
    """

    def initialize(self) -> None:
        """As the base; the body is empty so far."""
        super().initialize()
        self._body = bytearray()
        self._refusal: PaiError | None = None
        self._body_is_read = False

    def body_limit(self) -> int:
        """Bytes a body may have."""
        return BODY_BYTES

    def drain_bytes(self) -> int:
        """Bytes that are read of a body at all."""
        return DRAIN_BYTES

    async def prepare(self) -> None:
        """As the base, but refuse later. Raises TooLarge for a body that is not worth being read to its end."""
        connection: Any = self.request.connection
        connection.set_max_body_size(self.drain_bytes())
        length = self.request.headers.get("Content-Length", "")
        size = whole_number(length) if length else 0
        if size is None or size > self.drain_bytes():
            raise self._too_large_error()
        try:
            await super().prepare()
            if not self.public:
                await self.ctx.live_rules.refresh()
        except PaiError as error:
            self._refusal = error
        if self.public or self._refusal is not None:  # who is not known does not keep a connection busy
            connection.set_body_timeout(STRANGERS_BODY_S)

    def begin_verb(self) -> None:
        """To be called first in every verb, when the body has come. Raises what ``prepare`` kept."""
        self._body_is_read = True
        if self._refusal is not None:
            raise self._refusal

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """As the base; says so when the connection ends with this answer."""
        if not self._body_is_read:
            self.set_header("Connection", "close")
        super().write_error(status_code, **kwargs)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Called by tornado with each part of the body; what is too much is read and dropped."""
        if self._refusal is None:
            self._body += chunk
            if len(self._body) > self.body_limit():
                self._refusal = self._too_large_error()
        if self._refusal is not None:
            self._body.clear()
        return None

    def body(self) -> bytes:
        """The whole body."""
        return bytes(self._body)

    def parse_body(self, model: type[M]) -> M:
        """The JSON body as a model; a form will do too. Raises InvalidParameters."""
        text = self.body()
        try:
            if self._is_form(text):
                return model.model_validate(dict(parse_qsl(text.decode("utf-8", "replace"), keep_blank_values=True)))
            return model.model_validate_json(text)
        except ValidationError as error:
            raise bad_body(error, model, text) from None

    def _is_form(self, text: bytes) -> bool:
        """Whether the body is a form; curl says so of JSON too, without an option for it."""
        kind = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return kind == "application/x-www-form-urlencoded" and not text.lstrip().startswith((b"{", b"["))

    def _too_large_error(self) -> TooLarge:
        return TooLarge(
            Text("The body is larger than {most} bytes.", most=self.body_limit()), hint=Text("Send a smaller one.")
        )


def no_such_path(path: str) -> NoSuchPath:
    """The error for a path that names nothing."""
    return NoSuchPath(Text("{path} does not exist.", path=path[:200]), hint=Text("GET /openapi.json lists all paths."))


class UnknownPathHandler(ApiHandler):
    """Every path that is no other handler's."""

    public = True

    def refuse(self, *_path: str) -> None:
        """Every verb. Raises NoSuchPath."""
        self.begin_verb()
        raise no_such_path(self.request.path)

    get = head = post = put = delete = patch = options = refuse


class ApiWebSocketHandler(BaseHandler, tornado.websocket.WebSocketHandler):
    """A WebSocket. Everything that can be refused is refused before the upgrade, as a plain answer."""

    async def prepare(self) -> None:
        """As the base, then refuse pages of other sites. Raises Forbidden."""
        await super().prepare()
        origin = self.request.headers.get("Origin")
        if origin is not None and not self._is_welcome(origin):
            raise Forbidden(
                Text("Pages of this origin may not open streams here."),
                hint=Text("Add the origin to api.allowed_origins."),
            )

    def _is_welcome(self, origin: str) -> bool:
        return origin in self.ctx.site.allowed_origins or same_host(origin, self.request.host)

    def check_origin(self, origin: str) -> bool:
        """Called by tornado; ``prepare`` has answered it already."""
        return True
