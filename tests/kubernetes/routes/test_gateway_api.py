"""The chart's HTTPRoute and TCPRoute at a Gateway of a real Traefik, on nodes that enforce its NetworkPolicy."""

from __future__ import annotations

import pytest

from tests.kubernetes.routes import doors, traefik, what_users_do
from tests.kubernetes.routes.front import Front

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOOR = doors.GATEWAY
TAKEN = {"Accepted": "True", "ResolvedRefs": "True"}


async def test_the_controller_takes_the_routes_as_they_are(front: Front) -> None:
    name = f"{front.release.name}-jupyter-pai"
    assert await traefik.conditions(front.release.kubectl, "httproute", name) == TAKEN
    assert await traefik.conditions(front.release.kubectl, "tcproute", f"{name}-ssh") == TAKEN


async def test_a_job_is_handed_in_and_its_log_followed(front: Front) -> None:
    await what_users_do.follow_a_job(front)


async def test_files_and_documents_pass_whole(front: Front) -> None:
    await what_users_do.send_much(front, 32)


async def test_a_jupyter_is_worked_in_by_its_own_name(front: Front) -> None:
    await what_users_do.work_in_jupyter(front)


async def test_addresses_stay_when_a_job_runs_again_elsewhere(front: Front) -> None:
    """SSH's, too, which comes in by the TCPRoute."""
    await what_users_do.stay_through_a_reschedule(front)


async def test_ssh_passes_the_door_with_the_key_that_the_api_tells(front: Front) -> None:
    release = front.release
    gateway = (await release.client.get("/api/v2/gateway")).json()
    assert (gateway["host"], gateway["port"]) == (front.address, traefik.SSH)
    size = 32 * what_users_do.MIB
    known = release.place / "known_hosts"
    async with front.job("entered", "sleep 1000") as name:
        inside = await release.ssh(name, f"head -c {size} /dev/zero | tee copy | wc -c >&2; stat -c %s copy; exit 7")
        assert (inside.code, inside.out) == (7, f"{size}\n"), inside.err
        assert str(size) in inside.err
        true = known.read_text()
        other = (release.place / "key.pub").read_text().strip()
        known.write_text(true.replace(gateway["hostKey"], other))
        refused = await release.ssh(name, "true")
        known.write_text(true)
    assert refused.code == 255
    assert "Host key verification failed" in refused.err


async def test_nobody_else_reaches_the_backend_past_the_door(front: Front) -> None:
    async with what_users_do.stranger(front) as (stranger, at):
        await stranger.is_shut_out(at.values())
