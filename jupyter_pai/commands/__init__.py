"""Verbs of ``pai``, one module a group. Each has ``add(verbs)`` and functions ``(args, out) -> exit code``.

May not import IPython, jupyter_server or pydantic: ``pai list`` must answer within 400 ms.
"""
