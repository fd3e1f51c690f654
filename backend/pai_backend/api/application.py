"""The tornado application: our routes, the service proxy's in front of them, and what is there while starting."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Sequence

import tornado.routing
import tornado.web

from pai_backend.api.base import BaseHandler, UnknownPathHandler
from pai_backend.api.context import ApiContext
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES

log = logging.getLogger(__name__)

_RULES = [tornado.routing.URLSpec(route.pattern, route.handler) for route in ROUTES]
"""Compiled with the module, which the supervisor imports once for all its children: each starts 0.1 s sooner."""

PING_S = 30  # seconds between pings on idle WebSockets; proxies in front cut silent ones after 60 by habit


def make_application(ctx: ApiContext, front: Sequence[tornado.routing.Rule] = ()) -> tornado.routing.RuleRouter:
    """The whole HTTP face. ``front`` are the rules that are asked first: the service proxy's."""
    templates: dict[tuple[type, int, str], str] = {
        (route.handler, len(route.parts), route.template[:8]): route.template for route in ROUTES
    }

    @functools.cache
    def openapi() -> bytes:
        return json.dumps(describe(ROUTES, ctx.site.version)).encode()

    def observe(handler: tornado.web.RequestHandler) -> None:
        request = handler.request
        key = type(handler), len(handler.path_args), request.path.removeprefix("/rest-server")[:8]
        route = templates.get(key, "(none)")
        seconds = request.request_time()
        ctx.metrics.answered(request.method or "", route, handler.get_status(), seconds)
        if log.isEnabledFor(logging.DEBUG):
            request_id = handler.request_id if isinstance(handler, BaseHandler) else ""
            milliseconds = 1000 * seconds
            log.debug(
                "%s %s %d %.1f ms [%s]", request.method, request.path, handler.get_status(), milliseconds, request_id
            )

    application = tornado.web.Application(
        _RULES,
        default_handler_class=UnknownPathHandler,
        log_function=observe,
        websocket_ping_interval=PING_S,
        ctx=ctx,
        openapi=openapi,
    )
    return tornado.routing.RuleRouter([*front, tornado.routing.Rule(tornado.routing.AnyMatches(), application)])
