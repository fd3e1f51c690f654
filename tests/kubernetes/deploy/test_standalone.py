"""The release of one pod with SQLite: what it knows and what runs outlive its pod."""

from __future__ import annotations

import httpx
import pytest

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.deploy.release import LIMIT_S, Release

pytestmark = pytest.mark.asyncio(loop_scope="session")

VALUES = {"standalone": True}


async def test_a_job_goes_on_while_the_pod_is_replaced(release: Release) -> None:
    (before,) = (await release.pods("backend")).values()
    await release.submit("stays", "echo begun; sleep 1000")
    await release.until_log("stays", "begun")
    task = await release.task_pods("stays")
    await release.kubectl("delete", "pod", "-l", "app.kubernetes.io/component=backend")

    async def replaced() -> bool:
        try:
            return (await release.client.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    await until(replaced, "the new pod to be ready", LIMIT_S, 0.5)
    assert list((await release.pods("backend")).values()) != [before]
    assert await release.task_pods("stays") == task
    assert (await release.job("stays"))["state"] == "RUNNING"
    inside = await release.ssh("stays", "echo", "in")
    assert (inside.code, inside.out) == (0, "in\n"), inside.err
