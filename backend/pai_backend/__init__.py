"""The jupyter-pai backend: job documents in, running tasks and lasting addresses out.

Knows nothing of Jupyter. Rooms and their import order are listed in ``docs/architecture.md``
and checked by import-linter; start reading at ``model`` (the words) and ``controller`` (the loop).
"""
