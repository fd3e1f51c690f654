"""A job in a cell: a live view that follows the job in a thread of its own.

A thread, because a kernel's own loop stands still while a cell runs, and the view must not. The Stop
button is a message to the kernel, so it waits until the running cell is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets
from IPython.display import display

from jupyter_pai import render
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import ClientError
from jupyter_pai.following import Observer, follow
from jupyter_pai.log_text import incremental_decoder
from jupyter_pai.sync import Client
from jupyter_pai.widgets.html import job_html, log_html, message_html
from jupyter_pai.wire import FINAL_STATES
from jupyter_pai.wire_types import JobDetail

LOG_KEPT_CHARS = 64 * 1024
LOG_INTERVAL_S = 0.2
"""A cell's log is redrawn at most this often: each time sends its whole text to the browser."""


class JobView:
    """A live view of one job. ``job`` is its latest detail; a plain frontend shows the text of ``repr``."""

    def __init__(self, endpoint: Endpoint, job: JobDetail, *, show_log: bool = True) -> None:
        self.job = job
        self._endpoint = endpoint
        self._show_log = show_log
        self._changed = threading.Condition()
        self._failure = ""
        self._ended = False
        self._decoder = incremental_decoder()
        self._log = ""
        self._redraw_due = False
        self._shown = False
        self._make_widgets()
        self._thread = threading.Thread(target=self._follow, name=f"pai-{job['alias']}", daemon=True)
        self._thread.start()

    def _make_widgets(self) -> None:
        self._summary = ipywidgets.HTML(job_html(self.job))
        self._log_area = ipywidgets.HTML()
        self._message = ipywidgets.HTML()
        self._button = ipywidgets.Button(
            description="Stop",
            icon="stop",
            tooltip="Stop this job. While a cell runs, this waits until the cell is done.",
            disabled=self.job["state"] in FINAL_STATES,
        )
        self._button.on_click(self._on_stop)
        self.widget = ipywidgets.VBox([self._summary, self._message, self._button, self._log_area])

    def __repr__(self) -> str:
        text = render.job_page(self.job)
        return f"{text}\n{self._failure}" if self._failure else text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, object]:
        bundle: dict[str, object] = dict(self.widget._repr_mimebundle_(**kwargs) or {})
        return {**bundle, "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        """Called by IPython in place of looking for representations."""
        if self._shown:
            self._shown = False
            return
        display(self._repr_mimebundle_(), raw=True)

    def show_once(self) -> None:
        """Display it now; as the value of the same cell it is then not displayed a second time."""
        self._ipython_display_()
        self._shown = True

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
            return self.job

    def stop(self) -> None:
        """Ask the job to stop."""
        with Client(self._endpoint) as client:
            client.stop(self.job["uid"])

    def _on_stop(self, _: object) -> None:
        self._button.disabled = True
        try:
            self.stop()
        except ClientError as error:
            self._button.disabled = False
            self._message.value = message_html(render.error_text(error))

    def _follow(self) -> None:
        """The thread's body."""
        observer = Observer(self._on_job, self._on_log if self._show_log else None)
        try:
            with Client(self._endpoint) as client:
                self._call_later = client.thread.loop.call_later
                client.thread.run(follow(client.api, self.job["uid"], observer))
        except ClientError as error:
            self._message.value = message_html(render.error_text(error))
            with self._changed:
                self._failure = error.message
                self._changed.notify_all()
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            # The kernel is ending and takes its executors away first; the view is no longer looked at.
        else:
            self._redraw()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _on_job(self, job: JobDetail) -> None:
        self._summary.value = job_html(job)
        self._button.disabled = job["state"] in (*FINAL_STATES, "STOPPING")
        with self._changed:
            self.job = job
            self._changed.notify_all()

    def _on_log(self, data: bytes) -> None:
        self._log = (self._log + self._decoder.decode(data))[-LOG_KEPT_CHARS:]
        if not self._redraw_due:
            self._redraw_due = True
            self._call_later(LOG_INTERVAL_S, self._redraw)

    def _redraw(self) -> None:
        self._redraw_due = False
        self._log_area.value = log_html(self._log)
