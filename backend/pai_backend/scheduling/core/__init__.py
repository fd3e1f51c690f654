"""Decisions on top of the trees: what a group asks, where it goes, who must go for it, and why it waits.

Start at :class:`~pai_backend.scheduling.core.cluster.Cluster`.

- ``group``, ``reason``: requests and answers; ``request`` checks the former
- ``search`` looks for a place in one chain, ``exact`` where its quick way fails, ``scope`` within cells of a type
- ``leaves``, ``place``: at what price to others; victims and lazy preemption; ``sieve``: who could be victims at all
- ``diagnose``: why there is no place
- ``elastic``, ``upgrade``: groups that grow, and that get their quota back
- ``restore``, ``reconfigure``: the same groups in a new process, or in another configuration
- ``inspect``, ``audit``: what is where, for people and for tests
"""
