"""What users are told, at a real SMTP server and a real HTTP server: each notice arrives, and is known again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
import pytest_asyncio
import tornado.httpserver
import tornado.netutil
import tornado.web

from pai_backend.controller import notifier
from pai_backend.controller.mailing import MailServer as Hands
from pai_backend.controller.notice_sending import NoticeSender
from pai_backend.controller.notifier import Notifier
from pai_backend.controller.posting import Poster
from pai_backend.model.ids import JobUid
from pai_backend.model.notification import USUAL, Channel, News
from pai_backend.store.base import Fenced, NewEvent
from pai_backend.store.grants import Act
from pai_backend.store.notifications import DeliveryTarget, Notification, new_id
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_uid
from tests.support.mail_server import MailServer, mail_server
from tests.support.stores import database_url, store

__all__ = ["database_url", "store"]

pytestmark = pytest.mark.asyncio

LIMIT_S = 60.0
SECRET = "what-both-know"
NOW = datetime(2026, 11, 28, tzinfo=UTC)
ACT = Act("alice", NOW)
LOOPBACK = (ip_network("127.0.0.0/8"),)
FAILED = NewEvent("job.exit", {"state": "FAILED", "message": "exit 1", "remedy": ""})


@dataclass
class Hook(MailServer):
    """An HTTP server that keeps what it is sent and answers what it is told to, and the mail server's place."""

    bodies: list[dict[str, object]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    url: str = ""


class _Taker(tornado.web.RequestHandler):
    def post(self) -> None:
        hook: Hook = self.settings["hook"]
        body, headers = self.request.body, self.request.headers
        signed = hmac.new(SECRET.encode(), f"{headers['X-Pai-Timestamp']}\n".encode() + body, hashlib.sha256)
        assert headers["X-Pai-Signature"] == signed.hexdigest()
        hook.bodies.append(json.loads(body))
        assert hook.bodies[-1]["message"] == headers["X-Pai-Message"]
        self.set_status(hook.answers.pop(0) if hook.answers else 204)


@pytest_asyncio.fixture
async def hook() -> AsyncIterator[Hook]:
    found = Hook()
    (listener,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    found.url = f"http://localhost:{listener.getsockname()[1]}/jobs"
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/jobs", _Taker)], hook=found))
    server.add_socket(listener)
    yield found
    server.stop()
    await server.close_all_connections()


@pytest_asyncio.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "LOOK_S", 0.02)
    for name in ("APART", "FIRST", "LONGEST"):
        monkeypatch.setattr(notifier, name, timedelta(milliseconds=20))


@asynccontextmanager
async def telling(
    store: Store, mail: MailServer | None = None, *, networks: Sequence[object] = LOOPBACK
) -> AsyncIterator[asyncio.Task[None]]:
    """A notifier of a controller that holds the lease."""
    lease = await store.leadership.acquire("test", 3600, NOW, force=True)
    assert lease is not None
    server = None if mail is None else Hands("127.0.0.1", mail.port, "none", "pai@example.org")
    clock = lambda: datetime.now(UTC)  # noqa: E731
    sender = NoticeSender(Poster(networks), server, clock)  # type: ignore[arg-type]
    task = asyncio.create_task(Notifier(store, sender, epoch=lease.epoch, clock=clock).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wants(
    store: Store,
    channel: Channel,
    to: str,
    news: Sequence[News] = USUAL,
    user: str = "alice",
    secret: str = SECRET,
) -> str:
    new = Notification(new_id(), user, channel, "there", frozenset(news), 3600, datetime.now(UTC))
    await store.notifications.add(new, DeliveryTarget(to=to, secret=secret), ACT)
    return new.id


async def submitted(store: Store, number: int = 1, user: str = "alice", notify: Sequence[str] = ()) -> JobUid:
    job = make_job(uid=make_uid(number), name=f"train-{number}", user=user)
    first = NewEvent("job.submitted", {"user": user, "name": job.name, "notify": list(notify)})
    await store.jobs.submit(job, b"{}", "", "application/json", [first])
    return job.uid


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def state(store: Store) -> tuple[int, int, str]:
    (one,) = await store.notifications.of_user("alice")
    return one.waiting, one.lost, one.trouble


async def settled(store: Store, wanted: tuple[int, int, str]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while await store.notices.batch() is not None or await state(store) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def texts(bodies: Sequence[dict[str, object]]) -> list[tuple[object, object]]:
    return [(each["id"], each["text"]) for body in bodies for each in body["notices"]]  # type: ignore[attr-defined]


async def test_a_mail_that_is_put_off_comes_once_under_one_name(store: Store, mail: MailServer) -> None:
    mail.replies = ["451 later", "451 later"]
    await wants(store, Channel.MAIL, "ann@example.org")
    uid = await submitted(store)
    await store.events.note(uid, [FAILED], NOW)
    async with telling(store, mail):
        await until(lambda: bool(mail.mails))
        await settled(store, (0, 0, ""))
    assert (len(mail.mails), mail.asked) == (1, 3)
    assert mail.mails[0]["Subject"] == "[pai] train-1: failed"
    assert "train-1 has failed: exit 1." in mail.mails[0].get_content()


async def test_what_a_server_refuses_for_good_is_not_tried_again(store: Store, mail: MailServer) -> None:
    mail.replies = ["550 no such user"]
    await wants(store, Channel.MAIL, "nobody@example.org")
    await store.events.note(await submitted(store), [FAILED], NOW)
    async with telling(store, mail):
        await settled(store, (0, 1, "the mail server answers 550 no such user"))
    assert (mail.asked, mail.mails) == (1, [])


async def test_a_webhook_gets_the_same_message_until_it_takes_it(store: Store, hook: Hook) -> None:
    hook.answers = [500, 429]
    await wants(store, Channel.WEBHOOK, hook.url)
    uid = await submitted(store)
    await store.events.note(uid, [FAILED], NOW)
    async with telling(store):
        await settled(store, (0, 0, ""))
        assert [body == hook.bodies[0] for body in hook.bodies] == [True] * 3
        assert texts(hook.bodies[:1]) == [(f"{uid}-2", "train-1 has failed: exit 1.")]
        hook.answers = [410]
        await store.events.note(uid, [FAILED], NOW)
        await settled(store, (0, 1, "it answers 410"))


async def test_what_happened_while_a_message_waits_comes_after_it_and_together(store: Store, hook: Hook) -> None:
    await wants(store, Channel.WEBHOOK, hook.url)
    uids = [await submitted(store, number) for number in range(1, 31)]
    hook.answers = [503]
    await store.events.note(uids[0], [FAILED], NOW)
    async with telling(store):
        await until(lambda: len(hook.bodies) == 2)
        await settled(store, (0, 0, ""))  # what ends before its delivery is written down is delivered again
    for uid in uids[1:]:
        await store.events.note(uid, [FAILED], NOW)
    async with telling(store):
        await settled(store, (0, 0, ""))
    assert [len(texts([body])) for body in hook.bodies] == [1, 1, 29]
    assert len(set(texts(hook.bodies))) == 30


async def test_each_event_is_noticed_once_however_often_a_controller_ends(store: Store, hook: Hook) -> None:
    await wants(store, Channel.WEBHOOK, hook.url)
    uids = [await submitted(store, number) for number in range(1, 9)]
    for uid in uids:
        await store.events.note(uid, [FAILED], NOW)
        async with telling(store):
            await asyncio.sleep(0.03)  # ends it anywhere
    async with telling(store):
        await until(lambda: len({id_ for id_, _ in texts(hook.bodies)}) == 8)
        await settled(store, (0, 0, ""))
    by_message: dict[object, list[object]] = {}
    for body in hook.bodies:
        assert by_message.setdefault(body["message"], [body["notices"]]) == [body["notices"]], "one name, one message"


async def test_users_are_told_of_their_own_jobs_from_when_they_asked_on(store: Store, hook: Hook) -> None:
    before = await submitted(store, 1)
    await store.events.note(before, [FAILED], NOW)
    await wants(store, Channel.WEBHOOK, hook.url)
    await wants(store, Channel.WEBHOOK, hook.url, user="bob")
    await store.events.note(await submitted(store, 2), [FAILED], NOW)
    await store.events.note(await submitted(store, 3, "carol"), [FAILED], NOW)
    async with telling(store):
        await settled(store, (0, 0, ""))
        await until(lambda: bool(hook.bodies))
    assert texts(hook.bodies) == [(f"{make_uid(2)}-2", "train-2 has failed: exit 1.")]


async def test_a_document_asks_for_what_its_user_does_not_hear_of_else(store: Store, hook: Hook) -> None:
    await wants(store, Channel.WEBHOOK, hook.url, [News.FAILED])
    runs = NewEvent("job.state", {"state": "RUNNING", "phase": "running", "why": ""})
    await store.events.note(await submitted(store, 1), [runs], NOW)
    await store.events.note(await submitted(store, 2, notify=["running"]), [runs, runs], NOW)
    async with telling(store):
        await until(lambda: bool(hook.bodies))
        await settled(store, (0, 0, ""))
    assert texts(hook.bodies) == [(f"{make_uid(2)}-2", "train-2 runs.")]


async def test_a_name_that_means_this_machine_is_not_asked(store: Store, hook: Hook) -> None:
    await wants(store, Channel.WEBHOOK, hook.url)
    await store.events.note(await submitted(store), [FAILED], NOW)
    async with telling(store, networks=()):
        why = "localhost is not a public address, and notifications.networks does not have it"
        await settled(store, (1, 0, why))
    assert hook.bodies == []


async def test_who_is_locked_out_or_removes_it_is_told_nothing_more(store: Store, hook: Hook) -> None:
    id_ = await wants(store, Channel.WEBHOOK, hook.url)
    uid = await submitted(store)
    await store.grants.lock_out("alice", Act("root", NOW))
    await store.events.note(uid, [FAILED], NOW)
    async with telling(store):
        async with asyncio.timeout(LIMIT_S):
            while await store.notices.batch() is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await store.grants.let_in("alice", Act("root", NOW))
        await store.events.note(uid, [FAILED], NOW)
        await until(lambda: bool(hook.bodies))
    assert texts(hook.bodies) == [(f"{uid}-3", "train-1 has failed: exit 1.")]
    await store.events.note(uid, [FAILED], NOW)
    await store.notifications.remove("alice", id_, ACT)
    async with telling(store):
        await store.notifications.test("alice", await wants(store, Channel.WEBHOOK, hook.url), "A test.", NOW)
        await until(lambda: len(hook.bodies) == 2)
    assert texts(hook.bodies[1:]) == [("test-1", "A test.")]


async def test_a_receiver_that_is_away_for_long_costs_a_days_notices(
    store: Store, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "MOST_TRIES", 3)
    await wants(store, Channel.WEBHOOK, hook.url)
    uids = [await submitted(store, number) for number in range(1, 4)]
    hook.answers = [503] * 3
    now = datetime.now(UTC)
    await store.events.note(uids[0], [FAILED], now)
    async with telling(store):
        await until(lambda: bool(hook.bodies))
        await store.events.note(uids[1], [FAILED], now - timedelta(days=2))
        await store.events.note(uids[2], [FAILED], now)
        await settled(store, (0, 2, ""))
    assert texts(hook.bodies[-1:]) == [(f"{uids[2]}-2", "train-3 has failed: exit 1.")]


async def test_without_notifications_nothing_is_made_of_events(store: Store, hook: Hook) -> None:
    id_ = await wants(store, Channel.WEBHOOK, hook.url)
    await store.notifications.remove("alice", id_, ACT)
    await store.events.note(await submitted(store), [FAILED], NOW)
    assert await store.notices.batch() is None
    await wants(store, Channel.WEBHOOK, hook.url)
    assert await store.notices.batch() is None, "what happened before is not told"


async def test_a_controller_of_before_sends_nothing(store: Store, hook: Hook) -> None:
    await wants(store, Channel.WEBHOOK, hook.url)
    await store.events.note(await submitted(store), [FAILED], NOW)
    async with telling(store) as old:
        assert await store.leadership.acquire("another", 3600, NOW, force=True) is not None
        with pytest.raises(ExceptionGroup) as ended:
            await asyncio.wait_for(old, LIMIT_S)
        assert ended.group_contains(Fenced)
    async with telling(store):
        await settled(store, (0, 0, ""))
    assert len(hook.bodies) == 1


async def test_many_slow_servers_do_not_hold_up_others(store: Store, hook: Hook) -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    for _ in range(notifier.AT_ONCE - 1):
        await wants(store, Channel.WEBHOOK, f"http://127.0.0.1:{port}/")
    await wants(store, Channel.WEBHOOK, hook.url)
    await store.events.note(await submitted(store), [FAILED], NOW)
    async with telling(store):
        await until(lambda: bool(hook.bodies))
    silent.close()
