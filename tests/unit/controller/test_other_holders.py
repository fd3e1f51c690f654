"""What pods of others hold is told to processes that do not follow those pods."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pai_backend.controller import other_holders
from pai_backend.model.node import Others
from pai_backend.processes.components import Components
from pai_backend.processes.roles import api
from pai_backend.store.sql import Store
from tests.support.scripted_cluster import cluster
from tests.support.scripted_engine import lab_node
from tests.support.sealing import KEYS

HELD = Others(cpus=4, memory_mb=4096, gpus=2)


async def told(store: Store, wanted: dict[str, Others]) -> None:
    """Wait until that is what is written."""
    async with asyncio.timeout(60):
        while await store.other_holders.get() != wanted:  # noqa: ASYNC110 - it is written without a signal
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_the_controller_writes_what_others_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_holders, "LOOK_S", 0.02)
    carol = lab_node("carol", gpus=4)
    async with cluster(tmp_path, carol, lab_node("dan", gpus=1)) as lab:
        for others in (HELD, Others(gpus=1), Others()):
            lab.engine.show(carol.model_copy(update={"others": others}))
            await told(lab.store, {} if others == Others() else {"carol": others})


@pytest.mark.asyncio
async def test_what_an_earlier_controller_has_written_stays_until_the_nodes_are_listed(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'pai.sqlite'}", KEYS)
    await store.open()
    await store.other_holders.put({"gone": HELD, "carol": HELD})
    nodes: dict[str, Any] = {}
    is_listed = False
    task = asyncio.create_task(other_holders.tell_other_holders(store, lambda: nodes if is_listed else None))
    try:
        await asyncio.sleep(0)
        assert await store.other_holders.get() == {"gone": HELD, "carol": HELD}
        nodes["carol"], is_listed = lab_node("carol", gpus=4).model_copy(update={"others": HELD}), True
        await told(store, {"carol": HELD})
    finally:
        task.cancel()
        await store.aclose()


def test_an_api_counts_them_at_the_nodes_that_it_follows_itself() -> None:
    carol, dan = lab_node("carol", gpus=4), lab_node("dan", gpus=4)
    engine = SimpleNamespace(nodes={"carol": carol, "dan": dan}, insight=object())
    components = cast(Components, SimpleNamespace(engine=lambda: engine, roles=(), held_by_others={"dan": HELD}))
    assert [node.others for node in api._nodes(components)] == [Others(), HELD]
    components.held_by_others = {}
    assert [node.others for node in api._nodes(components)] == [Others(), Others()]
