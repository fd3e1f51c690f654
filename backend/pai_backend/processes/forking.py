"""How a child of the supervisor comes to be: a fork of it, with all that children import imported already. ADR 0055.

The supervisor has one thread and no event loop, so that nothing is cut in two by a fork. Where a fork that runs no
program of its own is not safe (macOS), a child is an interpreter of its own. Standard library only, but for the name
that a process has in lists.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from pai_backend.processes.generations import HEARD, keep_to_ourselves

log = logging.getLogger(__name__)

FORKS = sys.platform == "linux"


def load(modules: Iterable[str]) -> None:
    """Import what children will need. What cannot be imported is left to the child that needs it, which says why."""
    gc.disable()  # imports make no garbage
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - whatever it fails of, the child will too
            log.debug("%s cannot be imported: %s", module, error)
    gc.freeze()  # no collection writes to pages that are shared
    gc.enable()


def fork(run: Callable[[], int], title: str, output: int | None, kept: Sequence[int]) -> int:
    """Run a function as a process of its own, whose result is the exit code; gives the id of the process.

    It has ``output``, if any, as standard output and error, the descriptors ``kept``, and no other of ours. Lists of
    processes show ``title``. Raises OSError.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)  # what is meant for the child would be noted as meant for us
    try:
        pid = os.fork()
        if pid == 0:
            _live(run, title, output, kept)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
    return pid


def _live(run: Callable[[], int], title: str, output: int | None, kept: Sequence[int]) -> NoReturn:
    """All of a child's life. Never returns: what our callers do next is for the supervisor to do."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in HEARD:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        _connect(output, kept)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        _name(title)
        code = run()
    except BaseException:  # noqa: BLE001 - an exit is none of the supervisor's
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _connect(output: int | None, kept: Sequence[int]) -> None:
    """Let the standard streams be the child's, and close what is the supervisor's: locks, pipes, ports of others.

    The objects that have these descriptors are never collected: the frames of our callers hold them.
    """
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(descriptor)


def _name(title: str) -> None:
    from setproctitle import setproctitle

    setproctitle(title)


def spawn(command: Sequence[str], output: int | None, kept: Sequence[int]) -> int:
    """Run a program with the same streams and descriptors; gives the id of its process. Raises OSError."""
    streams = [(os.POSIX_SPAWN_DUP2, output, stream) for stream in (1, 2) if output is not None]
    for descriptor in kept:
        os.set_inheritable(descriptor, True)
    try:
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *streams]
        return os.posix_spawn(command[0], list(command), os.environ, file_actions=actions)
    finally:
        keep_to_ourselves(kept)
