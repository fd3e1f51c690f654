"""Debuggers of tasks whose job's document says ``debug``: what a task is given, and where debuggers are let in.

``debugger_start.py`` is the program, copied into the task; ADR 0045 has the reasons. Debuggers come by SSH alone: a
login that may open sockets in the task (direct-streamlocal, OpenSSH PROTOCOL section 2.4) reaches ``DEBUG_SOCKET``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pai_backend.engine import debugger_start

DEBUG_SOCKET: Final = "/pai/state/debugger/socket"
"""In a pod a real socket; a name for the local engine's agent, as ``jumps.JUMP_SOCKET`` is."""
PROGRAM: Final = "sitecustomize.py"
"""The module that every Python imports at its start. Source: Python documentation, module site."""


@cache
def program() -> bytes:
    """The text of that module."""
    return Path(debugger_start.__file__).read_bytes()


def debugger_variables(env: Mapping[str, str], program_in: str, folder: str) -> dict[str, str]:
    """What a task's variables ``env`` get: the program lies in ``program_in``, and its socket comes into ``folder``."""
    path = os.pathsep.join(filter(None, [program_in, env.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, debugger_start.FOLDER: folder}
