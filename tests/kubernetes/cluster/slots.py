"""Which of the clusters on this machine is whose: a numbered slot with a directory and a lock.

Every process that uses a cluster holds its lock, shared. What a killed test run leaves behind is a directory whose lock
nobody holds: whoever claims a slot next removes it first. A cluster that was told to stay has a file ``kept``.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.cluster import network, processes
from tests.kubernetes.cluster.addresses import SLOTS, Addresses

# Not below the checkout or the cache: slots stand for what the whole machine has once, such as addresses.
ROOT = Path("/var/tmp/jupyter-pai-clusters")
_KEPT = "kept"

Sweep = Callable[["Slot"], Awaitable[None]]


class NoSlot(Exception):
    """Every slot is in use."""


@dataclass(frozen=True)
class Slot:
    """A slot that this process uses, or looks at."""

    number: int
    directory: Path
    lock: int = -1

    @property
    def addresses(self) -> Addresses:
        """What belongs to it."""
        return Addresses(self.number)

    @property
    def kept(self) -> bool:
        """Whether it stays although nobody uses it. After a restart of the machine nothing of it is left to keep."""
        return (self.directory / _KEPT).exists() and processes.running(self.directory)

    def keep(self) -> None:
        """Let it stay until it is told to stop."""
        (self.directory / _KEPT).touch()

    def forget(self) -> None:
        """Let it go with its last user, or with the next who looks for a slot."""
        (self.directory / _KEPT).unlink(missing_ok=True)


def slots(root: Path = ROOT) -> Iterator[Slot]:
    """All slots that have something in them."""
    for number in range(SLOTS):
        if (root / str(number)).exists():
            yield Slot(number, root / str(number))


async def claim(sweep: Sweep, root: Path = ROOT) -> Slot:
    """A free slot with an empty directory; what is left of clusters that nobody uses is swept. Raises NoSlot."""
    async with _claiming(root):
        mine: Slot | None = None
        for number in range(SLOTS):
            slot = _free(root, number)
            if slot is None:
                continue
            if slot.directory.exists():
                await sweep(slot)
            if mine is not None or await network.taken(slot.addresses):
                os.close(slot.lock)
                continue
            slot.directory.mkdir(mode=0o700)
            fcntl.flock(slot.lock, fcntl.LOCK_SH)
            mine = slot
        if mine is None:
            raise NoSlot(f"all {SLOTS} slots below {root} are in use; `make cluster-stop` ends those that were kept")
        return mine


async def sweep_unused(sweep: Sweep, root: Path = ROOT) -> int:
    """Remove what is in slots that nobody uses and nobody keeps; how many that were."""
    swept = 0
    async with _claiming(root):
        for number in range(SLOTS):
            slot = _free(root, number)
            if slot is None:
                continue
            if slot.directory.exists():
                await sweep(slot)
                swept += 1
            os.close(slot.lock)
    return swept


async def join(number: int, root: Path = ROOT) -> Slot:
    """Use a cluster that another process has started and still uses, or keeps."""
    async with _claiming(root):
        lock = _open(root, number)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return Slot(number, root / str(number), lock)


async def leave(slot: Slot, sweep: Sweep) -> None:
    """Use it no more; the last one to leave sweeps it, unless it is kept."""
    async with _claiming(slot.directory.parent):
        try:
            # Converting lets go of the shared lock first, so nobody holds on to it while waiting.
            fcntl.flock(slot.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            if not slot.kept:
                await sweep(slot)
        finally:
            os.close(slot.lock)


def _free(root: Path, number: int) -> Slot | None:
    """The slot, locked for this process alone; None when somebody uses it or it is kept."""
    lock = _open(root, number)
    slot = Slot(number, root / str(number), lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if slot.kept:
        os.close(lock)
        return None
    return slot


def _open(root: Path, number: int) -> int:
    return os.open(root / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)


@contextlib.asynccontextmanager
async def _claiming(root: Path) -> AsyncIterator[None]:
    """One process at a time gives slots away, takes or sweeps them."""
    await asyncio.to_thread(root.mkdir, mode=0o700, parents=True, exist_ok=True)
    lock = os.open(root / "claims.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
