"""``terminal``: a shell in a task that goes on without its window."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jupyter_pai.commands.arguments import JOB, task_names
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.ssh import SSH_DIR, ssh_root
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.render import padded
from jupyter_pai.verbs import argument, flag, one_of, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.terminals.login import TaskPlace
    from jupyter_pai.terminals.persistent import Ending

DETACH_KEY = "^\\"


@verb(
    "terminal",
    SSH_DIR,
    JOB,
    argument("task", nargs="?", help="such as worker-1; default: the first", completer=task_names),
    argument("--name", default="1", help="which of the terminals in the task; default: 1"),
    argument("--detach-key", default=DETACH_KEY, metavar="KEY", help="such as ^A; default: ^\\"),
    one_of(
        flag("--list", help="list your terminals in the task"),
        flag("--end", help="end the terminal, and what runs in it"),
    ),
    shell_only=True,
)
def terminal(args: argparse.Namespace, out: Output) -> int:
    """Open a shell in a task that outlives the connection.

    The same command, or the panel in JupyterLab, opens the same shell again with its last output, from any machine.
    The detach key leaves the shell running. The exit code is that of the shell; 0 after a detach.
    """
    from jupyter_pai.terminals.login import TaskPlace

    role, index = _task(args.task)
    place = TaskPlace(args.job, role, index, ssh_root(args))
    if args.list or args.end:
        return _managed(args, place, out)
    key = _key(args.detach_key)
    if out.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        raise ClientError(
            "A terminal needs a terminal: standard input and output must be one.",
            code="InvalidParametersError",
            hint="Run a command without one by `pai ssh JOB -- COMMAND`.",
        )
    from jupyter_pai.terminals.window import attached

    ending = attached(place, args.name, key)
    if ending is None:
        out.progress(tr("Detached. The shell goes on: `pai terminal {job}` attaches again.", job=args.job))
        return OK
    out.progress(_words(ending))
    return 1 if ending.code is None and ending.signal is None else (ending.code or 128 + (ending.signal or -128))


def _managed(args: argparse.Namespace, place: TaskPlace, out: Output) -> int:
    """List or end sessions."""
    import asyncio

    from jupyter_pai.endpoint import resolve
    from jupyter_pai.terminals.link import asked
    from jupyter_pai.terminals.login import logged_in

    with logged_in(lambda: resolve(start=True), place) as login:
        told = {"do": "end" if args.end else "list", "owner": login.folder, "name": args.name}
        found = asyncio.run(asked(login.command, **told))
    if args.end:
        out.result({"ended": args.name}, tr("Terminal {name} has ended.", name=args.name))
    else:
        out.result(found, "\n".join(map(_line, found)) or tr("There are no terminals."))
    return OK


def _line(session: dict[str, object]) -> str:
    from datetime import datetime

    from jupyter_pai.terminals.link import printable

    since = session.get("since")
    begun = datetime.fromtimestamp(since).strftime("%Y-%m-%d %H:%M") if isinstance(since, int | float) else "-"
    ended, clients = session.get("ended"), session.get("clients")
    state = tr("ended") if ended is not None else tr("attached") if clients else tr("detached")
    return f"{printable(str(session.get('name'))):<12} {padded(state, 9)} {tr('since {time}', time=begun)}"


def _words(ending: Ending) -> str:
    if ending.reason:
        return ending.reason
    if ending.signal is not None:
        return tr("The shell was ended by signal {signal}.", signal=ending.signal)
    return tr("The shell has ended with exit code {code}.", code=ending.code)


def _task(name: str | None) -> tuple[str | None, int | None]:
    """Role and index of a name such as ``worker-1``. Raises ClientError."""
    if name is None:
        return None, None
    role, _, index = name.rpartition("-")
    if not role or not (index.isascii() and index.isdigit()):
        raise ClientError(
            Text("{name} is not the name of a task.", name=f"{name!r}"),
            code="InvalidParametersError",
            hint="Give the role and the index, such as worker-0. `pai show JOB` lists the tasks.",
        )
    return role, int(index)


def _key(name: str) -> bytes:
    """The byte of a key such as ``^A``. Raises ClientError."""
    if len(name) == 2 and name[0] == "^" and "@" <= name[1].upper() <= "_":
        return bytes([ord(name[1].upper()) & 0x1F])
    raise ClientError(
        Text("{name} is not a key that can detach.", name=f"{name!r}"),
        code="InvalidParametersError",
        hint="Give a control key as ^ and a letter, such as ^A.",
    )
