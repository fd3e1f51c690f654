"""The engine ``containers``: the local engine, over tasks that run in containers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pai_backend.engine.base import Connection
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.containers.dialing import dial
from pai_backend.engine.containers.image_store import ContainerImages
from pai_backend.engine.containers.ledger import ContainerDirectories
from pai_backend.engine.images import Image
from pai_backend.engine.local.engine import LOG_BYTES, LocalEngine
from pai_backend.model.container_settings import ContainerSettings
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node, Placement
from pai_backend.platform.disk_reserve import DiskReserve


class ImagesInThreads:
    """:class:`ContainerImages` for asyncio."""

    def __init__(self, images: ContainerImages) -> None:
        self._images = images

    async def list(self) -> Sequence[Image]:
        """As ``engine.images.ImageStore``."""
        return await asyncio.to_thread(self._images.list)

    async def remove(self, image: Image) -> None:
        """The same."""
        await asyncio.to_thread(self._images.remove, image)


class ContainerEngine(LocalEngine):
    """Runs tasks as containers of this machine; see ``pai_backend.engine.base.Engine`` for the promises."""

    def __init__(
        self,
        root: Path,
        nodes: Sequence[Node],
        settings: ContainerSettings,
        *,
        log_bytes: int = LOG_BYTES,
        most_processes: int = 0,
        held: bool = True,
        reserve: DiskReserve | None = None,
    ) -> None:
        """``held``: whether tasks are held to their memory, CPUs and ``most_processes``."""
        ledger = ContainerDirectories(root.absolute(), log_bytes, settings, most_processes=most_processes, held=held)
        super().__init__(root, nodes, reserve=reserve, ledger=ledger)
        self.images = ImagesInThreads(ledger.images)
        """What ``KeepsImages`` asks for."""

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """A byte stream to 127.0.0.1 in the task's container. Raises EngineError when nothing answers."""
        return await dial(self._ledger.live(uid), port)

    def task_address(self, node: Node, role: str, index: int) -> str:
        """The name that the tasks of a job have for each other."""
        return host_name(role, index)

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """None: each task has all ports to itself."""
        return set()
