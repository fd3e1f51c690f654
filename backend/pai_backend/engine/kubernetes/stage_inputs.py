"""The program that fetches a task's inputs in its pod, before the task's container starts.

``python -E -P -m pai_backend.engine.kubernetes.stage_inputs PLAN``, in a container of the task's pod. PLAN is the
directory with the task's Secret. It becomes ``pai_backend.storage.stage`` with the task's own variables and no others
but those that find programs, so that credentials are the task's and never the backend's.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Mapping

from pai_backend.engine.bundle import layout

PROGRAM = "pai_backend.storage.stage"
_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


def environment(environ: bytes, own: Mapping[str, str]) -> dict[str, str]:
    """The variables of the staging program: those of the file, and of this process what finds programs.

    Raises ValueError when the file is not made of entries.
    """
    texts = environ.decode("utf-8", "surrogateescape").split("\0")
    if texts.pop():
        raise ValueError("it does not end with a NUL byte")
    pairs = [text.partition("=") for text in texts]
    if not all(name and sign for name, sign, _ in pairs):
        raise ValueError("an entry is not NAME=VALUE")
    found = {name: value for name, _, value in pairs}
    return {**found, **{name: own[name] for name in _INHERITED if name in own}}


def main(arguments: list[str]) -> int:
    """Become the staging program; the exit status when that is not possible."""
    if len(arguments) != 1:
        return _fail("usage: python -E -P -m pai_backend.engine.kubernetes.stage_inputs PLAN")
    path = os.path.join(arguments[0], layout.ENVIRON)
    try:
        with gzip.open(path) as file:
            variables = environment(file.read(), os.environ)
    except (OSError, EOFError, ValueError) as error:
        # Only the kind of error: its text may quote the file.
        return _fail(f"{path} holds no variables ({type(error).__name__}); the task cannot start")
    stage = os.path.join(arguments[0], layout.STAGE)
    cache = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    os.execve(sys.executable, [sys.executable, *cache, "-E", "-P", "-m", PROGRAM, stage], variables)


def _fail(line: str) -> int:
    print(f"pai: {line}", file=sys.stderr, flush=True)  # noqa: T201 - this program's way to speak
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
