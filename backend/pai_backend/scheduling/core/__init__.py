"""Decisions on top of the trees: what a group asks, where it goes, who must go for it, and why it waits.

Start at :class:`~pai_backend.scheduling.core.ledger.Ledger`.

- ``trees``: all that is held; ``options`` checks requests, ``decision`` is what is answered
- ``search`` looks for a place in one chain, ``exact`` where its quick way fails, ``scope`` within cells of a type
- ``place``: at what price to others; victims and lazy preemption; ``sieve``: who could be victims at all
- ``diagnose``: why there is no place
- ``elastic``: groups that grow
- ``restore``, ``reconfigure``: the same groups in a new process, or in another configuration; quota that comes back
- ``inspect``, ``audit``: what is where, for people and for tests
"""
