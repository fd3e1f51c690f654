"""The only place where store, lifecycle, scheduling and engine meet. One loop decides (architecture §4).

- ``loop`` is the controller for as long as it is asked, ``lease`` makes it the only one, ``inbox`` is where news waits
- ``reconciler`` decides: ``step`` takes a batch of news and intents and writes decisions; start there
- ``ports`` turns places into placements, ``plans`` makes what an engine starts, ``effects`` carries out
- ``configuring`` changes the cells, ``orphans`` takes back what the store does not know, ``deleting`` deletes
- ``idle_clocks`` stops what nobody uses, by ``jupyters`` and ``gpu_looks``; ``explaining`` says why jobs wait
"""

from pai_backend.controller.loop import Controller, ControllerOptions

__all__ = ["Controller", "ControllerOptions"]
