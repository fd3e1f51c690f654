"""The output of tasks: as their kubelets give it, and as it is kept.

A kubelet has the output since its last rotation, for as long as the container is there. ``collecting`` copies it
while a task runs, into the files of ``kept``; ``reading`` is what readers are given: what is kept, then what the
kubelet has beyond it. Both go on where they were by ``lines``, which knows each line by its time. Start with ``lines``.
"""

from pai_backend.engine.kubernetes.logs.collecting import FOLLOWED as FOLLOWED
from pai_backend.engine.kubernetes.logs.collecting import Collector as Collector
from pai_backend.engine.kubernetes.logs.kept import LOG_BYTES as LOG_BYTES
from pai_backend.engine.kubernetes.logs.reading import TaskLogs as TaskLogs
from pai_backend.engine.kubernetes.logs.sources import Sources as Sources
