"""Starts backends, their commands and ``pai`` by forking a process that has imported what they do: most of a start.

One such process for each of pytest's, by the fork server of :mod:`multiprocessing`. What runs is the program's own
``main``, in a process of its own, with the arguments and variables given. That a backend starts as a program, by
``python -m`` and by ``pai``, and that ``pai`` does, is for the tests of that; they are many.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

RSA_BITS = 2048
"""Of the pairs that a backend of tests makes: one takes 70 ms of a processor, one of 3072 takes 190."""
_ROLES = ("agent", "api", "controller", "gateway")
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pai_backend.config.load",
        "pai_backend.config.variables",
        "pai_backend.processes.app",
        "pai_backend.processes.supervisor",
        "pai_backend.platform.packages",
        *(f"pai_backend.processes.roles.{role}" for role in _ROLES),
        "pai_backend.engine.local.provider",
        "pai_backend.engine.local.engine",
        "pai_backend.access.gateway.joined.way",
        "pai_backend.access.gateway.joined.login",
        "pai_backend.store.sqlite",
        "tests.support.written_schema",
        "tornado.platform.asyncio",
        "jupyter_pai.cli",
        "jupyter_pai.sync",
        "jupyter_pai.broker",
    ]
)


class WarmProcess:
    """A backend's first process; has what tests use of ``subprocess.Popen``."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], errors: Path) -> None:
        """Run ``pai_backend`` with these arguments; it says on :attr:`ready` when it is ready."""
        self.ready, said = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_run, args=(tuple(arguments), dict(env), str(errors), said))
        self._process.start()
        said.close()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it lives."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As :attr:`returncode`."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("pai_backend", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Signal it, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: tuple[str, ...], env: dict[str, str], errors: str, said: Connection) -> None:
    from setproctitle import setproctitle

    from pai_backend.__main__ import run
    from pai_backend.access.broker import stock

    # Before the variables are others: it finds its place by them.
    setproctitle(" ".join([sys.executable, "-P", "-m", "pai_backend", *arguments]))
    stderr = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(stderr, 2)
    os.close(stderr)
    ready = os.dup(said.fileno())
    said.close()
    os.environ.clear()
    os.environ.update(env)
    stock.RSA_BITS = RSA_BITS
    sys.exit(run([*arguments, "--ready-fd", str(ready)]))


def run_pai(
    *words: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run ``pai`` to its end, as ``subprocess.run`` would, in this process's variables if none are given.

    Input and output are files in UTF-8, whatever the variables say of the locale. Raises subprocess.TimeoutExpired.
    """
    return _run_to_its_end("jupyter_pai.cli:main", "pai", words, env, cwd, stdin, timeout)


def run_backend(
    *words: str, env: Mapping[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """As :func:`run_pai`, for the commands of ``python -m pai_backend``."""
    return _run_to_its_end("pai_backend.__main__:run", "pai_backend", words, env, None, "", timeout)


def _run_to_its_end(
    main: str,
    name: str,
    words: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: Path | None,
    stdin: str,
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="pai-run-") as streams:
        (Path(streams) / "0").write_text(stdin, "utf-8")
        given = (main, name, list(words), dict(os.environ if env is None else env), str(cwd or Path.cwd()), streams)
        process = _CONTEXT.Process(target=_run_main, args=given)
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([name, *words], timeout)
        out, err = ((Path(streams) / number).read_text("utf-8") for number in "12")
        return subprocess.CompletedProcess([name, *words], process.exitcode, out, err)


def _run_main(main: str, name: str, words: list[str], env: dict[str, str], cwd: str, streams: str) -> None:
    module, _, function = main.partition(":")
    call: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        stream = os.open(Path(streams) / str(number), flags, 0o600)
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [name, *words]
    sys.exit(call(words))
