"""Finds or starts the private backend: one per user and data directory.

The backend outlives the process that starts it. Two starters at once are told apart by a lock file
(``start.lock``), and the backend's own lock makes a second one impossible even without us.
What is in ``runtime/`` is a hint: it counts only while its process lives and the API answers our token.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from jupyter_pai.endpoint import Endpoint, read_token
from jupyter_pai.errors import BackendAway, BackendStartFailed, InvalidDocument
from jupyter_pai.wire import ACTIVE_STATES
from pai_backend.model.text import Text

PROBE_TIMEOUT_S = 5.0
START_TIMEOUT_S = 60.0  # a cold disk needs some seconds to read the libraries
STOP_TIMEOUT_S = 30.0
CHECK_INTERVAL_S = 0.05
LAST_WORDS_BYTES = 2000

PRIVATE_PREFIXES = ("JPY_", "JUPYTERHUB_", "JUPYTER_TOKEN", "JUPYTER_SERVER_", "KERNEL_", "PAI_TOKEN", "PAI_URL")
"""Variables of a Jupyter server or kernel that a backend, and the tasks it starts, have no business with."""


@dataclass(frozen=True)
class Status:
    """What is known of the private backend; ``url`` is None while it does not answer."""

    data_dir: Path
    running: bool
    url: str | None
    pid: int | None
    version: str | None
    started: str | None


def _alive(pid: int) -> bool:
    """Whether a process of ours has that number. Another user's process means ours has ended, and so does a zombie."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # gone since, or no Linux: what is asked of the backend next tells
        return True
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]  # its name may hold spaces and brackets, proc(5)


