"""The engine ``containers``: the local engine, over tasks that run in containers."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pai_backend.engine.base import Connection, EngineError
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.containers.image_store import ContainerImages
from pai_backend.engine.containers.ledger import ContainerDirectories
from pai_backend.engine.images import Image
from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.engine import LOG_BYTES, LocalEngine
from pai_backend.engine.local.shim import container_folder as folder
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


_CLONE_NEWNET: Final = 0x40000000  # linux/sched.h; os.setns is there from Python 3.12 on
CONNECT_S: Final = 10.0


async def dial(directory: Path, port: int) -> Connection:
    """A byte stream to the port in the container of the task with this directory. Raises EngineError.

    A thread of its own enters the container's network for the moment of one connect; the socket then works everywhere.
    Source: setns(2), network_namespaces(7). Root only.
    """
    loop = asyncio.get_running_loop()
    made: asyncio.Future[socket.socket] = loop.create_future()

    def tell(result: socket.socket | OSError) -> None:
        if made.cancelled():
            if isinstance(result, socket.socket):
                result.close()
        elif isinstance(result, OSError):
            made.set_exception(result)
        else:
            made.set_result(result)

    def connect() -> None:
        try:
            result: socket.socket | OSError = _connected(directory, port)
        except OSError as error:
            result = error
        except ValueError:  # the container is just being made
            result = ProcessLookupError(0, "its container does not run yet")
        loop.call_soon_threadsafe(tell, result)

    # Not one of a pool: it does not come back from where it goes.
    threading.Thread(target=connect, name="pai-dial", daemon=True).start()
    try:
        connection = await made
        reader, writer = await asyncio.open_connection(sock=connection)
    except OSError as error:
        raise EngineError(
            f"nothing answers on port {port} of task {directory.name}: {error.strerror or error}"
        ) from error
    return Connection(reader, writer)


def _connected(directory: Path, port: int) -> socket.socket:
    start = (directory / layout.CONTAINER / folder.BEGAN).read_text("ascii")  # written when INIT is whole
    pid = int((directory / layout.CONTAINER / folder.INIT).read_text("ascii"))
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        if not start or processes.start_time(pid) != start:  # after it was opened: so it is that one's
            raise ProcessLookupError(0, "its container has ended")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(network, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(network)
    try:
        made = socket.create_connection((layout.LOOPBACK, port), CONNECT_S)
    except ConnectionRefusedError as refused:
        try:
            made = socket.create_connection((layout.LOOPBACK_6, port), CONNECT_S)
        except OSError:
            raise refused from None
    made.setblocking(False)
    return made
