"""RSA pairs are made ahead, each for one taker, and shown to nobody else."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.access.broker import stock
from pai_backend.access.broker.stock import RsaStock


@pytest.mark.asyncio
async def test_each_taker_has_a_pair_of_its_own_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(f"pair {len(made)}")
        return made[-1]

    monkeypatch.setattr(stock, "make_rsa", make)
    kept = RsaStock()
    kept.warm()
    kept.warm()
    assert kept._making is not None
    await asyncio.wait({kept._making})
    assert made == ["pair 0"]
    assert "pair" not in repr(kept._making)
    assert await kept.take() == "pair 0"
    assert sorted(await asyncio.gather(kept.take(), kept.take())) == ["pair 1", "pair 2"]


@pytest.mark.asyncio
async def test_after_a_failure_another_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise MemoryError("no room")

    kept = RsaStock()
    with monkeypatch.context() as patch:
        patch.setattr(stock, "make_rsa", fail)
        kept.warm()
        assert kept._making is not None
        await asyncio.wait({kept._making})
    monkeypatch.setattr(stock, "make_rsa", lambda: "pair")
    assert await kept.take() == "pair"
