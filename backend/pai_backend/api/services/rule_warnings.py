"""What the owner of a job was warned of by its longest run and by the rules of its virtual cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pai_backend.model.job import Job
from pai_backend.model.text import in_sentences

if TYPE_CHECKING:
    from pai_backend.store.sql import Store


async def rule_warning(store: Store, job: Job) -> str:
    """The warnings that hold for the job's attempt, in words; empty: none."""
    ending = (await store.rule_clocks.ending([job.uid])).get(job.uid)
    underuse = (await store.rule_clocks.underuse([job.uid])).get(job.uid)
    kept = [each for each in (ending, underuse) if each is not None and each.attempt == job.attempt]
    return in_sentences([each.text for each in kept])
