"""Opening the leg from the gateway to a task: dial, pin the host key, log in with the gateway's key."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import asyncssh

from pai_backend.access.gateway.jump import TaskJump
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.names import EntryPoint, LoginRefused
from pai_backend.access.gateway.options import REKEY_BYTES, REKEY_S, GatewayOptions
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.keys import public_line
from pai_backend.engine.base import Connection, Engine, EngineError

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

# This leg does not leave the cluster: the cheapest of the strong algorithms first. Measured with
# asyncssh 2.24: aes128-gcm moves about twice what chacha20-poly1305 does, X25519 logs in fastest.
KEX = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr")

REDIAL_S = 5.0
"""How long a task that runs may not answer: the local agent, which all tasks of a node are entered through, may be
between two processes, and a new one has all ports within this time."""
REDIAL_PAUSE_S = 0.1

_NOBODY: tuple[list[bytes], ...] = ([], [], [])
"""Keys of servers, authorities and revoked keys that asyncssh is to know by itself: each task has its one key."""

log = logging.getLogger(__name__)


class TaskClient(asyncssh.SSHClient):
    """Recognises the task, and tells the login when its end of the connection is gone."""

    def __init__(self, task_key: bytes) -> None:
        self._task_key = task_key
        self.lost: Callable[[], None] = lambda: None
        """Whom to tell, once the gateway is logged in: what failed before that may be tried again."""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh at each exchange of keys for the one that the server has shown and proved."""
        return key.public_data == self._task_key

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh once, also when the login itself closed the connection."""
        self.lost()


class TaskConnector(ABC):
    """The way to tasks. What all connections to them have in common is made once: they are many, and mostly idle."""

    def __init__(self, options: GatewayOptions, store: Store, engine: Engine, client_key: asyncssh.SSHKey) -> None:
        self._options, self._store, self._engine, self._client_key = options, store, engine, client_key
        self._settings: dict[str, asyncssh.SSHClientConnectionOptions] = {}
        """By the algorithm of a task's host key; those that the backend makes are all of one."""

    async def open(self, entry: EntryPoint, lost: Callable[[], None]) -> TaskLeg:
        """Log in to the task. ``lost`` is called when the connection ends, whichever side ended it.

        Raises LoginRefused with a sentence for the user when the task does not answer in ``connect_timeout_s``,
        shows another host key than the one made for it, or does not let the gateway in. Cancellation-safe.
        """
        host_key = await self._store.task_keys.get(entry.slot)
        if host_key is None:
            raise _unreachable(f"The host key of {entry.name} is not known, so the task cannot be recognised.")
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                return await self._answered(entry, asyncssh.import_public_key(public_line(host_key)), lost)
        except EngineError as exc:
            raise _unreachable(f"Task {entry.name} cannot be reached: {exc}. Try again in a moment.") from exc
        except asyncssh.HostKeyNotVerifiable as exc:
            log.error("task %s at %s presented the wrong host key", entry.task, entry.placement.node)
            text = f"The host key of {entry.name} is wrong: another program answers at its address. Connection refused."
            raise _unreachable(text) from exc
        except TimeoutError as exc:
            raise _unreachable(f"The SSH server of {entry.name} does not answer. Try again in a moment.") from exc
        except (OSError, asyncssh.Error) as exc:
            log.warning("no SSH to task %s: %s", entry.task, type(exc).__name__)
            raise _unreachable(f"The SSH server of {entry.name} refused the gateway ({type(exc).__name__}).") from exc

    async def open_jump(self, entry: EntryPoint, public_key: str) -> TaskJump:
        """A way for a client's own SSH to the task, which accepts this key (a line of authorized_keys) there alone.

        Raises LoginRefused with a sentence for the user. Cancellation-safe.
        """
        jump = TaskJump()
        back = await self.open(entry, jump.lost)
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                await jump.begin(back, public_key)
        except (asyncssh.Error, OSError, TimeoutError) as exc:
            back.close()
            log.warning("no jump to task %s: %s", entry.task, exc)
            text = (
                f"Task {entry.name} does not support jumps: it was started by an older version. "
                "Start it again, or do not jump."
            )
            raise _unreachable(text) from exc
        except BaseException:
            back.close()
            raise
        return jump

    async def _answered(self, entry: EntryPoint, task_key: asyncssh.SSHKey, lost: Callable[[], None]) -> TaskLeg:
        """Log in, again for ``REDIAL_S`` where nothing answers or the connection breaks."""
        loop = asyncio.get_running_loop()
        end = loop.time() + REDIAL_S
        while True:
            try:
                return await self._login(entry, task_key, lost)
            except (EngineError, OSError, asyncssh.ConnectionLost):
                if loop.time() >= end:
                    raise
            await asyncio.sleep(REDIAL_PAUSE_S)

    async def _login(self, entry: EntryPoint, task_key: asyncssh.SSHKey, lost: Callable[[], None]) -> TaskLeg:
        settings = await self._settings_for(task_key.algorithm.decode("ascii"))
        connection = await self._engine.dial(entry.placement, entry.task, entry.port)
        client = TaskClient(task_key.public_data)
        back = await self._connected(connection, settings, client)
        if not back.alive:
            raise asyncssh.ConnectionLost("the connection broke at its beginning")
        client.lost = lost
        return back

    @abstractmethod
    async def _connected(
        self, connection: Connection, settings: asyncssh.SSHClientConnectionOptions, client: TaskClient
    ) -> TaskLeg:
        """A leg that is logged in over these streams. Raises what has ended it before that."""

    async def _settings_for(self, algorithm: str) -> asyncssh.SSHClientConnectionOptions:
        if algorithm not in self._settings:
            settings: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
                host="task",  # asyncssh wants to know; a stream that is passed on by others has no address of its own
                config=None,
                known_hosts=_NOBODY,
                server_host_key_algs=[algorithm],
                username=self._options.task_user,
                client_keys=[self._client_key],
                agent_path=None,
                preferred_auth=["publickey"],
                kex_algs=list(KEX),
                encryption_algs=list(CIPHERS),
                compression_algs=None,
                keepalive_interval=self._options.keepalive_s,
                keepalive_count_max=self._options.keepalive_count,
                login_timeout=self._options.connect_timeout_s,
                rekey_bytes=REKEY_BYTES,
                rekey_seconds=REKEY_S,
                client_version="jupyter-pai-gateway",
            )
            self._settings[algorithm] = settings
        return self._settings[algorithm]


def _unreachable(text: str) -> LoginRefused:
    return LoginRefused(text, RefusalReason.UNREACHABLE)
