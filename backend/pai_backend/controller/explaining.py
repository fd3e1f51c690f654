"""Answers why jobs wait, for those who ask. It reads what the deciding loop knows, and changes nothing.

An explanation asks the scheduler many times, and while it does the controller does nothing else. Therefore only what
somebody asks is explained, one job after the other, and after each the explainer rests four times as long as it took:
however many ask, at most a fifth of the controller's time goes into answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from pai_backend.controller.ports import Placing
from pai_backend.controller.reconciler import SAFETY_S, Reconciler
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.jobs.why import why
from pai_backend.store.base import Store

log = logging.getLogger(__name__)

TOGETHER = 8
"""How many open questions are read at once."""
REST = 4
"""Rest after an answer, in times of what it took."""


class Explainer:
    """Answers the questions in the store during one tenure."""

    def __init__(
        self, store: Store, tenure: Reconciler, placing: Placing, *, epoch: int, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._placing = placing
        self._epoch = epoch
        self._clock = clock

    async def run(self) -> None:
        """Answer, for ever. Raises Fenced when another controller has taken over."""
        mark = -1
        while True:
            mark = await self._store.wait_change(mark, SAFETY_S)
            while self._tenure.knows_nodes and (asked := await self._store.asked_why(TOGETHER)):
                for uid in asked:
                    await self._answer(uid)

    async def _answer(self, uid: JobUid) -> None:
        job = self._tenure.jobs.get(uid) or await self._store.job(uid)
        loop = asyncio.get_running_loop()
        started = loop.time()
        found = self._explained(job)
        took = loop.time() - started
        body = "" if found is None else found.model_dump_json()
        await self._store.answer_why({uid: body}, self._clock(), self._epoch)
        await asyncio.sleep(REST * took)

    def _explained(self, job: Job) -> Waiting | None:
        try:
            return why(self._placing.placer, job.uid, self._clock())
        except Exception:
            # An answer that cannot be given must not end the controller: who asked still has the job's own sentence.
            log.exception("job %s: why it waits could not be explained", job.uid)
            return None
