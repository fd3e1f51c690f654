"""A job in a cell: an output that follows the job in a thread of its own.

A thread, because a kernel's own loop stands still while a cell runs, and the output must not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import display

from jupyter_pai import render
from jupyter_pai.api import Job
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import ClientError
from jupyter_pai.following import Observer, follow
from jupyter_pai.log_text import incremental_decoder
from jupyter_pai.sync import Client, shared
from jupyter_pai.widgets.output import JobBundle, job_bundle
from jupyter_pai.wire import FINAL_STATES
from jupyter_pai.wire_types import JobDetail

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

    from jupyter_pai.widgets.job_widget import JobWidget

LOG_KEPT_CHARS = 64 * 1024
REDRAW_INTERVAL_S = 0.2
"""An output is sent at most this often: each time with the whole end of the log."""


class JobView(Job):
    """A job with a live view. ``job`` is its latest detail; where nothing else can be shown, it is its text."""

    def __init__(self, endpoint: Endpoint, job: JobDetail, *, show_log: bool = True) -> None:
        super().__init__(shared(endpoint), job)
        self._endpoint = endpoint
        self._show_log = show_log
        self._changed = threading.Condition()
        self._failure = ""
        self._ended = False
        self._decoder = incremental_decoder()
        self._log = ""
        self._seen = _now()
        self._redraw_due = False
        self._already_shown = False
        self._handles: list[DisplayHandle] = []
        self._widgets: list[JobWidget] = []
        self._thread = threading.Thread(target=self._follow, name=f"pai-{job['alias']}", daemon=True)
        self._thread.start()

    @property
    def job(self) -> JobDetail:
        """The latest detail."""
        return self.api.detail

    def __repr__(self) -> str:
        text = render.job_page(self.job)
        return f"{text}\n{self._failure}" if self._failure else text

    def bundle(self) -> JobBundle:
        """The job as it is now, in all forms of an output of a cell."""
        return job_bundle(self.job, self._seen, log=self._log, problem=self._failure, ended=self._ended)

    def _repr_mimebundle_(self, **_: object) -> JobBundle:
        return self.bundle()

    def _ipython_display_(self) -> None:
        """Called by IPython in place of looking for representations."""
        if self._already_shown:
            self._already_shown = False
            return
        with self._changed:  # what changes meanwhile is sent behind it
            handle = display(self.bundle(), raw=True, display_id=True)
            if handle is not None:
                self._handles.append(handle)

    def show_once(self) -> None:
        """Display it now; as the value of the same cell it is then not displayed a second time."""
        self._ipython_display_()
        self._already_shown = True

    def widget(self) -> JobWidget:
        """The view as widgets of ipywidgets, with a button to stop the job, to put among others of a notebook.

        Its state lives in this kernel: a notebook that is opened again shows it no longer, but the view itself.
        """
        from jupyter_pai.widgets.job_widget import JobWidget

        with self._changed:
            made = JobWidget(self)
            self._widgets.append(made)
        return made

    def wait(self, timeout_s: float | None = None) -> JobDetail:
        """Wait for the end of the job and of its log; returns its final detail. Raises as :meth:`wait_for`."""
        return self._wait(lambda: self._ended, timeout_s)

    def wait_for(self, *states: str, timeout_s: float | None = None) -> JobDetail:
        """Wait until the job is in one of ``states``, or has ended; returns its detail then.

        Raises TimeoutError, and ClientError when the job cannot be followed any longer.
        """
        return self._wait(lambda: self.job["state"] in states or self._ended, timeout_s)

    def _wait(self, reached: Callable[[], bool], timeout_s: float | None) -> JobDetail:
        with self._changed:
            in_time = self._changed.wait_for(lambda: bool(self._failure) or reached(), timeout_s)
            if self._failure:
                raise ClientError(self._failure)
            if not in_time:
                raise TimeoutError(f"{self.job['name']} is still {self.job['state']} after {timeout_s} s")
            if self._ended:
                # Once more from the cell that waits: nbclient takes no update that came between two cells.
                self._redraw()
            return self.job

    def _follow(self) -> None:
        """The thread's body."""
        observer = Observer(self._on_job, self._on_log if self._show_log else None)
        try:
            with Client(self._endpoint) as client:
                self._call_later = client.thread.loop.call_later
                client.thread.run(follow(client.api, self.job["uid"], observer))
        except ClientError as error:
            self._finish(failure=render.error_text(error))
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            # The kernel is ending and takes its executors away first; the view is no longer looked at.
        else:
            self._finish()

    def _finish(self, failure: str = "") -> None:
        """Show the last that there is, then wake those who wait: they find the output as it will stay."""
        with self._changed:
            self._failure, self._ended = failure, not failure
            self._redraw()
            self._changed.notify_all()

    def _on_job(self, job: JobDetail) -> None:
        with self._changed:
            self.api.detail, self._seen = job, _now()
            self._changed.notify_all()
        if job["state"] not in FINAL_STATES:  # the end is shown with the whole log, by _finish
            self._redraw_soon()

    def _on_log(self, data: bytes) -> None:
        self._log = (self._log + self._decoder.decode(data))[-LOG_KEPT_CHARS:]
        self._redraw_soon()

    def _redraw_soon(self) -> None:
        if not self._redraw_due:
            self._redraw_due = True
            self._call_later(REDRAW_INTERVAL_S, self._redraw)

    def _redraw(self) -> None:
        self._redraw_due = False
        with self._changed:
            if self._handles and _has_frontend():
                bundle = self.bundle()
                for handle in self._handles:
                    handle.update(bundle, raw=True)
            for widget in self._widgets:
                widget.redraw()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _has_frontend() -> bool:
    """Whether an output can be changed: a terminal would print it once more."""
    shell: Any = get_ipython()
    return getattr(shell, "kernel", None) is not None
