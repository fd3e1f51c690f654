"""Wrong reflections, each breaking one law, that the property tests must reject."""

from __future__ import annotations

from pai_backend.engine.kubernetes.handover import Change, ObjectGone, Seen
from pai_backend.engine.kubernetes.objects import Object, uid_of, version_of
from pai_backend.engine.kubernetes.reflection import End, Reflection, Step


class ForgetsTheVanished(Reflection):
    """Does not say what a new list no longer holds."""

    def _replace(self, version: str) -> list[Change]:
        return [change for change in super()._replace(version) if not isinstance(change, ObjectGone)]


class KeepsTheVanished(Reflection):
    """Adds a new list to what it knows."""

    def _replace(self, version: str) -> list[Change]:
        known = dict(self._objects)
        changes = super()._replace(version)
        self._objects = {**known, **self._objects}
        return changes


class TakesHalfAList(Reflection):
    """Goes on with the pieces of a list that broke off."""

    def open(self) -> None:
        arriving = self._arriving
        super().open()
        self._arriving = arriving


class NeverDoubts(Reflection):
    """Goes on from its version whatever happens, also where that is no longer kept."""

    def ended(self, end: End) -> None:
        step = self.step
        super().ended(end)
        if step is Step.WATCH:
            self.step = Step.WATCH


class StartsFromTheFirstPage(Reflection):
    """Loses the version it has seen and replays from the list's."""

    def line(self, event: Object) -> list[Change]:
        version = self.version
        changes = super().line(event)
        if self.step is Step.WATCH and version:
            self.version = version
        return changes


class MissesWhatLeavesDuringAList(Reflection):
    """Takes no note of objects that are deleted while a list is streamed."""

    def _arrive(self, uid: str, obj: Object, *, deleted: bool) -> None:
        if not deleted:
            super()._arrive(uid, obj, deleted=False)


class TellsTheNewFirst(Reflection):
    """Says what a new list has before it says what is gone."""

    def _replace(self, version: str) -> list[Change]:
        return sorted(super()._replace(version), key=lambda change: isinstance(change, ObjectGone))


class SkipsWhatChanged(Reflection):
    """Takes an object that it knows for unchanged."""

    def _replace(self, version: str) -> list[Change]:
        before = {uid: version_of(obj) for uid, obj in self._objects.items()}
        changes = super()._replace(version)
        return [change for change in changes if not (isinstance(change, Seen) and uid_of(change.object) in before)]


MUTANTS = [
    ForgetsTheVanished,
    KeepsTheVanished,
    TakesHalfAList,
    NeverDoubts,
    StartsFromTheFirstPage,
    MissesWhatLeavesDuringAList,
    TellsTheNewFirst,
    SkipsWhatChanged,
]
