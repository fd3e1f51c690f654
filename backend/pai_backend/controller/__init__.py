"""The only place where store, lifecycle, scheduling and engine meet. One loop decides (architecture §4).

``loop`` takes news and intents and writes decisions; ``placing`` turns free room into placements;
``carrying`` carries effects out; ``explaining`` tells those who ask why jobs wait; ``recovery`` makes good what a crash
left. Start with ``loop``.
"""

from pai_backend.controller.loop import Controller, ControllerOptions

__all__ = ["Controller", "ControllerOptions"]
