"""The trees: physical and virtual cells, the buddy free lists, health, and the orders in which nodes are tried.

- ``shape``: which leaves of a node form which cell, as bit masks; choice of leaves
- ``tree``: real and virtual cells, chains, quotas, and which group holds what
- ``buddy``: free physical cells, split and merged; what is left for whom
- ``ranking``: nodes by how full they are, kept up to date change by change
- ``binding``: which virtual cell stands on which physical cell; bad leaves, and the virtual cells doomed by them
- ``holding``: what groups run on, reserve and give back
- ``journal``: undo, so that a trial changes nothing

Leaves are bits: leaf *i* of a node is bit *i* in depth-first order. A leaf has no object until it is asked for.
"""