def backend_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment a backend is started with: ours without secrets of Jupyter."""
    return {key: value for key, value in environ.items() if not key.startswith(PRIVATE_PREFIXES)}


class Embedded:
    """The private backend of one data directory. Methods block; none may be called on an event loop."""

    def __init__(self, data_dir: Path, config_file: Path | None = None) -> None:
        self.data_dir = data_dir
        self.config_file = config_file

    @property
    def log_dir(self) -> Path:
        """Where the backend writes its logs."""
        return self.data_dir / "log"

    def find(self) -> Endpoint | None:
        """The running backend, checked; None when there is none (stale files are no problem)."""
        record = self._record("api.json")
        if record is None or not _alive(int(cast(int, record["pid"]))):
            return None
        supervisor = self._record("supervisor.json")
        if supervisor is not None and not _alive(int(cast(int, supervisor["pid"]))):
            return None  # its processes still answer, but are about to end
        try:
            endpoint = Endpoint(str(record["url"]).rstrip("/"), read_token(self.data_dir / "token"))
        except InvalidDocument:
            return None
        return endpoint if self._get(endpoint, "/api/v2/jobs?limit=1") is not None else None

    def require(self) -> Endpoint:
        """The running backend. Raises BackendAway when it does not run."""
        endpoint = self.find()
        if endpoint is None:
            raise BackendAway(
                Text("No backend runs for {data_dir}.", data_dir=self.data_dir),
                hint="Start it with `pai backend start`, or set PAI_URL.",
            )
        return endpoint

    def ensure(self, timeout_s: float = START_TIMEOUT_S) -> Endpoint:
        """The running backend, started when there is none and renewed when it is of another version.

        Safe to call from several processes at once. Raises BackendStartFailed with the reason.
        """
        endpoint = self.find()
        if endpoint is not None and not self._outdated(endpoint):
            return endpoint
        with self._starting():
            endpoint = self.find()  # another process may have been faster
            if endpoint is not None and self._outdated(endpoint):
                self._terminate(STOP_TIMEOUT_S)
                endpoint = None
            return endpoint or self._start(timeout_s)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """End the backend; tasks go on. False when none was running. Raises BackendAway if it will not end."""
        with self._starting():
            return self._terminate(timeout_s)

    def status(self) -> Status:
        """What is known now."""
        endpoint = self.find()
        record = self._record("supervisor.json") or self._record("api.json") or {}
        pid = cast(int | None, record.get("pid"))
        return Status(
            data_dir=self.data_dir,
            running=endpoint is not None,
            url=endpoint.url if endpoint else None,
            pid=pid if pid is not None and _alive(pid) else None,
            version=cast(str | None, record.get("version")),
            started=cast(str | None, record.get("started")),
        )

    def _record(self, name: str) -> dict[str, object] | None:
        try:
            value = json.loads((self.data_dir / "runtime" / name).read_bytes())
        except (OSError, ValueError):
            return None  # absent, or half of it from a machine that lost power: as good as absent
        return value if isinstance(value, dict) and isinstance(value.get("pid"), int) else None

    def _get(self, endpoint: Endpoint, path: str) -> object:
        """The JSON answer to a GET with our token, or None when it is not a success."""
        parts = urlsplit(endpoint.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=PROBE_TIMEOUT_S)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {endpoint.token}"})
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == http.client.OK else None
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def _outdated(self, endpoint: Endpoint) -> bool:
        """Whether it is of another version than this package, and a new one could start and would disturb nothing."""
        from jupyter_pai import __version__
        from pai_backend.platform.packages import missing_packages

        record = self._record("api.json")
        if record is None or record.get("version") == __version__ or missing_packages():
            return False
        active = self._get(endpoint, f"/api/v2/jobs?state={','.join(ACTIVE_STATES)}&limit=1&withTotalCount=true")
        return isinstance(active, dict) and active.get("totalCount") == 0

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """Hold ``start.lock``: one process at a time starts or stops this backend."""
        try:
            import fcntl
        except ImportError as error:
            raise BackendStartFailed(
                "A private backend needs Linux or macOS.", hint="Use a backend elsewhere: set PAI_URL and PAI_TOKEN."
            ) from error
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.data_dir / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BackendStartFailed(
                Text(
                    "The data directory {data_dir} cannot be used: {strerror}.",
                    data_dir=self.data_dir,
                    strerror=error.strerror,
                ),
                hint="Set PAI_DATA_DIR to a directory that you may write to.",
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)  # which also releases the lock

    def _command(self, ready_fd: int) -> list[str]:
        places = ["--data-dir", str(self.data_dir), "--log-dir", str(self.log_dir), "--ready-fd", str(ready_fd)]
        config = ["--config", str(self.config_file)] if self.config_file else []
        return [sys.executable, "-m", "pai_backend", "serve", *config, *places]

    def _start(self, timeout_s: float) -> Endpoint:
        from pai_backend.platform.packages import INSTALL, missing_packages

        if missing := missing_packages():
            raise BackendStartFailed(
                Text("The packages of a private backend are not installed: {missing}.", missing=", ".join(missing)),
                hint=Text("Run {install}, or set PAI_URL and PAI_TOKEN to use a backend elsewhere.", install=INSTALL),
            )
        self.log_dir.mkdir(mode=0o700, exist_ok=True)
        ready, ready_write = os.pipe()
        try:
            with open(self.log_dir / "start.log", "wb") as output:
                process = subprocess.Popen(
                    self._command(ready_write),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.data_dir,
                    env=backend_environment(os.environ),
                    pass_fds=(ready_write,),
                    start_new_session=True,
                )
            # No process waits for it later: without this it would stay a zombie of a long-lived Jupyter server.
            threading.Thread(target=process.wait, name="jupyter-pai-reaper", daemon=True).start()
            os.close(ready_write)
            ready_write = -1
            # Readable means ready (a byte) or gone (end of file); what is true is asked below.
            answered, _, _ = select.select([ready], [], [], timeout_s)
        finally:
            os.close(ready)
            if ready_write >= 0:
                os.close(ready_write)
        endpoint = self.find()
        if endpoint is None:
            raise self._start_failed(Text("within {timeout_s} s", timeout_s=f"{timeout_s:.0f}") if not answered else "")
        return endpoint

    def _start_failed(self, when: str) -> BackendStartFailed:
        log = self.log_dir / "start.log"
        words = ""
        with contextlib.suppress(OSError):
            words = log.read_bytes()[-LAST_WORDS_BYTES:].decode(errors="replace").strip()
        last = words.splitlines()[-1] if words else Text("it printed nothing")
        return BackendStartFailed(
            Text("The private backend did not become ready {when}: {last}", when=when, last=last)
            if when
            else Text("The private backend did not become ready: {last}", last=last),
            hint=Text("Its logs are in {log_dir}.", log_dir=self.log_dir),
        )

    def _terminate(self, timeout_s: float) -> bool:
        """Ask the supervisor to end and wait until its lock is free."""
        if not self._locked():
            return False
        record = self._record("supervisor.json")
        if record is None:
            raise BackendAway(
                Text("A backend holds {data_dir} but does not give its process id.", data_dir=self.data_dir),
                hint="Try again.",
            )
        pid = int(cast(int, record["pid"]))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        # It is no child of ours, so its end cannot be waited for; its lock is the thing to look at.
        while self._locked():
            if time.monotonic() > deadline:
                raise BackendAway(
                    Text(
                        "The backend (process {pid}) did not end within {timeout_s} s.",
                        pid=pid,
                        timeout_s=f"{timeout_s:.0f}",
                    ),
                    hint=Text("See the logs in {log_dir}.", log_dir=self.log_dir),
                )
            time.sleep(CHECK_INTERVAL_S)
        return True

    def _locked(self) -> bool:
        """Whether a supervisor holds the data directory. Call under :meth:`_starting` only."""
        import fcntl

        try:
            handle = os.open(self.data_dir / "backend.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False
