"""The commands by which docs/engine-kubernetes.md lets an administrator see whether policies are enforced."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import AsyncIterator

import pytest

from tests.docs.pages import fences
from tests.kubernetes.cluster import images
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import run

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE, FIRST = "docs/engine-kubernetes.md", "kubectl create namespace try-policies"
TABLE = ("--table", "mangle")


@contextlib.asynccontextmanager
async def unguarded(cluster: Cluster) -> AsyncIterator[None]:
    """Nobody asks the enforcer for the length of a block, as on a network that knows no policies."""
    nodes = list(cluster.nodes.values())
    rules = [(await node.run("iptables-save", *TABLE)).out for node in nodes]
    for node in nodes:
        await node.run("iptables", "--wait", *TABLE, "--flush", "FORWARD")
    try:
        yield
    finally:
        for node, saved in zip(nodes, rules, strict=True):
            restored = await node.run("iptables-restore", "--wait", given=saved)
            assert restored.code == 0, restored.err


async def said_by_the_page(cluster: Cluster) -> list[str]:
    """What its commands print of the two pods, with an image that the nodes have and a namespace of their own."""
    (fence,) = [each for each in fences(PAGE) if each.first == FIRST]
    text = fence.text.replace("--image=busybox", f"--image={images.BUSYBOX}")
    text = text.replace("try-policies", f"try-{uuid.uuid4().hex[:8]}")
    path = f"PATH={cluster.programs}{os.pathsep}{os.environ['PATH']}"
    said = await run("env", path, f"KUBECONFIG={cluster.kubeconfig}", "bash", "-euc", text, limit_s=240)
    return [line for line in said.splitlines() if line.startswith(("open:", "shut:"))]


async def test_a_network_that_enforces_policies_is_told_from_one_that_does_not(guarded: Cluster) -> None:
    assert await said_by_the_page(guarded) == ["open: reached", "shut: "]
    async with unguarded(guarded):
        assert await said_by_the_page(guarded) == ["open: reached", "shut: reached"]
    assert await said_by_the_page(guarded) == ["open: reached", "shut: "]
