"""The process that keeps one task: it runs the command, keeps its output and writes down how it ended.

It outlives the backend. It imports a few small modules at its start and none later, because the
installation may have been replaced by the time the task ends. ``boot`` is what is executed,
``begin`` the way to the running command, ``supervise`` the loop from then on.
"""

import os


def boot_file() -> str:
    """The file that a Python interpreter is given to become a shim."""
    return os.path.join(os.path.dirname(__file__), "boot.py")
