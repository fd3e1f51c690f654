"""A login outlives its certificate when that was renewed in time, and no longer than the renewed one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.access.gateway import door
from pai_backend.model.rights import limits_of
from tests.integration.gateway.test_rights import CUT_S, HOUR, _certify, login_certified
from tests.support.ssh_world import World, eventually, make_world

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        yield made


async def test_a_login_goes_on_with_a_renewed_certificate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _certify(world)
    issued, looks, clock = world.store.grants.issued, 0, door.utc_now
    renewed = replace(issued[first], serial=78, expires_at=issued[first].expires_at + 2 * HOUR)
    living = world.store.grants.certificates

    async def counted(user: str | None, now: datetime) -> object:
        nonlocal looks
        found = await living(user, now)
        looks += 1
        return found

    async with login_certified(world) as conn:
        assert (await conn.run("echo in")).stdout == "in\n"
        issued[78] = renewed
        monkeypatch.setattr(world.store.grants, "certificates", counted)
        monkeypatch.setattr(door, "utc_now", lambda: clock() + timedelta(minutes=90))
        world.store.written()
        await eventually(lambda: looks >= 2, "the gateway does not look whether the certificate was renewed")
        assert (await conn.run("echo still in")).stdout == "still in\n"
        issued[78] = replace(renewed, revoked_at=clock())
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()


@pytest.mark.parametrize("change", ["another key", "other rights", "another user"])
async def test_a_certificate_of_other_terms_is_no_renewal(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    first = _certify(world)
    issued, clock = world.store.grants.issued, door.utc_now
    later = replace(issued[first], serial=78, expires_at=issued[first].expires_at + 2 * HOUR)
    terms: dict[str, object] = {
        "another key": {"fingerprint": "SHA256:other"},
        "other rights": {"limits": limits_of(["sftp"])},
        "another user": {"user": "bob"},
    }
    async with login_certified(world) as conn:
        assert (await conn.run("echo in")).stdout == "in\n"
        issued[78] = replace(later, **terms[change])  # type: ignore[arg-type]
        monkeypatch.setattr(door, "utc_now", lambda: clock() + timedelta(minutes=90))
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()
