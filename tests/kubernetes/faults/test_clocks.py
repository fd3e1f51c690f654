"""Backends whose clocks are an hour off: how long something lasts is judged by the cluster's time, not by their own."""

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


async def test_a_node_that_is_away_is_given_its_time_and_no_more(
    site: Site, other_site: Site, faulty: Cluster, tmp_path: Path
) -> None:
    """By one that is ahead, and would give it up at once; by one that is behind, and would wait for an hour."""
    async with (
        product_on(site, tmp_path / "ahead", env=off_by("+1h"), patience={"node_s": 600}) as ahead,
        product_on(other_site, tmp_path / "behind", env=off_by("-1h")) as behind,
    ):
        steady, moved = patient("steady"), patient("moved", attempts=2)
        await faulty.kubectl("cordon", "dan")
        try:
            for product, wanted in ((ahead, steady), (behind, moved)):
                await stop_right(product)  # first: the node has room for two tasks
                await product.submit(wanted)
                await product.running(wanted, "carol")
        finally:
            await faulty.kubectl("uncordon", "dan")
        carol = faulty.nodes["carol"]
        await carol.kill("kubelet")
        try:
            await ahead.until_away("carol")
            await behind.running(moved, "dan")
            await behind.release(moved)
            await behind.ended(moved)
        finally:
            await carol.start_kubelet()
            await faulty.kubectl.until_ready("carol")
        await ahead.release(steady)
        await settled(ahead)
        await settled(behind)
