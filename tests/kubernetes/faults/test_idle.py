"""What a backend asks of the API server while nothing happens, counted by a proxy between them."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.engine.holding import BEAT_S
from pai_backend.engine.kubernetes.logs.collecting import BEGIN_S
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import LIMIT_S, Product

pytestmark = pytest.mark.asyncio(loop_scope="session")

MEASURED_S = 12.0
QUIET_S = 2.0 + BEGIN_S  # without a request: what the start brought with it is over, and the task's log is followed


async def test_while_a_task_runs_and_runs_nothing_is_asked(product: Product) -> None:
    """Watches and the stream of the log are open; no watch is opened over and over. A heartbeat tells who holds it."""
    wanted = await product.submit(patient("idle"))
    await product.running(wanted)
    loop, counts = asyncio.get_running_loop(), product.site.proxy.requests
    before, since = counts.copy(), loop.time()

    async def settled() -> bool:
        nonlocal before, since
        if {**counts, "heartbeat": 0} != {**before, "heartbeat": 0}:
            before, since = counts.copy(), loop.time()
        return loop.time() - since > QUIET_S

    await until(settled, "the requests of the start to be over", LIMIT_S)
    assert before["watch"] >= 3  # of pods, nodes and events: the proxy sees what is asked
    before = counts.copy()
    await asyncio.sleep(MEASURED_S)  # the time that is measured
    more = counts - before
    assert more.keys() <= {"watch", "heartbeat"}, more
    assert more["heartbeat"] <= 2 * (MEASURED_S / BEAT_S + 2), more  # each reads the record and writes it
    assert more["watch"] <= 4, more  # an API server under load ends one now and then
    await product.release(wanted)
    await product.ended(wanted)
