"""What answers until the database does: alive, not ready, and a clear reason."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import tornado.httputil
import tornado.web

from pai_backend.api.errors import translate
from pai_backend.api.wire import Alive, Check, Readiness
from pai_backend.model.errors import Unavailable
from pai_backend.model.text import Text


class StartingDelegate(tornado.httputil.HTTPServerConnectionDelegate):
    """The server's delegate, whose target is replaced once, when everything is there.

    So the port is taken and answers from the first moment, and nothing has to be torn down at the change.
    """

    def __init__(self, target: tornado.httputil.HTTPServerConnectionDelegate) -> None:
        self.target = target

    def start_request(
        self, server_conn: object, request_conn: tornado.httputil.HTTPConnection
    ) -> tornado.httputil.HTTPMessageDelegate:
        """Called by tornado for each request."""
        return self.target.start_request(server_conn, request_conn)

    def on_close(self, server_conn: object) -> None:
        """Called by tornado when a connection has ended."""
        self.target.on_close(server_conn)


def starting_application(why: Callable[[], str]) -> tornado.web.Application:
    """Answers while there is no database; ``why`` tells what is waited for."""
    return tornado.web.Application([("/healthz", _Healthz), ("/readyz", _Readyz), (".*", _Everything)], why=why)


class _Starting(tornado.web.RequestHandler):
    def why(self) -> str:
        """What is waited for, in a sentence."""
        return str(self.settings["why"]())

    def answer(self, status: int, text: str) -> None:
        """A JSON answer."""
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.set_header("Retry-After", "1")
        self.finish(text)


class _Healthz(_Starting):
    def get(self) -> None:
        """Alive."""
        self.answer(200, Alive().model_dump_json(by_alias=True))


class _Readyz(_Starting):
    def get(self) -> None:
        """Not ready."""
        check = Check(name="database", ok=False, message=self.why())
        self.answer(503, Readiness(ready=False, checks=(check,)).model_dump_json(by_alias=True))


class _Everything(_Starting):
    def prepare(self) -> None:
        """Every verb of every other path."""
        error = Unavailable(self.why(), hint=Text("Try again in a moment."))
        status, body = translate(error, secrets.token_hex(8))
        self.answer(status, body.model_dump_json(by_alias=True))
