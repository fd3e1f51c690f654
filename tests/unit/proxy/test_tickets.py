"""Tickets are spent once, by whichever replica; sessions open one service of one job for a time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.access.tickets import COOKIE, HOST_COOKIE, SESSION_LIFE, TICKET_LIFE, Claims, TicketOffice, utc_now
from pai_backend.model.errors import Unauthorized
from pai_backend.model.ids import JobUid
from tests.support.proxy_fakes import KEY, Clock, FakeStore

JOB = JobUid("j1000000000000000")


def offices(count: int = 1) -> tuple[Clock, list[TicketOffice]]:
    clock, store = Clock(), FakeStore()
    return clock, [TicketOffice(store, KEY, clock) for _ in range(count)]


def session_value(office: TicketOffice, claims: Claims, *, secure: bool = False) -> tuple[str, str]:
    cookie = office.cookie(claims, path="/", secure=secure)
    pair, _, attributes = cookie.partition(";")
    return pair.partition("=")[2], attributes


@pytest.mark.asyncio
async def test_a_ticket_is_redeemed_for_what_it_was_issued_for() -> None:
    clock, (office,) = offices()
    ticket, until = office.issue("alice", "lab--web", JOB, token="t", admin=True)
    claims = await office.redeem(ticket, "lab--web")
    assert (claims.user, claims.admin, claims.job) == ("alice", True, JOB)
    assert until == clock() + TICKET_LIFE


@pytest.mark.asyncio
async def test_of_many_replicas_one_redeems_a_ticket() -> None:
    _, replicas = offices(8)
    ticket, _ = replicas[0].issue("alice", "lab--web", JOB, token="t")
    results = await asyncio.gather(*(r.redeem(ticket, "lab--web") for r in replicas), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Claims", *["Unauthorized"] * 7]


@pytest.mark.asyncio
@pytest.mark.parametrize("later_s", [60, 3600, 40 * 86400])
async def test_an_expired_ticket_is_refused(later_s: int) -> None:
    clock, (office,) = offices()
    ticket, _ = office.issue("alice", "lab--web", JOB, token="t")
    clock.time += timedelta(seconds=later_s)
    with pytest.raises(Unauthorized):
        await office.redeem(ticket, "lab--web")


@pytest.mark.asyncio
async def test_a_ticket_holds_for_its_service_and_key_only() -> None:
    _, (office,) = offices()
    ticket, _ = office.issue("alice", "lab--web", JOB, token="t")
    forger = TicketOffice(FakeStore(), "another key", Clock())
    value, _ = session_value(
        office, Claims(user="a", admin=False, token="t", service="lab--web", job=JOB, expires_at=Clock()())
    )
    for wrong, service in [
        (ticket, "lab--other"),
        (ticket[:-1] + ("0" if ticket[-1] != "0" else "1"), "lab--web"),
        (forger.issue("alice", "lab--web", JOB, token="t")[0], "lab--web"),
        (value.strip('"'), "lab--web"),
        ("", "lab--web"),
        ("2|1:0|", "lab--web"),
    ]:
        with pytest.raises(Unauthorized):
            await office.redeem(wrong, service)
    assert (await office.redeem(ticket, "lab--web")).user == "alice", "a refused use does not spend it"


@pytest.mark.asyncio
async def test_a_session_opens_its_service_for_twelve_hours() -> None:
    clock, (office,) = offices()
    ticket, _ = office.issue("alice", "lab--web", JOB, token="t")
    value, attributes = session_value(office, await office.redeem(ticket, "lab--web"), secure=True)
    assert {part.strip() for part in attributes.split(";")} == {
        "HttpOnly",
        "SameSite=Lax",
        "Secure",
        "Path=/",
        f"Max-Age={12 * 3600}",
    }
    assert office.session(value, "lab--web") is not None
    assert office.session(value, "lab--other") is None
    assert office.session(ticket, "lab--web") is None
    assert office.session("rubbish", "lab--web") is None
    clock.time += SESSION_LIFE
    assert office.session(value, "lab--web") is None


def test_a_session_over_plain_http_is_not_marked_secure() -> None:
    _, (office,) = offices()
    claims = Claims(user="a", admin=False, token="t", service="lab--web", job=JOB, expires_at=Clock()())
    assert "Secure" not in session_value(office, claims)[1]


def test_the_cookie_of_a_whole_host_with_tls_cannot_come_from_a_wider_domain() -> None:
    """Browsers take a name that begins with __Host- from that host alone, with Secure and the path /."""
    clock, (office,) = offices()
    claims = Claims(user="alice", admin=False, token="t", service="lab--web", job=JOB, expires_at=clock() + TICKET_LIFE)
    assert office.cookie(claims, path="/", secure=True).startswith(f"{HOST_COOKIE}=")
    assert office.cookie(claims, path="/s/lab--web/", secure=True).startswith(f"{COOKIE}=")
    assert office.cookie(claims, path="/", secure=False).startswith(f"{COOKIE}=")


@pytest.mark.asyncio
async def test_a_session_that_was_checked_before_still_ends_and_opens_nothing_else() -> None:
    clock, (office,) = offices()
    ticket, _ = office.issue("alice", "lab--web", JOB, token="t")
    value, _ = session_value(office, await office.redeem(ticket, "lab--web"))
    for _ in range(2):
        assert (claims := office.session(value, "lab--web")) is not None
        assert (claims.user, claims.job) == ("alice", JOB)
        assert office.session(value, "lab--other") is None
        assert office.session(value[:-1] + ("0" if value[-1] != "0" else "1"), "lab--web") is None
    clock.time += SESSION_LIFE
    assert office.session(value, "lab--web") is None


def test_of_sessions_that_were_checked_few_are_remembered() -> None:
    _, (office,) = offices()
    values = []
    for number in range(1100):
        claims = Claims(
            user=f"user-{number}", admin=False, token="t", service="lab--web", job=JOB, expires_at=utc_now()
        )
        values.append(session_value(office, claims)[0])
        found = office.session(values[-1], "lab--web")
        assert found is not None
        assert found.user == f"user-{number}"
    assert len(office._sessions) == 1024
    assert office.session(values[0], "lab--web") is not None, "what is not remembered is checked again"
