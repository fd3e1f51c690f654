"""From a task's plan to the objects that run it: pure functions from values to the API's JSON.

``pod`` is where to start reading; ``layout`` has the paths of a task's container, ``settings`` what an administrator
may choose. Nothing here does I/O, reads a clock or imports the client. What comes back from a cluster is read in
``pai_backend.engine.kubernetes.status``. ``docs/engine-kubernetes.md`` describes the objects and what is in a pod.
"""
