"""Users of a JupyterHub: the token that a Hub gave a user's server is that user's session here.

The Hub is asked whose a token is, once in ``CONFIRM_S`` while it is used. What is kept is a session of the token's
digest, which ends ``LIFE`` after the Hub has last confirmed it, or when the Hub no longer knows it. Tokens stay in the
memory of the process that they came to. Source: JupyterHub's REST API, ``GET /user``, and its scopes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest, HTTPResponse

from pai_backend.auth.newcomers import let_come
from pai_backend.model.errors import Forbidden, NoSuchToken, PaiError, Unavailable
from pai_backend.model.text import Text
from pai_backend.store.base import AccessToken
from pai_backend.store.external_users import ExternalUser, ExternalUsers
from pai_backend.store.grants import Act
from pai_backend.store.tokens import Tokens

log = logging.getLogger(__name__)

CONFIRM_S = 10.0
"""Seconds for which an answer of the Hub counts: a server that a user has stopped is let in no longer than that."""
REFUSED_S = 2.0
"""The same of a refusal."""
LIFE = timedelta(minutes=10)
"""How long a session goes on while the Hub does not answer."""
ANSWER_S = 5.0
AT_ONCE, STRANGERS_AT_ONCE, STRANGERS = 8, 2, 64
"""Questions at the same time about tokens that are sessions here, about others, and others that may wait for theirs."""
MOST = 4096
MOST_BYTES = 1_048_576
LABEL = "JupyterHub"

_TOKEN = re.compile(r"[0-9a-f]{32}")
"""What the Hub makes; tokens of ours are longer. Source: jupyterhub.utils.new_token."""


class HubApi:
    """The Hub, as far as it says whose a token is."""

    def __init__(self, api_url: str, service: str, *, take_names: bool = False) -> None:
        """``take_names``: its users are also those of the same names who were here before."""
        self.issuer, self.take_names = api_url, take_names
        self._url, self._service = f"{api_url}/user", service
        most = AT_ONCE + STRANGERS_AT_ONCE
        self._client = AsyncHTTPClient(force_instance=True, max_clients=most, max_body_size=MOST_BYTES)

    async def user_of(self, token: str) -> str | None:
        """The name of the user whose token it is; None when the Hub does not know it.

        Raises Forbidden when the token is not for this backend, Unavailable when the Hub gives no answer.
        """
        request = HTTPRequest(
            self._url,
            headers={"Authorization": f"token {token}", "Accept": "application/json"},
            follow_redirects=False,  # the token is for the Hub alone
            connect_timeout=ANSWER_S,
            request_timeout=ANSWER_S,
        )
        try:
            answer = await self._client.fetch(request, raise_error=False)
        except (OSError, HTTPError) as error:
            raise _away(str(error)) from None
        if answer.code in (401, 403):
            return None
        return self._read(answer)

    def _read(self, answer: HTTPResponse) -> str:
        try:
            said = json.loads(answer.body) if answer.code == 200 else None
        except ValueError:
            said = None
        if not isinstance(said, dict) or not isinstance(said.get("name"), str):
            raise _away(f"status {answer.code}, {len(answer.body or b'')} bytes")
        scopes = said.get("scopes")
        wanted = {"access:services", f"access:services!service={self._service}"}
        if said.get("kind") != "user" or not isinstance(scopes, list) or not wanted & {*map(str, scopes)}:
            raise Forbidden(
                Text("JupyterHub has given this server a token that is not for this backend."),
                hint=Text(
                    "The Hub's administrator adds 'access:services!service={service}' to "
                    "c.Spawner.server_token_scopes and to the role of users; then start the server again.",
                    service=self._service,
                ),
            )
        return str(said["name"])


@dataclass
class _Seen:
    """A token, and what the Hub has said of it."""

    token: str
    asked_at: float = float("-inf")
    counts_s: float = 0.0
    refusal: PaiError | None = None
    asking: asyncio.Task[None] | None = None


class HubTokens:
    """Makes sessions of the Hub's tokens, and ends them with these."""

    def __init__(
        self,
        hub: HubApi,
        tokens: Tokens,
        users: ExternalUsers,
        *,
        now: Callable[[], datetime],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``changed`` is called when a session has begun or ended."""
        self._hub, self._tokens, self._users = hub, tokens, users
        self._now, self._changed, self._clock = now, changed, clock
        self._seen: dict[str, _Seen] = {}
        self._known, self._strangers = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(STRANGERS_AT_ONCE)
        self._waiting = 0

    async def confirm(self, digest: str, token: str = "") -> PaiError | None:
        """Have the store know whether the token of this digest is good now, if the Hub made it. Why it is not.

        Without ``token`` it is one that came earlier. The reason is Forbidden when its user may not come, Unavailable
        when the Hub must be asked and is away, and there is none for a token that the Hub does not know.
        """
        seen = self._seen.get(digest)
        if seen is None and _TOKEN.fullmatch(token):
            while len(self._seen) >= MOST:
                del self._seen[next(iter(self._seen))]  # the one that was used longest ago
            seen = self._seen[digest] = _Seen(token)
        if seen is None:
            return None
        self._seen[digest] = self._seen.pop(digest, seen)
        if self._clock() >= seen.asked_at + seen.counts_s:
            if seen.asking is None:
                seen.asking = asyncio.create_task(self._ask(digest, seen))
            await asyncio.shield(seen.asking)
        return seen.refusal

    async def _ask(self, digest: str, seen: _Seen) -> None:
        kept = None
        try:
            kept = await self._tokens.get(digest, self._now())
            name = await self._user_of(seen.token, is_known=kept is not None)
            if name is None:
                await self._end(kept)
            else:
                await self._go_on(digest, name, kept)
            seen.refusal, seen.counts_s = None, REFUSED_S if name is None else CONFIRM_S
        except Unavailable as error:
            if kept is not None:
                log.warning("%s The session of %s goes on for now.", error.message, kept.user)
            seen.refusal, seen.counts_s = None if kept is not None else error, REFUSED_S
        except PaiError as error:
            await self._end(kept)
            seen.refusal, seen.counts_s = error, REFUSED_S
        finally:
            seen.asked_at, seen.asking = self._clock(), None

    async def _user_of(self, token: str, *, is_known: bool) -> str | None:
        if is_known:
            async with self._known:
                return await self._hub.user_of(token)
        if self._waiting >= STRANGERS:
            raise Unavailable(Text("JupyterHub is asked about too many unknown tokens."), hint=Text("Try again."))
        self._waiting += 1
        try:
            async with self._strangers:
                return await self._hub.user_of(token)
        finally:
            self._waiting -= 1

    async def _go_on(self, digest: str, name: str, kept: AccessToken | None) -> None:
        """Begin a session, or write its new end when half of the time is over. Raises Forbidden for another's name."""
        now = self._now()
        if kept is None or kept.user != name:
            user = ExternalUser(name, self._hub.issuer, name)
            await let_come(self._users, user, Act(name, now, LABEL), take_names=self._hub.take_names)
        if kept is not None and kept.user == name and kept.expires_at is not None and kept.expires_at - now > LIFE / 2:
            return
        await self._tokens.put(AccessToken(digest, name, False, now, now + LIFE, LABEL))
        self._changed()

    async def _end(self, kept: AccessToken | None) -> None:
        if kept is not None:
            with suppress(NoSuchToken):  # its user, or another process, has ended it
                await self._tokens.remove(kept.user, kept.digest, Act(kept.user, self._now(), LABEL))
            self._changed()


def _away(reason: str) -> Unavailable:
    return Unavailable(
        Text("JupyterHub does not say whose token this is: {reason}.", reason=reason), hint=Text("Try again later.")
    )
