"""Keeping cells for the first group of a lane when it has been passed over long enough.

The cells are those on which it could start soonest: groups that run are taken to end in the order in which they are
expected to, and it takes the first place that this opens. What is idle there, and what becomes idle, no group of the
same or a lower priority may take. No group is ended for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Keep
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.place import Option, Planner
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Plan
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import Ends
from pai_backend.scheduling.request import Entry, Group

Pick = tuple[int, Plan]


def keep_cells(
    ledger: Ledger, group: Group, options: Sequence[Option], limits: Limits | None, ends: Ends
) -> Keep | None:
    """The cells on which a guaranteed group could start soonest, to be kept for it; None when it could not on any.

    Costs one search per halving of the number of groups that run in its way: about ten among a thousand.
    """
    ledger.settle(options)
    found: Pick | None = None
    for option in options:
        assert option.quotas is not None
        going = sorted(
            (held for held in option.quotas.oldest_first() if _may_end(held)), key=lambda held: _expected(held, ends)
        )
        best = _soonest(ledger, group, option, limits, going)
        if best is not None and (found is None or best[0] < found[0]):
            found = best
    return None if found is None else ledger.keeping(group, found[1])


def is_good(held: Held) -> bool:
    """Whether the kept cells are healthy."""
    return not any(spot.mask & spot.node.broken for spot in held.spots)


def fits_elsewhere(ledger: Ledger, held: Held, options: Sequence[Option], limits: Limits | None) -> bool:
    """Whether a group that cells are kept for could start right now, on others or with others; changes nothing."""
    with ledger.trial():
        ledger.release(held.group.name)
        ledger.settle(options)
        return any(_place(ledger, held.group, option, limits, ()) is not None for option in options)


def _may_end(held: Held) -> bool:
    return held.state is not State.PREEMPTING


def _expected(held: Held, ends: Ends) -> tuple[bool, float, int]:
    """Known ends first, then the order in which groups started."""
    end = ends(held.group.name)
    return end is None, 0.0 if end is None else end.timestamp(), held.serial


def _soonest(ledger: Ledger, group: Group, option: Option, limits: Limits | None, going: Sequence[Held]) -> Pick | None:
    """The place that opens when the fewest of ``going``, from the first on, have ended. Bisected: more opens more."""
    low, high = 0, len(going)
    best = _place(ledger, group, option, limits, going)
    if best is None:
        return None
    while low < high:
        middle = (low + high) // 2
        plan = _place(ledger, group, option, limits, going[:middle])
        if plan is None:
            low = middle + 1
        else:
            best, high = plan, middle
    return high, best


def _place(ledger: Ledger, group: Group, option: Option, limits: Limits | None, ended: Sequence[Held]) -> Plan | None:
    gone = set(ended)

    def spare(held: Held) -> bool:
        return held in gone or (held.priority < 0 and _may_end(held))

    return Planner(ledger.holding, group, parts_of(group, group.least), limits).look(option, spare)


def to_keep_for(books: Books, entry: Entry) -> list[Keep] | None:
    """Decisions that keep cells for all groups of an entry; None when that is not possible for one of them."""
    found = []
    with books.ledger.trial():
        for group in entry.groups:
            allowed = None if group.ignore_suggested else books.decider.could_use(entry.led_by(group))
            options = check_group(books.ledger, group)
            keep = keep_cells(books.ledger, group, options, books.ledger.limits(allowed), books.ends)
            if keep is None:
                return None
            found.append(replace(keep, entry=entry) if group is entry.groups[-1] else keep)
            if group is not entry.groups[-1]:
                books.ledger.apply(keep, final=True)
    return found
