"""What logins to the same task share."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import cast

from pai_backend.access.gateway.entering import EntryContext
from pai_backend.access.gateway.names import EntryPoint
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.upstream import TaskConnector
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_placement


def entry(port: int) -> EntryPoint:
    """Where a task was found; each look at the store makes it anew."""
    job = make_job("demo")
    placement = make_placement(ports={"ssh": (port,)})
    return EntryPoint(job.uid, job.user, job.tasks[0].uid, "demo worker-0", "demo--worker-0", placement, port)


def room() -> EntryContext:
    return EntryContext(GatewayOptions(), cast("Store", None), cast("TaskConnector", None))


def test_equal_entries_are_one_and_others_are_not() -> None:
    here = room()
    first = here.shared(entry(2201))
    assert here.shared(replace(first)) is first
    moved = here.shared(replace(first, port=2202))
    assert moved.port == 2202
    assert here.shared(replace(first, port=2202)) is moved
    assert here.shared(replace(first)).port == 2201


def test_an_entry_goes_with_its_last_login() -> None:
    here = room()
    held = here.shared(entry(2201))
    assert list(here.entries.values()) == [held]
    del held
    gc.collect()
    assert list(here.entries) == []
