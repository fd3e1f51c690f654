"""Shells in a task that outlive their connections: what its SSH server runs as the subsystem ``pai-terminal``.

``python -I -S boot.py FOLDER PROGRAM [ARGUMENTS]`` reads one request from its standard input. To attach to a session it
passes its standard input and output to the process that holds the session, and lasts until that process closes them.
Each session has one such holder, which the first request starts. It owns the terminal and a bounded scrollback, which
every client receives when it attaches. A holder ends with its shell, but only after one client has been told how the
shell ended; and with the task, as every process of it.

Both directions carry frames: a letter, the length in four bytes, the content; docs/runtime.md lists them.

These modules import the standard library only.
"""

import os

SUBSYSTEM = "pai-terminal"


def boot_file() -> str:
    """The file that a Python interpreter is given to carry out one request."""
    return os.path.join(os.path.dirname(__file__), "boot.py")
