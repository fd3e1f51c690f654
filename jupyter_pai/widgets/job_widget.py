"""A job as widgets of ipywidgets, for a notebook's own arrangement of widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets

from jupyter_pai.errors import ClientError
from jupyter_pai.language import tr
from jupyter_pai.render import error_text
from jupyter_pai.widgets.html import message_html
from jupyter_pai.wire import FINAL_STATES

if TYPE_CHECKING:
    from jupyter_pai.widgets.job_view import JobView


class JobWidget(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """What the view shows, and a button to stop the job. A click waits until the running cell is done."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self.content = ipywidgets.HTML()
        self.message = ipywidgets.HTML()
        self.button = ipywidgets.Button(
            description=tr("Stop"),
            icon="stop",
            tooltip=tr("Stop this job. While a cell runs, this waits until the cell is done."),
        )
        self.button.on_click(self._on_stop)
        super().__init__([self.content, self.message, self.button])
        self.redraw()

    def redraw(self) -> None:
        """Show the job as the view has it now. Called by the view, from its thread."""
        self.content.value = self._view.bundle()["text/html"]
        self.button.disabled = self._view.job["state"] in (*FINAL_STATES, "STOPPING")

    def _on_stop(self, _: object) -> None:
        self.button.disabled = True
        try:
            self._view.stop()
        except ClientError as error:
            self.button.disabled = False
            self.message.value = message_html(error_text(error))
