"""The broker: who a key or certificate stands for, what its login may do, and whether that is still so.

- ``rights``: the decision. Pure; start reading there.
- ``lookup``: the same over the store; what the gateway asks.

May import ``model``, ``store.base``, ``store.grants`` and ``access.keys``; never asyncssh, which the API process does
without. This package imports nothing by itself, so that its neighbours stay light.
"""
