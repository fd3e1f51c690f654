"""The addresses of an attempt's tasks by name, kept current in the ConfigMap that their launchers read (ADR 0014).

Only pods that carry the annotation of ``naming.PEERS`` take part: the launcher keeps their /etc/hosts. The ConfigMap is
written when each of them has its address, or when that takes long, with those that are known; pods are touched, so that
their kubelets look at once, only when the list is complete. A task that is gone keeps its last address there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.failures import ApiNotFound
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind, places_of
from pai_backend.engine.kubernetes.status.view import part

_log = logging.getLogger(__name__)

COMPLETE: Final = "# complete"
"""The last line of a hosts file that has all tasks which are placed."""
PARTIAL_S: Final = 5.0  # so long a list waits for the rest of its addresses before it is written without them
AGAIN_S: Final = 5.0  # before a list is written again that the cluster refused


@dataclass(frozen=True)
class Peer:
    """One pod of an attempt as it was last seen."""

    pod: str
    host: str
    """Its name among its peers."""
    run: int
    """Which run of its slot it is; the latest counts."""
    address: str
    """Of the pod; empty while its network is not made."""
    awaits: int
    """How many tasks were placed when it was made, itself included."""
    has: str
    """Digest of the hosts that its kubelet was last told to look at."""
    over: bool


def peer_of(pod: Object) -> Peer | None:
    """What a pod is among its peers; None for one whose launcher leaves /etc/hosts alone."""
    about, status = metadata(pod), part(pod, "status")
    notes, labels = part(about, "annotations"), part(about, "labels")
    awaits, index = str(notes.get(naming.PEERS) or ""), str(labels.get(naming.INDEX) or "")
    run = str(notes.get(naming.TASK) or "").rpartition("-")[2]
    if not (awaits.isdecimal() and index.isdecimal() and run.isdecimal()):
        return None
    return Peer(
        pod=name_of(pod),
        host=host_name(str(notes.get(naming.ROLE) or ""), int(index)),
        run=int(run),
        address=str(status.get("podIP") or ""),
        awaits=int(awaits),
        has=str(notes.get(naming.HOSTS) or ""),
        over=status.get("phase") in ("Failed", "Succeeded") or "deletionTimestamp" in about,
    )


@dataclass
class Roll:
    """The addresses of an attempt: a pure value over what was seen of its pods."""

    peers: dict[str, Peer] = field(default_factory=dict)
    """By the name of the pod."""
    gone: dict[str, str] = field(default_factory=dict)
    """Name -> last address of tasks whose pods are not there."""

    def see(self, peer: Peer) -> bool:
        """Take a pod over as it is now; whether that may change the list, or which pods need it."""
        before = self.peers.get(peer.pod)
        self.peers[peer.pod] = peer
        return before is None or (before.address, before.over) != (peer.address, peer.over)

    def lose(self, pod: str) -> None:
        """The pod is not there any more; its address stands until its name has another."""
        peer = self.peers.pop(pod, None)
        if peer is not None and peer.address:
            self.gone[peer.host] = peer.address

    def recall(self, addresses: Mapping[str, str]) -> None:
        """Take over what was written earlier, for tasks whose pods were not seen."""
        self.gone = {**addresses, **self.gone}

    def addresses(self) -> dict[str, str]:
        """Name -> address; a task that runs again has none until its new pod has."""
        latest: dict[str, Peer] = {}
        for peer in self.peers.values():
            if peer.host not in latest or latest[peer.host].run < peer.run:
                latest[peer.host] = peer
        known = {**self.gone, **{host: peer.address for host, peer in latest.items()}}
        return {host: address for host, address in known.items() if address}

    @property
    def complete(self) -> bool:
        """Whether no task waits for an address that is still to come."""
        awaited = max((peer.awaits for peer in self.peers.values()), default=0)
        coming = any(not peer.address and not peer.over for peer in self.peers.values())
        return not coming and len(self.addresses()) >= awaited

    def text(self) -> str:
        """Lines of /etc/hosts, an address and a name, and a last one when they are complete."""
        lines = [f"{address}\t{host}\n" for host, address in sorted(self.addresses().items())]
        return "".join(lines) + (f"{COMPLETE}\n" if self.complete else "")

    def to_touch(self, digest: str) -> Iterator[Peer]:
        """Pods that run, or will, and whose kubelets have another list."""
        return (peer for peer in self.peers.values() if not peer.over and peer.has != digest)


def addresses_in(text: str) -> dict[str, str]:
    """Name -> address of a list as :meth:`Roll.text` writes it."""
    fields = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {host: address for address, host in fields}


@dataclass
class _Attempt:
    """An attempt whose list is kept."""

    places: ApiPaths
    roll: Roll = field(default_factory=Roll)
    written: str | None = None
    """What the ConfigMap has; None until that is known."""
    stale: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[None] | None = None


class HostsKeeper:
    """Keeps the lists of all attempts whose pods it is shown."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._attempts: dict[str, _Attempt] = {}

    def note(self, pod: Object, *, gone: bool) -> None:
        """A pod is as given, or was so before it went. To be called on the loop; the writing goes on by itself."""
        peer, owner = peer_of(pod), _owner(pod)
        if peer is None or not owner:
            return
        attempt = self._attempts.setdefault(owner, _Attempt(places_of(pod)))
        if gone:
            attempt.roll.lose(peer.pod)
            if not attempt.roll.peers:
                self._drop(owner)
            return
        if attempt.roll.see(peer):
            attempt.stale = True
            attempt.changed.set()
            if attempt.work is None:
                attempt.work = asyncio.create_task(self._keep(owner, attempt))

    async def aclose(self) -> None:
        """Stop writing."""
        works = [attempt.work for attempt in self._attempts.values() if attempt.work is not None]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        self._attempts.clear()

    def _drop(self, owner: str) -> None:
        work = self._attempts.pop(owner).work
        if work is not None:
            work.cancel()

    async def _keep(self, owner: str, attempt: _Attempt) -> None:
        """Write until nothing is new."""
        try:
            while attempt.stale:
                try:
                    if attempt.written is None and not await self._read(owner, attempt):
                        return
                    await _settled(attempt)
                    attempt.stale = False
                    await self._write(owner, attempt)
                except EngineError as error:
                    _log.warning("the addresses of the tasks of %s cannot be written now: %s", owner, error)
                    attempt.stale = True
                    attempt.changed.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(AGAIN_S):
                            await attempt.changed.wait()
        finally:
            attempt.work = None

    async def _read(self, owner: str, attempt: _Attempt) -> bool:
        """Recall what was written before us; whether the ConfigMap is there."""
        found = await find(self._calls, attempt.places.one(ResourceKind.CONFIG_MAP, owner))
        if found is None:
            return False
        attempt.written = str(part(found, "data").get(layout.HOSTS) or "")
        attempt.roll.recall(addresses_in(attempt.written))
        return True

    async def _write(self, owner: str, attempt: _Attempt) -> None:
        """Put the list where launchers read it, and touch the pods whose kubelets must look when it is complete."""
        text = attempt.roll.text()
        if text != attempt.written:
            try:
                path = attempt.places.one(ResourceKind.CONFIG_MAP, owner)
                await self._calls.patch(path, {"data": {layout.HOSTS: text}}, Patch.MERGE)
            except ApiNotFound:
                return  # the attempt is being removed
            attempt.written = text
        if attempt.roll.complete:
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            touches = [self._touch(attempt.places, peer.pod, digest) for peer in attempt.roll.to_touch(digest)]
            await asyncio.gather(*touches)

    async def _touch(self, places: ApiPaths, pod: str, digest: str) -> None:
        with contextlib.suppress(ApiNotFound):  # it went meanwhile
            path = places.one(ResourceKind.POD, pod)
            await self._calls.patch(path, {"metadata": {"annotations": {naming.HOSTS: digest}}}, Patch.MERGE)


async def _settled(attempt: _Attempt) -> None:
    """Wait until the list is complete, but not long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PARTIAL_S):
            while not attempt.roll.complete:
                attempt.changed.clear()
                await attempt.changed.wait()


def _owner(pod: Object) -> str:
    """The ConfigMap of its attempt."""
    owners = metadata(pod).get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each.get("kind") == "ConfigMap"), "")
