"""Controllers that are killed at any instant, or sleep through their lease: each effect happens once all the same."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import LIMIT_S, Product, Site, product_on
from tests.support.postgres import PostgresServer, running_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

KILLS = 3
DECIDES, ANEW = "controller with epoch", "the controller restarts"


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """Two controllers on two machines share one."""
    with running_server() as server:
        yield server


async def test_controllers_killed_at_random_instants_lose_nothing(product: Product) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # shown when it fails
    chance, killed = random.Random(seed), 0
    through = await product.submit(patient("through-random-kills"))
    while killed < KILLS:
        await product.hand_in(2)
        await asyncio.sleep(chance.uniform(0.0, 2.0))  # the instant is what is drawn
        killed += product.kill_controller()
    await product.running(through)
    await product.release(through)
    await settled(product)


async def test_a_controller_that_slept_through_its_lease_writes_nothing_more(
    site: Site, database: PostgresServer, tmp_path: Path
) -> None:
    url = database.new_database()
    shared = {"PAI_BACKEND_DATABASE": url, "PAI_BACKEND_SECRET_KEY_FILE": str(tmp_path / "first" / "secret.key")}
    async with (
        product_on(site, tmp_path / "first", env=shared) as first,
        site.beside(tmp_path / "way") as other,
        product_on(other, tmp_path / "second", env=shared, whole=False) as second,
    ):
        through = await first.submit(patient("through-sleep"))
        await first.running(through)
        await first.hand_in(3)
        before = logged(first, ANEW), logged(second, DECIDES)  # a busy machine may have made them change before
        sleeper = first.backend.children()["controller"].pid
        os.kill(sleeper, signal.SIGSTOP)
        try:
            await says_again(second, DECIDES, before[1], "the second controller to take over")
            await first.hand_in(2)
            await first.probe()
        finally:
            os.kill(sleeper, signal.SIGCONT)
        await says_again(first, ANEW, before[0], "the first to learn that it is no more")
        written = writes(site)
        await first.hand_in(3)
        await first.release(through)
        await settled(first, url)
        assert writes(site) == written
        assert writes(other) > 0


def logged(product: Product, words: str) -> int:
    """How often a backend has logged this."""
    return product.backend.errors.read_text(errors="replace").count(words)


async def says_again(product: Product, words: str, before: int, what: str) -> None:
    """Wait until a backend has logged this once more. Raises NotInTime with what it has logged."""

    async def there() -> bool:
        return logged(product, words) > before

    try:
        await until(there, what, LIMIT_S)
    except NotInTime as late:
        raise NotInTime(f"{late}\n{product.log()}") from None


def writes(site: Site) -> int:
    """Requests that change something."""
    return sum(site.proxy.requests[method] for method in ("POST", "PATCH", "PUT", "DELETE"))
