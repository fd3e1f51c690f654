"""Recorded outcomes of the HiveD reference, replayed against :class:`pai_backend.scheduling.Cluster`.

- ``trace``: files of the recorded format
- ``player``: one trace, operation by operation; the cluster follows the reference after each, so that every
  operation is judged from the state the reference was in
- ``levels``: what agreement on a level means
- ``justify``: arguments, made from the state before the operation, why a difference is an improvement
- ``invariants``: the seven laws
"""
