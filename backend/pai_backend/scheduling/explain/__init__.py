"""Why does it wait? The answer as a value, in words, and with what would start it. Pure, and changes nothing.

    waiting = explain(queue, "alice~train", now, vcs=("vc1", "vc2"))
    waiting.cause, waiting.holders, waiting.changes          # for programs
    waiting.texts["en"].sentence                             # for people; "zh_CN" as well

``explain`` finds the binding constraint and what would help, ``eta`` when it will start, ``texts_*`` the words.
The value is :class:`pai_backend.model.waiting.Waiting`, which API, panel and command line share.
"""

from pai_backend.scheduling.explain.eta import Estimate, RunTime, estimate
from pai_backend.scheduling.explain.explain import LANGUAGES, Lacks, RestsOn, apply, changes, explain, render

__all__ = [
    "LANGUAGES",
    "Estimate",
    "Lacks",
    "RestsOn",
    "RunTime",
    "apply",
    "changes",
    "estimate",
    "explain",
    "render",
]
