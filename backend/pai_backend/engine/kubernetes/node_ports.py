"""Which ports of a node something listens on, for tasks on the node's own network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.nodes import node_of
from pai_backend.engine.kubernetes.places import node
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.pod_settings import PodGpuSettings

PROBE_S: Final = 1.0  # a port that nothing answers for so long counts as free: a kubelet refuses the pod if it is not


async def node_address(calls: Calls, name: str) -> str:
    """The address of a node. Raises ClusterErrors."""
    return node_of(await calls.get(node(name)), PodGpuSettings(), NodeReading()).address


async def answering(address: str, ports: Iterable[int]) -> set[int]:
    """Those of the ports that take a connection."""
    asked = list(ports)
    found = await asyncio.gather(*(_answers(address, port) for port in asked))
    return {port for port, answers in zip(asked, found, strict=True) if answers}


async def _answers(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(address, port)
    except OSError:  # a time-out is one, too
        return False
    writer.close()
    return True
