"""Terminals are told, once, what a rule of the virtual cluster is going to do to their job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.warning import Warnings
from pai_backend.model.ids import JobUid
from pai_backend.model.rule_clock import EndWarned, UnderuseClock
from pai_backend.store.rule_clocks import RuleKind
from pai_backend.testing.builders import T0, make_job
from tests.support.scripted_cluster import opened


class Terminal:
    """A login with a terminal in a job without an idle timeout."""

    def __init__(self, job: JobUid) -> None:
        self.terminal_job = job, None
        self.said: list[str] = []
        self.say_on_terminals: Callable[[str], None] = self.said.append


@pytest.mark.asyncio
async def test_each_warning_is_said_once_on_each_terminal(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        job = await store.jobs.submit(make_job(), b"", "", "", [])
        lease = await store.leadership.acquire("here", 60, T0)
        assert lease is not None
        logins = [Terminal(job.uid)]
        warnings = Warnings(store, lambda: cast("list[Login]", logins))
        await warnings._look()
        assert logins[0].said == []
        ending = EndWarned(attempt=0, ends_at=T0 + timedelta(hours=1), text="It ends.")
        await store.rule_clocks.keep(job.uid, RuleKind.ENDING, ending, None, T0, lease.epoch)
        idle = UnderuseClock(attempt=0, counted_from=T0, warned_at=T0, text="Its GPUs rest: 1 %.")
        await store.rule_clocks.keep(job.uid, RuleKind.UNDERUSE, idle, None, T0, lease.epoch)
        await warnings._look()
        later = idle.model_copy(update={"text": "Its GPUs rest: 2 %."})
        await store.rule_clocks.keep(job.uid, RuleKind.UNDERUSE, later, None, T0, lease.epoch)
        logins.append(Terminal(job.uid))
        await warnings._look()
        assert logins[0].said == ["It ends.", "Its GPUs rest: 1 %."]
        assert logins[1].said == ["It ends.", "Its GPUs rest: 2 %."]
        moved = ending.model_copy(update={"ends_at": T0 + timedelta(hours=2), "text": "It ends later."})
        await store.rule_clocks.keep(job.uid, RuleKind.ENDING, moved, None, T0, lease.epoch)
        await warnings._look()
        assert logins[0].said[2:] == ["It ends later."]
