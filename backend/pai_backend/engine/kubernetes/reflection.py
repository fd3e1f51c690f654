"""What a reflector makes of what it reads, and what it does next. Pure: no clock, no chance, no I/O.

A reflection is listing (in pages, or as a stream of events that a marked bookmark ends) or watching from a version.
The rules:

1. A watch that ends, however it ends, goes on from the last version seen. Source: in bursts the API server closes
   watches of slow readers 11 to 14 times without any fault (testbed, 2 of 14 runs); a list for each would be a storm.
2. Doubt means a new list: 410 (as a status or inside the stream), any other ERROR event, a line that is no event,
   silence, and three watches in a row that ended early and brought nothing.
3. A new list is compared with what was known: what is missing is gone, and said to be.
4. Failures in a row are counted, so that the caller can make longer and longer pauses. Only a watch that brought
   something, or lasted, restarts the count: a list alone does not, or a server that answers lists and ends every
   watch would be asked for lists without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pai_backend.engine.kubernetes.failures import AccessError, ClusterError, Invalid, Malformed, Unreachable
from pai_backend.engine.kubernetes.failures import ApiGone as VersionGone
from pai_backend.engine.kubernetes.handover import Change, ObjectGone, ResourceListed, Seen
from pai_backend.engine.kubernetes.objects import (
    INITIAL_EVENTS_END,
    Object,
    Slim,
    metadata,
    uid_of,
    version_of,
    without_managed_fields,
)

SETTLED_S = 30.0  # a watch that lasted this long was no failure, even if nothing happened
DOUBT = 3  # failures in a row after which a version is no longer trusted
STREAM_TRIES = 2  # streamed lists in a row that did not end as they should; pages from then on


class Step(StrEnum):
    """What to do next."""

    LIST = "list"  # in pages
    STREAM = "stream"  # a watch that begins with all objects
    WATCH = "watch"  # from the version


class StreamFault(Exception):
    """The stream cannot be relied on from this line on. ``gone``: because the version is no longer kept."""

    def __init__(self, message: str, *, gone: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.gone = gone
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Closed:
    """A watch came to its end, or the connection was cut, after that many seconds."""

    lived_s: float


@dataclass(frozen=True)
class Silent:
    """Not even a bookmark came for longer than bookmarks are apart."""


@dataclass(frozen=True)
class Full:
    """We stopped reading, because the consumer is behind."""


End = Closed | Silent | Full | StreamFault | ClusterError | AccessError


@dataclass
class _Arriving:
    """A list on its way: it replaces what is known only when it is whole."""

    objects: dict[str, Object] = field(default_factory=dict)
    departed: dict[str, Object] = field(default_factory=dict)  # deleted while the list was streamed


class Reflection:
    """A copy of the objects of one resource, and where it stands."""

    def __init__(self, resource: str, *, streaming: bool = True, slim: Slim = without_managed_fields) -> None:
        self.resource = resource
        self.step = Step.STREAM if streaming else Step.LIST
        self.version = ""
        self.rest = ""  # where the next page goes on; "" when a list is whole
        self.listed = False
        self.failures = 0
        self._objects: dict[str, Object] = {}
        self._slim = slim
        self._stream_tries = 0 if streaming else STREAM_TRIES
        self._arriving = _Arriving()
        self._version_at_opening = ""

    @property
    def objects(self) -> Mapping[str, Object]:
        """What is known, by uid. Not to be changed."""
        return self._objects

    def open(self) -> None:
        """The next step begins: nothing of an unfinished list is kept."""
        self._arriving = _Arriving()
        self.rest = ""
        self._version_at_opening = self.version

    def page(self, document: Object) -> list[Change]:
        """A page of a list. Raises StreamFault when it is not one; complete once ``rest`` is empty."""
        items, about = document.get("items"), metadata(document)
        try:
            if not isinstance(items, list) or not all(isinstance(obj, dict) for obj in items):
                raise Malformed("the API server's answer is not a list")
            for obj in items:
                self._arriving.objects[uid_of(obj)] = self._slim(obj)
            version = version_of(document)
        except Malformed as fault:
            raise StreamFault(str(fault)) from None
        self.rest = str(about.get("continue") or "")
        return [] if self.rest else self._replace(version)

    def line(self, event: Object) -> list[Change]:
        """An event of a watch or of a streamed list. Raises StreamFault when the stream must be given up."""
        kind, obj = event.get("type"), event.get("object")
        if not isinstance(obj, dict) or kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise _fault(kind, obj)
        try:
            version = version_of(obj)
            if kind == "BOOKMARK":
                return self._bookmark(obj, version)
            uid = uid_of(obj)
        except Malformed as fault:
            raise StreamFault(str(fault)) from None
        obj = self._slim(obj)
        if self.step is Step.STREAM:
            self._arrive(uid, obj, deleted=kind == "DELETED")
            return []
        self.version = version
        if kind == "DELETED":
            self._objects.pop(uid, None)
            return [ObjectGone(self.resource, obj, witnessed=True)]
        self._objects[uid] = obj
        return [Seen(self.resource, obj)]

    def ended(self, end: End) -> None:
        """The step is over: decide the next one and count the failure, if it was one."""
        if self.step is Step.STREAM and self._gives_up_streaming(end):
            self.step = Step.LIST
        match end:
            case Full():
                return
            case Closed(lived_s):
                if self.step is Step.WATCH and (self.version != self._version_at_opening or lived_s >= SETTLED_S):
                    self.failures = 0
                else:
                    self._fail(doubt=self.failures + 1 >= DOUBT)
            case Unreachable() | AccessError():
                self._fail(doubt=False)
            case ClusterError():
                refused_for_good = isinstance(end, VersionGone | Invalid)
                self._fail(doubt=refused_for_good or self.failures + 1 >= DOUBT)
            case Silent() | StreamFault():
                self._fail(doubt=True)

    def _fail(self, *, doubt: bool) -> None:
        self.failures += 1
        if doubt and self.step is Step.WATCH:
            self.step = Step.STREAM if self._stream_tries < STREAM_TRIES else Step.LIST

    def _gives_up_streaming(self, end: End) -> bool:
        """Whether pages are the better list from now on.

        A server that does not know streamed lists refuses them (400, 422), or, before 1.27, sends the objects and
        never the bookmark that ends them.
        """
        if isinstance(end, Invalid):
            self._stream_tries = STREAM_TRIES
        elif isinstance(end, Closed | Silent | StreamFault):
            self._stream_tries += 1
        return self._stream_tries >= STREAM_TRIES

    def _bookmark(self, obj: Object, version: str) -> list[Change]:
        if self.step is not Step.STREAM:
            self.version = version
            return []
        annotations = metadata(obj).get("annotations")
        ends = isinstance(annotations, dict) and annotations.get(INITIAL_EVENTS_END) == "true"
        if not ends:
            return []
        self._stream_tries = 0
        return self._replace(version)

    def _arrive(self, uid: str, obj: Object, *, deleted: bool) -> None:
        if deleted:
            self._arriving.objects.pop(uid, None)
            self._arriving.departed[uid] = obj
        else:
            self._arriving.objects[uid] = obj

    def _replace(self, version: str) -> list[Change]:
        """The list is whole: what it says is now known, and the changes are those against what was known."""
        before, arrived = self._objects, self._arriving
        changes: list[Change] = [
            ObjectGone(self.resource, arrived.departed.get(uid, obj), witnessed=uid in arrived.departed)
            for uid, obj in before.items()
            if uid not in arrived.objects
        ]
        changes += [
            ObjectGone(self.resource, obj, witnessed=True) for uid, obj in arrived.departed.items() if uid not in before
        ]
        for uid, obj in arrived.objects.items():
            known = before.get(uid)
            if known is None or version_of(known) != version_of(obj):
                changes.append(Seen(self.resource, obj))
        if not self.listed:
            changes.append(ResourceListed(self.resource))
        self._objects, self._arriving = arrived.objects, _Arriving()
        self.version, self.listed, self.step = version, True, Step.WATCH
        self._version_at_opening = (
            version  # what a streamed list brought is not what the watch after it brought (rule 4)
        )
        return changes


def _fault(kind: object, obj: object) -> StreamFault:
    """What an ERROR event, or a line that is no event, means."""
    if kind != "ERROR" or not isinstance(obj, dict):
        return StreamFault("a line of the watch is not an event")
    code, details = obj.get("code"), obj.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return StreamFault(
        f"the watch ends with an error: {code} {obj.get('reason') or ''}".rstrip(),
        gone=code == 410,
        retry_after_s=float(seconds) if isinstance(seconds, int) and seconds > 0 else None,
    )
