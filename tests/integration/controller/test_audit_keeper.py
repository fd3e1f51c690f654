"""Events of the audit at a real HTTP server and real syslog sockets: all of them, in their order, after outages too."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
import tornado.httpserver
import tornado.netutil
import tornado.web

from jupyter_pai.audit import BEGINNING, ChainCheck
from pai_backend.controller import audit_keeper
from pai_backend.controller.audit_keeper import AuditKeeper, AuditRules
from pai_backend.controller.audit_sinks import Syslog, Webhook
from pai_backend.model.audit import AuditEvent
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import Fenced
from pai_backend.store.sql import Store
from tests.support.stores import database_url, store

__all__ = ["database_url", "store"]

pytestmark = pytest.mark.asyncio

LIMIT_S = 60.0
SECRET = "what-both-know"
NOW = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEND_S", "LONGEST_S", "CUT_S"):
        monkeypatch.setattr(audit_keeper, name, 0.02)


async def add(store: Store, first: int, number: int) -> None:
    for each in range(first, first + number):
        await store.audit.add(
            AuditEvent("test.done", NOW - timedelta(days=100 - each), "ann", "ann", subject=f"{each} ü")
        )


@asynccontextmanager
async def keeping(store: Store, rules: AuditRules) -> AsyncIterator[asyncio.Task[None]]:
    """A keeper of a controller that holds the lease."""
    lease = await store.leadership.acquire("test", 3600, NOW, force=True)
    assert lease is not None
    task = asyncio.create_task(AuditKeeper(store, rules, epoch=lease.epoch, clock=lambda: NOW).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Taker(tornado.web.RequestHandler):
    """Takes bodies; answers what it is told to."""

    def post(self) -> None:
        site = self.settings["site"]
        body, stamp = self.request.body, self.request.headers["X-Pai-Timestamp"]
        signed = hmac.new(SECRET.encode(), f"{stamp}\n".encode() + body, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(signed, self.request.headers["X-Pai-Signature"])
        site.asked += 1
        code = site.answers.pop(0) if site.answers else 204
        if code == 204:
            site.taken += [json.loads(line) for line in body.decode().splitlines()]
        elif code == 302:
            self.set_header("Location", f"http://127.0.0.1:{site.port}/elsewhere")
        self.set_status(code)


class Site:
    def __init__(self) -> None:
        self.taken: list[dict[str, object]] = []
        self.answers: list[int] = []
        self.asked = 0
        self.port = 0


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    found = Site()
    (listener,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    found.port = listener.getsockname()[1]
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/events", Taker)], site=found))
    server.add_socket(listener)
    yield found
    server.stop()
    await server.close_all_connections()


async def test_a_webhook_gets_each_event_in_order_after_answers_that_refuse(store: Store, site: Site) -> None:
    site.answers = [500, 302, 404]
    await add(store, 0, 3)
    rules = AuditRules(sinks=[Webhook(f"http://127.0.0.1:{site.port}/events", SECRET)])

    def different() -> dict[object, dict[str, object]]:  # those of the last request may have come again
        return {event["position"]: event for event in site.taken}

    async with keeping(store, rules):
        await until(lambda: len(site.taken) == 3)
        assert site.asked == 4
        await add(store, 3, 5)
        await until(lambda: len(different()) == 8)
    async with keeping(store, rules):  # another controller goes on where this one was
        await add(store, 8, 1)
        await until(lambda: len(different()) == 9)
    check = ChainCheck(BEGINNING)
    for event in different().values():
        check.add(event)  # type: ignore[arg-type]  # what came over the wire
    assert check.checked == 9


async def test_a_controller_that_was_replaced_sends_no_further(store: Store, site: Site) -> None:
    await add(store, 0, 1)
    rules = AuditRules(sinks=[Webhook(f"http://127.0.0.1:{site.port}/events", SECRET)])
    keeper = AuditKeeper(store, rules, epoch=7, clock=lambda: NOW)
    with pytest.raises(ExceptionGroup) as ended:
        async with asyncio.timeout(LIMIT_S):
            await keeper.run()
    assert ended.group_contains(Fenced)


async def test_a_syslog_server_gets_framed_lines_again_after_it_was_away(store: Store) -> None:
    taken = bytearray()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    await add(store, 0, 2)
    async with keeping(store, AuditRules(sinks=[Syslog(f"tcp://127.0.0.1:{port}")])):
        await asyncio.sleep(0.1)  # it is away, and is asked several times
        server = await asyncio.start_server(take, "127.0.0.1", port)
        await until(lambda: taken.count(b"jupyter-pai") == 2)
    server.close()
    await server.wait_closed()
    found, rest = [], bytes(taken)
    while rest:
        length, _, rest = rest.partition(b" ")
        found.append(rest[: int(length)].decode())
        rest = rest[int(length) :]
    assert [line.split(" ", 7)[0] for line in found] == ["<110>1"] * 2
    assert [json.loads(line.split(" ", 7)[7])["subject"] for line in found] == ["0 ü", "1 ü"]


async def test_a_datagram_is_sent_for_each_event(store: Store) -> None:
    taken: list[bytes] = []

    class Socket(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            taken.append(data)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Socket, local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    await add(store, 0, 3)
    async with keeping(store, AuditRules(sinks=[Syslog(f"udp://127.0.0.1:{port}")])):
        await until(lambda: len(taken) >= 3)
    transport.close()
    assert [json.loads(line.split(b" ", 7)[7])["position"] for line in taken] == [1, 2, 3]


async def test_old_events_go_once_they_were_sent(store: Store, site: Site) -> None:
    await add(store, 0, 50)  # from 100 to 51 days ago
    site.answers = [500] * 5
    rules = AuditRules(timedelta(days=60), [Webhook(f"http://127.0.0.1:{site.port}/events", SECRET)])
    async with keeping(store, rules):
        async with asyncio.timeout(LIMIT_S):
            while (await store.audit.page(AuditFilter(after=0, limit=1)))[0].position == 1:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert len(site.taken) >= 50
        left = await store.audit.page(AuditFilter(after=0))
    assert [each.subject for each in left if each.type == "test.done"] == [f"{n} ü" for n in range(40, 50)]
