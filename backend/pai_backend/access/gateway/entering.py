"""Behind the login: the task's leg that it is joined to, or the streams of its jumps, or why there is none."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pai_backend.access.broker.rights import EVERYTHING, Limits
from pai_backend.access.gateway import names
from pai_backend.access.gateway.activity import ChannelRequest, LoginActivity
from pai_backend.access.gateway.door import Door
from pai_backend.access.gateway.jump import TaskJump
from pai_backend.access.gateway.legs import ClientLeg, TaskLeg
from pai_backend.access.gateway.names import EntryPoint, LoginRefused
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.proof import ProvenCredential
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.gateway.sessions import Sessions
from pai_backend.access.gateway.upstream import TaskConnector
from pai_backend.model.ids import JobUid, TaskUid

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

SSH_PORT = 22  # what a client that jumps asks for, whatever port the task has

FAULT = LoginRefused("Internal error of the gateway; see its log. Try again in a moment.", RefusalReason.FAULT)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EntryContext:
    """What it takes to reach a task."""

    options: GatewayOptions
    store: Store
    upstream: TaskConnector
    entries: WeakValueDictionary[TaskUid, EntryPoint] = field(default_factory=WeakValueDictionary)
    """What logins to the same task share, as long as one has it."""

    def shared(self, entry: EntryPoint) -> EntryPoint:
        """The same entry as other logins have, if they have an equal one."""
        known = self.entries.get(entry.task)
        if known != entry:
            self.entries[entry.task] = known = entry
        return known


class Entering(ABC):
    """The tasks of one login. ``lost`` is called when the task's leg has ended, whichever side ended it."""

    def __init__(
        self, room: EntryContext, front: ClientLeg, who: ProvenCredential, door: Door, lost: Callable[[], None]
    ) -> None:
        self.door = door
        self.sessions = Sessions()
        self.activity = LoginActivity()
        self.visited: dict[TaskUid, EntryPoint] = {}
        """Every task that was entered, whether it still is or not."""
        self.refusal = ""
        """Why there is no task to go to, for the session that asks."""
        self._room, self._front, self._lost = room, front, lost
        self._credential, self._public_key = who.credential, who.public_key
        self._back: TaskLeg | None = None
        self._main: tuple[EntryPoint, Limits] | None = None
        self._jumps: list[tuple[EntryPoint, Limits]] = []
        self._ways: dict[str, tuple[EntryPoint, TaskJump]] = {}
        """Streams that were opened for a host, and are taken by the channel that asked for it."""

    @property
    def entries(self) -> Collection[tuple[EntryPoint, Limits]]:
        """The tasks, and what may be done in them."""
        return (*([self._main] if self._main else ()), *self._jumps)

    @property
    def is_entered(self) -> bool:
        """Whether the login has the task that it named."""
        return self._back is not None

    async def enter(self) -> EntryPoint | LoginRefused:
        """Open the task's leg and join it to the client's; the reason when that cannot be."""
        try:
            entry, limits = await self._entry(self.door)
            await self._open(entry, limits)
        except LoginRefused as exc:
            return self._refuse(exc)
        except Exception:
            log.exception("a login failed inside the gateway name=%s", names.plain(self.door.text))
            return self._refuse(FAULT)
        return entry

    def _refuse(self, refused: LoginRefused) -> LoginRefused:
        self._main, self.refusal = None, str(refused)
        return refused

    async def _entry(self, door: Door) -> tuple[EntryPoint, Limits]:
        entry, limits = await door.entry(self._credential)
        return self._room.shared(entry), limits

    async def _open(self, entry: EntryPoint, limits: Limits) -> None:
        room = self._room
        self._main = entry, limits
        back = await room.upstream.open(entry, self._back_lost)
        if not self._front.alive:
            back.close()
            return
        if not back.alive:  # lost in the moment between its login and now
            raise LoginRefused(f"The connection to {entry.name} was lost. Connect again.", RefusalReason.UNREACHABLE)
        self._back = back
        self.visited[entry.task] = entry
        self._join(back, entry, limits)

    @abstractmethod
    def _join(self, back: TaskLeg, entry: EntryPoint, limits: Limits) -> None:
        """Let what the client asks for within its limits reach the task."""

    def _back_lost(self) -> None:
        if self._back is not None:
            self._lost()

    # ---- jump mode -----------------------------------------------------------------------------
    async def prepare_jump(self, host: str) -> EntryPoint | LoginRefused | None:
        """Open the way to a task's SSH server; the reason when it cannot be reached; None for a host that is no name of
        a task, or of one that this login may not know of: that is left to the task it enters, where it can be a peer.
        """
        door = Door(self._room.store, host)
        try:
            try:
                entry, limits = await self._entry(door)
            except LoginRefused as exc:
                if door.job_seen is None or exc.reason is RefusalReason.DENIED:
                    return None
                raise
            await self._open_way(host, entry, limits)
        except LoginRefused as exc:
            self.refusal = str(exc)
            return exc
        except Exception:
            log.exception("a jump failed inside the gateway name=%s", names.plain(host))
            self.refusal = str(FAULT)
            return FAULT
        return entry

    async def _open_way(self, host: str, entry: EntryPoint, limits: Limits) -> None:
        if limits != EVERYTHING:
            raise LoginRefused(
                "This login is restricted, and jumps cannot be. Connect without a jump.", RefusalReason.DENIED
            )
        channel = await self._room.upstream.open_jump(entry, self._public_key)
        if host in self._ways:  # opened for a channel that never was
            self._ways[host][1].close()
        self._ways[host] = entry, channel
        if not self._front.alive:
            self.close()

    def take_way(self, host: str, port: int) -> tuple[TaskJump, Callable[[], None]] | None:
        """The way that was opened for a host, and what to call at its end; None where there is none."""
        if port != SSH_PORT or host not in self._ways:
            return None
        entry, channel = self._ways.pop(host)
        jump = entry, EVERYTHING
        self.visited[entry.task] = entry
        self._jumps.append(jump)
        self.activity.note(ChannelRequest("jump"))
        return channel, lambda: self._jumps.remove(jump)

    @property
    def terminal_job(self) -> tuple[JobUid, int | None] | None:
        """The job that terminals of this login are in, with its idle timeout, if any; None: none is told."""
        return None

    def say_on_terminals(self, text: str) -> bool:
        """Show a line on terminals of this login; False where that cannot be done beside what the task says."""
        return False

    def close(self) -> None:
        """The client is gone."""
        if self._back is not None:
            self._back.close()
        for _, channel in self._ways.values():
            channel.close()


def reachable(entry: EntryPoint, limits: Limits) -> set[int]:
    """The ports that a limited login may reach. Never the SSH server's own, which would let it do everything."""
    labels = set(limits.ports or ()) - {names.SSH_LABEL}
    return {port for label in labels for port in entry.placement.ports.get(label, ())}
