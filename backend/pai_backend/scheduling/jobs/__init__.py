"""Jobs on cells: what a job asks of a cluster, and where its tasks go.

``demand`` turns a job into groups of cells and what is needed besides; ``placer`` decides and remembers what is held;
``unit`` gives it back its memory after a restart. Pure, like all of ``scheduling``: what is decided here is written
by the controller before it is acted on.
"""
