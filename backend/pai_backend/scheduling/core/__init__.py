"""Decisions on top of the trees: what a group asks, where it goes, who must go for it, and why it waits.

Start at :class:`~pai_backend.scheduling.core.cluster.Cluster`. ``search`` finds a place in one chain, ``exact`` where
the quick way fails, ``preempt`` chooses victims, ``reason`` explains, ``restore`` and ``reconfigure`` rebuild.
"""
