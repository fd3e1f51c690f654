"""What each Python of a task runs at its start when the job's document says ``debug``: it lets debuggers attach.

Engines copy this file into tasks as ``sitecustomize.py``, in a directory that is first on ``PYTHONPATH``. It runs with
the task's Python, so it has the standard library of Python 3.8 alone. The reasons are in ADR 0045.

- The first Python that runs holds the lock of the folder in ``PAI_DEBUG_DIR`` and has debugpy listen; when it has
  ended, the next one that starts does. What it starts belongs to it: debugpy tells debuggers of its subprocesses.
- debugpy's own adapter would listen on a port, where every user of the machine could run code as the task. Here it
  listens on a socket in that folder, which only the task's account can enter. It is told a host that does not exist, so
  that a release of debugpy that lacks what this needs does not listen at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

FOLDER = "PAI_DEBUG_DIR"
"""The variable that names the folder of socket and lock."""
ADAPTER = "PAI_DEBUG_ADAPTER"
"""Set for debugpy's adapter alone, which is a Python too and runs this file."""
SOCKET = "socket"
NO_HOST = "pai.invalid"
"""No port can be opened there. Source: RFC 6761, section 6.4."""


def debugged(folder: str) -> None:
    """Let debuggers attach to this process, unless another one of the task has them. Raises OSError, RuntimeError."""
    import fcntl

    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return
    # The descriptor stays open, and so the lock is held, until the process ends or becomes another program.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a warning about modules of Python that are frozen
    try:
        import debugpy
    except ImportError:
        os.close(lock)
        say(f"{sys.executable} has no debugpy. Run `pip install debugpy` before the program.")
        return
    debugpy.configure(pythonEnv=dict(os.environ, **{ADAPTER: "1"}))
    debugpy.listen((NO_HOST, 0))
    say(f"process {os.getpid()} waits for debuggers: pai debug {os.environ.get('PAI_JOB_NAME', 'JOB')}")


def behind_a_socket(folder: str) -> None:
    """Have the adapter, which this process is to become, listen in ``folder`` and on no port for its clients."""
    import socket
    import threading

    from debugpy.adapter import clients

    make_client: Callable[[socket.socket], object] = clients.Client

    def serve(host: str, port: int) -> tuple[str, int]:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.chdir(folder)  # a socket's path has 108 bytes at most
        if os.path.lexists(SOCKET):
            os.unlink(SOCKET)
        listener.bind(SOCKET)
        listener.listen(16)

        def accept() -> None:
            while True:
                make_client(listener.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        return host, port

    vars(clients).update(serve=serve, listener=None)  # a listener would be told to debuggers, as a port


def is_of_debugger() -> bool:
    """Whether a debugger has started this process, or its user has told it to listen somewhere."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        words = [os.fsencode(word) for word in getattr(sys, "orig_argv", ())]
    return any(b"debugpy" in word or b"pydevd" in word for word in words[1:])


def say(text: str) -> None:
    """A line for the task's log."""
    sys.stderr.write(f"pai: debug: {text}\n")
    sys.stderr.flush()


def run_hidden() -> None:
    """Run the ``sitecustomize`` of the image, which this file hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    own = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.abspath(path) != own])
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])


def start(folder: str) -> None:
    """Do what this process is for. Its program runs in any case."""
    try:
        if os.environ.pop(ADAPTER, ""):
            behind_a_socket(folder)
        elif "SSH_CONNECTION" not in os.environ and not is_of_debugger():
            debugged(folder)
    except Exception as error:  # noqa: BLE001 - of a library in whatever release the image has it
        say(f"debuggers cannot attach to process {os.getpid()}: {error}")


if __name__ == "sitecustomize":
    if os.environ.get(FOLDER):
        start(os.environ[FOLDER])
    run_hidden()
