"""The only place where store, lifecycle, scheduling and engine meet. One loop decides (architecture §4).

- ``loop`` is the controller for as long as it is asked: its lease, its tenures, its answers to why jobs wait
- ``inbox`` is where news waits; ``reconciler`` decides: ``step`` takes a batch of it and writes decisions; start there
- ``ports`` turns places into placements, ``plans`` makes what an engine starts, ``effects`` carries out
- ``configuring`` changes the cells, ``orphans`` takes back what the store does not know, ``deleting`` deletes
- ``idle_clocks`` stops jobs without use; ``uses`` looks whether there is any
"""

from pai_backend.controller.loop import Controller, ControllerOptions

__all__ = ["Controller", "ControllerOptions"]
