"""Wrong idle clocks, each breaking one law, that the property tests must reject."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pai_backend.lifecycle.idleness import Sight, Turn, looked
from pai_backend.model.idle import IdleClock, UseSource

After = tuple[IdleClock, Turn]


def counts_what_nobody_watched(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """After a restart the whole time of the outage is idleness."""
    if clock is not None:
        clock = clock.model_copy(update={"looked_at": sight.at})
    return looked(clock, _always_watching(sight), timeout)


def stops_without_a_warning(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """What would be warned is stopped."""
    after, turn = looked(clock, sight, timeout)
    return after, Turn.STOP if turn is Turn.WARN else turn


def believes_the_clocks_of_others(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """A use counts from when the machine that saw it believes it to have been."""
    after, turn = looked(clock, sight, timeout)
    return after.model_copy(update={"since": min([after.since, *sight.written.values()])}), turn


def takes_what_is_unread_for_use(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """A Jupyter server that does not answer keeps its job for ever."""
    after, turn = looked(clock, sight, timeout)
    return (
        (after.model_copy(update={"since": sight.at}), Turn.NONE)
        if UseSource.KERNELS in sight.unread
        else (after, turn)
    )


def takes_unread_gpus_for_rest(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """A training whose GPUs cannot be read is stopped."""
    return looked(clock, replace(sight, unread={}), timeout)


def counts_what_it_could_not_see(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """Looks that could not read the GPUs neither warn nor stop, but their time is idleness."""
    after, turn = looked(clock, sight, timeout)
    if clock is not None and after.held_since is not None and after.used_at == clock.used_at:
        after = after.model_copy(update={"since": clock.since, "warned_at": clock.warned_at})
    return after, turn


def begins_anew_after_a_failed_look(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """GPUs that cannot be read now and then keep their job for ever."""
    after, turn = looked(clock, sight, timeout)
    return (after.model_copy(update={"since": sight.at}), turn) if UseSource.GPU in sight.unread else (after, turn)


def never_stops(clock: IdleClock | None, sight: Sight, timeout: timedelta) -> After:
    """It warns for ever."""
    after, turn = looked(clock, sight, timeout)
    return after, Turn.NONE if turn is Turn.STOP else turn


def _always_watching(sight: Sight) -> Sight:
    return replace(sight, watching_since=datetime.min.replace(tzinfo=UTC))
