"""A port of this machine that OpenSSH leads into a task, and a program that runs there meanwhile."""

from __future__ import annotations

import secrets
import shlex
import subprocess
from collections.abc import Sequence

from jupyter_pai.errors import OK, ClientError
from pai_backend.model.text import Text

HOST = "127.0.0.1"
FIRST_PORT, PORTS = 10000, 5000
"""Where a port in the task is taken from: below those leased to tasks, and those of outgoing connections."""
NOT_FOUND = (126, 127)
"""What a shell ends with when it cannot run a program. Source: POSIX, Shell Command Language 2.8.2."""


def require_port(port: int | None) -> None:
    """Raise ClientError for what is no TCP port; None is fine."""
    if port is not None and not 0 < port < 65536:
        raise ClientError(
            Text("{port} is not a port.", port=port), code="InvalidParametersError", hint="Ports are 1 to 65535."
        )


def free_port() -> int:
    """A port that is probably free in a task."""
    return FIRST_PORT + secrets.randbelow(PORTS)


def forwarded(login: Sequence[str], local: int, remote: int | str, script: str = "") -> list[str]:
    """OpenSSH's command that leads a local port to a port or socket of the task; ``login`` is one that only logs in.

    ``script`` runs in the task meanwhile.
    """
    there = f"{HOST}:{remote}" if isinstance(remote, int) else remote
    forward = ["-o", "ExitOnForwardFailure=yes", "-L", f"{HOST}:{local}:{there}"]
    return [*login[:-1], "-T" if script else "-N", *forward, login[-1], *([script] if script else [])]


def held(run: str, *, before: str = ":", after: str = ":") -> str:
    """A script that runs a program until it ends or the session's input does: what breaks off must leave nothing.

    ``after`` runs in any case; it may hold no single quotes, and ``$s`` is the exit status then.
    """
    watch = "(cat <&3 >/dev/null; kill $t) >/dev/null 2>&1 & w=$!"
    end = f"trap 's=${{s:-0}}; {after}' EXIT; trap 'kill $t; exit 129' HUP INT TERM"
    return f"exec 3<&0; {before}; {run} & t=$!; {end}; {watch}; wait $t; s=$?; kill $w; exit $s"


def lead(command: Sequence[str]) -> int:
    """Run such a command. Returns its exit status; 0 when the user ends it. Its input stays open meanwhile."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            assert process.stdin is not None
            process.stdin.close()
            process.terminate()
            return OK


def quoted(directory: str | None, default: str) -> str:
    """A directory in a script; ``default`` is the script's own word for none."""
    return default if directory is None else shlex.quote(directory)
