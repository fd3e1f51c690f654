"""Signing in at a provider of OpenID Connect, from a shell: in a browser here, or in one elsewhere by a code.

This program is the provider's client, a public one: the browser comes back to a port of this computer with a code,
which only who began can use (PKCE). Source: RFC 8252, RFC 7636, RFC 8628, RFC 9207, OpenID Connect Core 1.0 §3.1.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_pai.errors import ClientError
from jupyter_pai.language import tr
from pai_backend.model.text import Text

ANSWER_S = 30.0
PATIENCE_S = 300.0
"""How long the user may take in the browser."""
SLOWER_S = 5
"""RFC 8628 §3.5: ``slow_down`` adds this to the interval, for good."""
MOST_BYTES = 1_048_576
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_DONE = """<!doctype html><meta charset="utf-8"><title>pai</title>
<p>{}</p><p>{}</p>"""


@dataclass(frozen=True)
class Provider:
    """A provider, as it describes itself, and what we are to it."""

    issuer: str
    client_id: str
    scopes: str
    document: Mapping[str, Any]

    @classmethod
    def known(cls, told: Mapping[str, Any]) -> Provider:
        """The one that a backend tells of. Raises ClientError."""
        issuer = str(told["issuer"])
        document = _asked(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise _failed(
                Text("the issuer of {issuer} says to be {other}", issuer=issuer, other=document.get("issuer"))
            )
        return cls(issuer, str(told["clientId"]), " ".join(told["scopes"]), document)

    def endpoint(self, name: str) -> str:
        """An address of the provider. Raises ClientError without it."""
        found = self.document.get(name)
        if not isinstance(found, str):
            raise _failed(Text("{issuer} has no {name}", issuer=self.issuer, name=name))
        return found


def by_browser(provider: Provider, show: Callable[[str], None]) -> str:
    """The ID token of who signs in with the browser of this computer. ``show`` tells the user. Raises ClientError."""
    verifier, state, nonce = (secrets.token_urlsafe(32) for _ in range(3))
    with _Waiting(state) as waiting:
        back = f"http://127.0.0.1:{waiting.server_port}/"
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": back,
            "scope": provider.scopes,
            "state": state,
            "nonce": nonce,
            **_challenge(verifier),
        }
        endpoint = provider.endpoint("authorization_endpoint")
        address = f"{endpoint}{'&' if '?' in endpoint else '?'}{urllib.parse.urlencode(query)}"
        show(
            tr(
                "Sign in with a browser of this computer, or of another one with `pai login --device`:\n{address}",
                address=address,
            )
        )
        if _has_screen(os.environ):
            webbrowser.open(address)
        answer = waiting.answer()
    if answer.get("iss", provider.issuer) != provider.issuer:
        raise _failed(Text("the answer is of another provider, {iss}", iss=answer["iss"]))
    if "code" not in answer:
        raise _failed(answer.get("error_description") or answer.get("error") or Text("there is no code in the answer"))
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": back,
        "client_id": provider.client_id,
        "code_verifier": verifier,
    }
    return _id_token(_asked(provider.endpoint("token_endpoint"), form), nonce)


def by_code(provider: Provider, show: Callable[[str], None], pause: Callable[[float], None] = time.sleep) -> str:
    """The ID token of who signs in with a browser anywhere. ``show`` tells the user. Raises ClientError."""
    verifier = secrets.token_urlsafe(32)
    # Keycloak wants the challenge of clients that must use PKCE here, too; others do not read it.
    form = {"client_id": provider.client_id, "scope": provider.scopes, **_challenge(verifier)}
    begun = _asked(provider.endpoint("device_authorization_endpoint"), form)
    if not {"device_code", "user_code", "verification_uri"} <= begun.keys():
        raise _failed(Text("there is no code in the answer"))
    interval, end = float(begun.get("interval", 5)), time.monotonic() + float(begun.get("expires_in", PATIENCE_S))
    show(
        tr(
            "Open {verification_uri} in any browser and enter the code {user_code}.",
            verification_uri=begun["verification_uri"],
            user_code=begun["user_code"],
        )
    )
    form = {
        "grant_type": _DEVICE,
        "device_code": str(begun["device_code"]),
        "client_id": provider.client_id,
        "code_verifier": verifier,
    }
    while time.monotonic() < end:
        pause(interval)
        answer = _asked(provider.endpoint("token_endpoint"), form, may_fail=True)
        error = answer.get("error")
        if error is None:
            return _id_token(answer)
        if error == "slow_down":
            interval += SLOWER_S
        elif error != "authorization_pending":
            raise _failed(str(answer.get("error_description") or error))
    raise _failed(Text("the code has expired"))


def _has_screen(environ: Mapping[str, str]) -> bool:
    """Whether a browser would have a window: without one Python may start one that takes the terminal."""
    return sys.platform in ("darwin", "win32") or any(map(environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))


class _Waiting(http.server.HTTPServer):
    """Takes the browser back, at a free port of loopback."""

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Back)
        self.state = state
        self.found: dict[str, str] | None = None

    def answer(self) -> dict[str, str]:
        """What the provider has sent along with the browser. Raises ClientError when it does not come."""
        end = time.monotonic() + PATIENCE_S
        while self.found is None:
            self.timeout = end - time.monotonic()
            if self.timeout <= 0:
                raise _failed(
                    Text("the browser has not come back within {patience_s} s", patience_s=f"{PATIENCE_S:.0f}")
                )
            self.handle_request()
        return self.found


class _Back(http.server.BaseHTTPRequestHandler):
    server: _Waiting
    timeout = 5.0  # of a connection that says nothing, which browsers make ahead

    def do_GET(self) -> None:
        """Take the answer that belongs to what was asked; all else is refused, and the wait goes on."""
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        fits = secrets.compare_digest(given.get("state", "").encode(), self.server.state.encode())
        self.send_response(200 if fits else 400)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", "default-src 'none'")
        self.end_headers()
        said = tr("pai goes on in your terminal.") if fits else tr("This is not what pai waits for.")
        self.wfile.write(_DONE.format(said, tr("You can close this page.")).encode())
        if fits:
            self.server.found = given

    def log_message(self, format: str, *args: object) -> None:
        """The code is in the address: nothing is logged."""


def _challenge(verifier: str) -> dict[str, str]:
    digest = hashlib.sha256(verifier.encode()).digest()
    return {
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }


def _id_token(answer: Mapping[str, Any], nonce: str = "") -> str:
    """The ID token of an answer; the backend checks it. Raises ClientError when it is not of what was asked."""
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise _failed(Text("there is no ID token in the answer"))
    if nonce and _claims(token).get("nonce") != nonce:
        raise _failed(Text("the ID token is of another sign-in"))
    return token


def _claims(token: str) -> Mapping[str, Any]:
    part = [*token.split("."), ""][1]
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _asked(url: str, form: Mapping[str, str] | None = None, *, may_fail: bool = False) -> dict[str, Any]:
    """The JSON object at an address of the provider; to a POST with ``form``. Raises ClientError."""
    if not url.startswith(("https://", "http://")):
        raise _failed(Text("{url} is not an address", url=url))
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(url, data, {"Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            text = answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        text = error.read(MOST_BYTES)
        if not may_fail:
            raise _failed(Text("{url} answers {code}: {text}", url=url, code=error.code, text=_reason(text))) from None
    except (OSError, ValueError) as error:
        raise _failed(Text("{url} does not answer: {error}", url=url, error=error), code="UnavailableError") from None
    found = _object(text)
    if found is None:
        raise _failed(Text("{url} does not answer with a JSON object", url=url))
    return found


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _reason(text: bytes) -> str:
    found = _object(text) or {}
    return str(found.get("error_description") or found.get("error") or Text("no reason is given"))[:200]


def _failed(reason: str, code: str = "InvalidParametersError") -> ClientError:
    return ClientError(
        Text("The provider did not sign you in: {reason}.", reason=reason), code=code, hint="Try `pai login` again."
    )
