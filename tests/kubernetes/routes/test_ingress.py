"""The chart's Ingress with a real Traefik as its controller, on nodes that enforce the release's NetworkPolicy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.kubernetes.deploy.release import LIMIT_S
from tests.kubernetes.policies.knocking import LOGIN
from tests.kubernetes.routes import doors, traefik, what_users_do
from tests.kubernetes.routes.conftest import API
from tests.kubernetes.routes.front import Front

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOOR = doors.INGRESS
LONG_S = 65.0  # Traefik and others end what takes a minute, where they are not told better


async def test_a_job_is_handed_in_and_its_log_followed(front: Front) -> None:
    await what_users_do.follow_a_job(front)


async def test_files_and_documents_pass_whole(front: Front) -> None:
    await what_users_do.send_much(front, 128)


async def test_a_jupyter_is_worked_in_by_its_own_name(front: Front) -> None:
    await what_users_do.work_in_jupyter(front)


async def test_addresses_stay_when_a_job_runs_again_elsewhere(front: Front) -> None:
    await what_users_do.stay_through_a_reschedule(front)


async def test_plain_http_is_sent_to_tls(front: Front) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://{front.address}:{traefik.WEB}/api/v2/info?a=b", headers={"Host": API})
    assert (answer.status_code, answer.headers["Location"]) == (301, f"https://{API}/api/v2/info?a=b")


async def test_nobody_else_asks_the_api_past_the_door(front: Front) -> None:
    async with what_users_do.stranger(front) as (stranger, at):
        await stranger.until_it_hears({at["gateway"]: LOGIN})  # which the page leaves open here
        await stranger.is_shut_out([at["api"]])


async def test_what_takes_minutes_is_not_ended(front: Front) -> None:
    """An upload, and a log of which nothing comes, at the same time."""
    begun = time.monotonic()

    async def slowly() -> AsyncIterator[bytes]:
        while time.monotonic() - begun < LONG_S:
            yield b"x" * 1024
            await asyncio.sleep(0.5)  # that slow is what is sent

    async with (
        front.job("silent", what_users_do.WAITS) as name,
        front.socket(front.log(name), **front.credentials) as log,
    ):
        assert await log.receive_bytes(timeout=LIMIT_S) == b"begun\n"
        # Whoever does not listen answers no ping, and is taken for gone.
        listening = asyncio.create_task(log.receive_bytes(timeout=LIMIT_S))
        sent = await front.release.client.put(f"/api/v2/fs/alice/{name}", content=slowly())
        assert sent.status_code == 200, sent.text
        assert sent.json()["complete"]
        made = await front.release.ssh(name, "touch", "go")
        assert made.code == 0, made.err
        assert await listening == b"ended\n"
