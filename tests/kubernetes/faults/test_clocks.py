"""A backend whose clock is an hour off: how long something lasts is judged by the cluster's time, not by its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import patient, stopped
from tests.kubernetes.faults.product import Product, Site, product_on

pytestmark = pytest.mark.asyncio(loop_scope="session")


def off_by(shift: str) -> dict[str, str]:
    """Variables for processes whose clock differs so."""
    program = shutil.which("faketime")
    assert program, "faketime is not installed; `tools/system-packages kubernetes` installs it"
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {"LD_PRELOAD": str(library), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


async def stop_right(product: Product) -> None:
    """A task that is stopped is told as stopped."""
    long = await product.submit(stopped("stopped-in-time"))
    await product.running(long)
    await product.stop(long)
    await product.ended(long)


async def test_ahead_a_node_that_is_away_for_a_moment_is_given_its_time(
    site: Site, faulty: Cluster, tmp_path: Path
) -> None:
    async with product_on(site, tmp_path / "ahead", env=off_by("+1h"), patience={"node_s": 100}) as product:
        steady = await product.submit(patient("steady"))
        node = faulty.nodes[await product.running(steady)]
        await product.hand_in(3)
        await stop_right(product)
        await node.kill("kubelet")
        try:
            await product.until_away(node.name)
        finally:
            await node.start_kubelet()
            await faulty.kubectl.until_ready(node.name)
        await product.release(steady)
        await settled(product)


async def test_behind_a_node_that_does_not_come_back_is_given_up_in_time(
    site: Site, faulty: Cluster, tmp_path: Path
) -> None:
    async with product_on(site, tmp_path / "behind", env=off_by("-1h")) as product:
        moved = await product.submit(patient("moved", attempts=2))
        node = faulty.nodes[await product.running(moved)]
        await product.hand_in(3)
        await stop_right(product)
        await node.kill("kubelet")
        try:
            (other,) = {"carol", "dan"} - {node.name}
            await product.running(moved, other)
            await product.release(moved)
            await product.ended(moved)
        finally:
            await node.start_kubelet()
            await faulty.kubectl.until_ready(node.name)
        await settled(product)
