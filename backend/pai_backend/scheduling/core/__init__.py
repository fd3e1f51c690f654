"""Decisions on top of the trees: what a group asks, where it goes, who must go for it, and why it waits.

Start at :class:`~pai_backend.scheduling.core.ledger.Ledger`.

- ``trees``: trees from a configuration, all that is held, and which requests could ever be right
- ``decision`` is what is answered; ``room``: CPU and memory of nodes
- ``search`` looks for a place in one chain; ``scope``: within cells of a type, and where its quick way fails
- ``place``: at what price to others; victims and lazy preemption; ``sieve``: who could be victims at all
- ``diagnose``: why there is no place
- ``elastic``: groups that grow, and those that lie in several chains
- ``restore``: the same groups in a new process, or in another configuration; quota that comes back
- ``inspect``: what is where, for people and for tests
"""
