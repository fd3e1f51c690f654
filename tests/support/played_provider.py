"""A provider of OpenID Connect with keys and tokens of a test; ``tests/ui/test_provider_login.py`` asks a real one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import tornado.netutil
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

CLIENT = "pai"


def new_key(name: str) -> RSAKey:
    """A key of that id."""
    return RSAKey.generate_key(2048, {"kid": name})


@dataclass
class PlayedProvider:
    """What it says of itself, and the keys that it shows."""

    issuer: str
    keys: list[RSAKey] = field(default_factory=lambda: [new_key("first")])
    document: dict[str, Any] = field(default_factory=dict)
    fetched: int = 0

    def token(self, **changes: object) -> str:
        """An ID token of ``ann`` with some claims changed; None leaves one out."""
        return self.signed(self.keys[-1], **changes)

    def signed(self, signer: RSAKey, **changes: object) -> str:
        """The same, signed by a key."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "f:1234:ann",
            "preferred_username": "ann",
            "groups": ["/lab/vision"],
            "iat": now,
            "exp": now + 300,
        }
        claims = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": signer.kid}, claims, signer)


class _Document(RequestHandler):
    def get(self) -> None:
        provider: PlayedProvider = self.settings["provider"]
        self.write({"issuer": provider.issuer, "jwks_uri": f"{provider.issuer}/keys", **provider.document})


class _Keys(RequestHandler):
    def get(self) -> None:
        provider: PlayedProvider = self.settings["provider"]
        provider.fetched += 1
        self.write(dict(KeySet([*provider.keys]).as_dict(private=False)))


@asynccontextmanager
async def played_provider() -> AsyncIterator[PlayedProvider]:
    """One at a free port of loopback."""
    (listener,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    provider = PlayedProvider(f"http://127.0.0.1:{listener.getsockname()[1]}/realms/lab")
    rules = [("/realms/lab/.well-known/openid-configuration", _Document), ("/realms/lab/keys", _Keys)]
    server = HTTPServer(Application(rules, provider=provider))
    server.add_sockets([listener])
    try:
        yield provider
    finally:
        server.stop()
        await server.close_all_connections()
