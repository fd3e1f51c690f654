"""The Kubernetes engine: a task is a pod.

``access`` finds the cluster, ``client`` speaks HTTP with it, ``calls`` bounds and repeats requests, ``reflector`` keeps
a copy of the server's objects current; what it decides is in ``reflection``, which is pure and where to start reading.

The library (``kubernetes_asyncio``, aiohttp) is imported when a cluster is connected to, never by this file: a backend
with the local engine runs without it.
"""
