"""Taking a backend's tasks out of a cluster, when the backend is gone: nothing is left, and the namespace goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import Site, product_on
from tests.kubernetes.faults.test_databases import administer

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

KINDS = "pods,secrets,configmaps,services,networkpolicies"


async def left(site: Site) -> list[str]:
    """What of ours is there."""
    found = await site.kubectl("get", KINDS, "--selector=app.kubernetes.io/managed-by=jupyter-pai", "-o", "name")
    return found.split()


@pytest.mark.parametrize("terminating", [False, True], ids=["namespace stays", "namespace was deleted before"])
async def test_one_command_leaves_nothing_of_a_backend_that_is_gone(
    site: Site, tmp_path: Path, terminating: bool
) -> None:
    """Also where the namespace was deleted first, and has been waiting since for pods that nobody lets go."""
    gang = patient("gang")
    async with product_on(site, tmp_path / "backend") as product:
        await product.submit(gang)
        await product.running(gang)
        await product.probe()
        assert "lost its end" not in product.log()
    assert len(await left(site)) > 2
    if terminating:
        await site.kubectl("delete", "namespace", site.kubectl.namespace, "--wait=false")
    done = await administer("cluster", "remove", *site.arguments(None, {}))
    assert (done.returncode, done.stderr) == (0, ""), done
    if terminating:
        gone = ("wait", "--for=delete", "--timeout=120s", f"namespace/{site.kubectl.namespace}")
        await site.kubectl(*gone)
        await site.kubectl("create", "namespace", site.kubectl.namespace)  # for whoever cleans up
    else:
        await site.kubectl("wait", "--for=delete", "--timeout=60s", "pods", "--all")
        assert await left(site) == []
        assert (await administer("cluster", "remove", *site.arguments(None, {}))).stdout.startswith("0 objects")
