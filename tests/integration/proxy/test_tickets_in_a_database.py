"""A ticket is spent once even when replicas with a store each redeem it at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pai_backend.access.tickets import Claims, TicketOffice
from pai_backend.model.errors import Unauthorized
from pai_backend.model.ids import JobUid
from pai_backend.store.sql import Store
from tests.support.proxy_fakes import KEY
from tests.support.sealing import KEYS


@pytest.mark.asyncio
async def test_one_of_many_replicas_redeems_a_ticket(tmp_path: Path) -> None:
    stores = [Store(f"sqlite:///{tmp_path}/pai.sqlite", KEYS) for _ in range(4)]
    try:
        for store in stores:
            await store.open()
        offices = [TicketOffice(store.secrets, KEY) for store in stores]
        ticket, _ = offices[0].issue("alice", "lab--web", JobUid("j1000000000000000"), token="t")
        results = await asyncio.gather(
            *(office.redeem(ticket, "lab--web") for office in offices * 4), return_exceptions=True
        )
    finally:
        for store in stores:
            await store.aclose()
    assert sum(isinstance(result, Claims) for result in results) == 1
    assert sum(isinstance(result, Unauthorized) for result in results) == 15
