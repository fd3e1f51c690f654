"""The free lists: what is tried and undone leaves nothing behind."""

from __future__ import annotations

from pai_backend.scheduling.cells.buddy import SLACK
from tests.unit.scheduling.core.clusters import POOL, cluster


def test_trying_again_and_again_piles_nothing_up() -> None:
    """Each try takes the pool apart and puts it together again; the entries for its cells must not become more."""
    pool = cluster(POOL)
    chain = pool.chains["POOL"]
    for _ in range(500):
        with pool.journal.trial():
            chain.buddy.take(chain.nodes[2])
    sizes = [
        (len(heap), 2 * len(cells) + SLACK) for heap, cells in zip(chain.buddy._heaps, chain.by_level, strict=True)
    ]
    assert all(entries <= most for entries, most in sizes), sizes
    found = chain.buddy.first(chain.node_level, lambda cell: True)
    assert found is chain.nodes[0]
