"""A model of how an API server lists and watches, in a few lines, and a reader that drives a reflection against it.

Everything happens in the order of a script of acts, so that Hypothesis can find and shrink the script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_backend.engine.kubernetes.failures import ApiGone as VersionGone
from pai_backend.engine.kubernetes.failures import Busy, Unreachable
from pai_backend.engine.kubernetes.handover import Change, Handover, ObjectGone, ResourceListed, Seen
from pai_backend.engine.kubernetes.objects import INITIAL_EVENTS_END, Object, name_of, uid_of, version_of
from pai_backend.engine.kubernetes.reflection import Closed, End, Reflection, Silent, Step, StreamFault

PAGE = 2


@dataclass
class ModelServer:
    """Objects by name, every change with its version, and how far back changes are kept."""

    objects: dict[str, Object] = field(default_factory=dict)
    history: list[tuple[int, Object]] = field(default_factory=list)  # version, event
    last_states: dict[str, Object] = field(default_factory=dict)  # of deleted objects, by uid
    version: int = 1
    kept_from: int = 0

    def write(self, name: str) -> None:
        """Make the object, or change it."""
        old = self.objects.get(name)
        self.version += 1
        uid = uid_of(old) if old else f"{name}-{self.version}"
        self.objects[name] = _object(uid, name, self.version)
        self._note("MODIFIED" if old else "ADDED", self.objects[name])

    def delete(self, name: str) -> None:
        """Delete the object, if it is there; the event holds its last state, which no list ever showed."""
        old = self.objects.pop(name, None)
        if old is not None:
            self.version += 1
            last = _object(uid_of(old), name, self.version)
            self.last_states[uid_of(old)] = last
            self._note("DELETED", last)

    def compact(self) -> None:
        """Keep nothing of what was."""
        self.kept_from = self.version

    def since(self, version: int) -> list[Object] | None:
        """Events after a version; None when they are no longer kept."""
        if version < self.kept_from:
            return None
        return [event for at, event in self.history if at > version]

    def page(self, state: Sequence[Object], start: int, version: int) -> Object:
        """A page of a list that was taken at ``version``."""
        rest = str(start + PAGE) if start + PAGE < len(state) else ""
        return {
            "metadata": {"resourceVersion": str(version), "continue": rest},
            "items": list(state[start : start + PAGE]),
        }

    def _note(self, kind: str, obj: Object) -> None:
        self.history.append((self.version, {"type": kind, "object": obj}))


@dataclass(frozen=True)
class Act:
    """One step of a script. A turn reads ``lines`` lines (None: all) and ends as ``how`` says."""

    what: str  # write, delete, compact, turn, take
    name: str = ""
    lines: int | None = None
    how: str = "close"  # close, late, silent, error, gone, busy, away
    before: tuple[Act, ...] = ()  # what happens on the server while a list is read


class Reader:
    """Drives a reflection and notes what a consumer that takes now and then is told."""

    def __init__(self, reflection: Reflection, server: ModelServer) -> None:
        self.reflection = reflection
        self.server = server
        self.told: list[list[Change]] = []
        self.lists = 0
        self._handover = Handover()

    def play(self, acts: Sequence[Act]) -> None:
        """Do all that the script says."""
        for act in acts:
            match act.what:
                case "write":
                    self.server.write(act.name)
                case "delete":
                    self.server.delete(act.name)
                case "compact":
                    self.server.compact()
                case "take":
                    self.take()
                case _:
                    self.turn(act)

    def settle(self) -> None:
        """Turns without any failure until everything is read, then take."""
        for _ in range(6):
            self.turn(Act("turn", how="late"))
        self.take()

    def take(self) -> None:
        """The consumer takes what waits."""
        self.told.append(self._handover.take_nowait())

    def turn(self, act: Act) -> None:
        """One list or watch."""
        reflection = self.reflection
        reflection.open()
        if reflection.step is Step.LIST:
            end: End | None = self._list(act)
        else:
            end = self._stream(act)
        if end is not None:
            reflection.ended(end)

    def _list(self, act: Act) -> End | None:
        state, version = list(self.server.objects.values()), self.server.version
        pages = range(0, max(len(state), 1), PAGE)
        for number, start in enumerate(pages):
            if act.lines is not None and number >= act.lines:
                return _failure(act.how)
            self._put(self.reflection.page(self.server.page(state, start, version)))
            self.play(act.before)  # the server goes on while the list is read
        return None

    def _stream(self, act: Act) -> End:
        listing = self.reflection.step is Step.STREAM
        since = self._initial(act) if listing else self._later()
        if since is None:
            fault = StreamFault("410", gone=True)
            return VersionGone("410", status=410) if act.how == "gone" else fault
        for number, line in enumerate(since):
            if act.lines is not None and number >= act.lines:
                return _failure(act.how)
            try:
                self._put(self.reflection.line(line))
            except StreamFault as fault:
                return fault
        return Closed(600.0 if act.how == "late" else 0.5)

    def _later(self) -> list[Object] | None:
        found = self.server.since(int(self.reflection.version))
        return None if found is None else [*found, _bookmark(self.server.version)]

    def _initial(self, act: Act) -> Iterator[Object]:
        state, version = list(self.server.objects.values()), self.server.version
        for obj in state:
            yield {"type": "ADDED", "object": obj}
        self.play(act.before)  # events among the initial ones, before the mark
        early = self.server.since(version)
        yield from early or []
        yield _bookmark(self.server.version, ends=True)

    def _put(self, changes: list[Change]) -> None:
        self.lists += sum(isinstance(change, ResourceListed) for change in changes)
        self._handover.put(changes)


def check(reader: Reader) -> None:
    """The laws, after :meth:`Reader.settle`."""
    server = {uid_of(obj): version_of(obj) for obj in reader.server.objects.values()}
    mirrored = {uid: version_of(obj) for uid, obj in reader.reflection.objects.items()}
    assert mirrored == server, "what is mirrored is what is there"
    known: dict[str, str] = {}
    ended: set[str] = set()
    for batch in reader.told:
        for change in batch:
            match change:
                case Seen(_, obj):
                    assert uid_of(obj) not in ended, "what is gone is never seen again"
                    known[uid_of(obj)] = version_of(obj)
                case ObjectGone(_, last, witnessed):
                    assert uid_of(last) not in ended, "what is gone is gone once"
                    ended.add(uid_of(last))
                    known.pop(uid_of(last), None)
                    final = reader.server.last_states.get(uid_of(last))
                    assert final is not None, "only what was deleted is gone"
                    assert not witnessed or last == final, "a witnessed end is the last state"
        _check_names(batch)
    assert known == server, "the consumer knows what is there"
    assert reader.lists == 1, "the first list is told once"


def _check_names(batch: list[Change]) -> None:
    """Of objects with the same name, the end of the old one is told before the new one."""
    new: set[str] = set()
    for change in batch:
        if isinstance(change, Seen):
            new.add(name_of(change.object))
        elif isinstance(change, ObjectGone):
            later = [
                other for other in batch if isinstance(other, Seen) and name_of(other.object) == name_of(change.last)
            ]
            assert all(batch.index(other) > batch.index(change) for other in later), "an end comes before its successor"


def _object(uid: str, name: str, version: int) -> Object:
    metadata: dict[str, Any] = {"uid": uid, "name": name, "resourceVersion": str(version)}
    return {"metadata": metadata}


def _bookmark(version: int, *, ends: bool = False) -> Object:
    annotations = {INITIAL_EVENTS_END: "true"} if ends else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}


def _failure(how: str) -> End:
    ends: dict[str, End] = {
        "close": Closed(0.5),
        "late": Closed(600.0),
        "silent": Silent(),
        "error": StreamFault("an error"),
        "gone": VersionGone("410", status=410),
        "busy": Busy("503", status=503),
        "away": Unreachable("away", sent=False),
    }
    return ends[how]
