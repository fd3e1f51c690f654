"""A job document as a form in a cell. Its text is kept here; what draws the form changes it.

JupyterLab and Notebook draw it by the panel, which finds this form in its kernel by a comm and talks to the backend
through the Jupyter server, so that it works while a cell runs. Where there is no panel, ``widget`` draws the same
schema with widgets of ipywidgets. A notebook keeps the document with its secrets masked, as JSON, HTML and text.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakValueDictionary

import comm
import yaml
from IPython.display import display

from jupyter_pai import templates
from jupyter_pai.api import Document, document_bytes
from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.errors import ClientError, InvalidDocument
from jupyter_pai.sync import shared
from jupyter_pai.widgets.form_schema import Schema, dialect_of, place_of, with_value
from jupyter_pai.widgets.job_view import JobView
from pai_backend.protocol.document import locate_yaml
from pai_backend.protocol.locate import locate
from pai_backend.protocol.mask import masked

if TYPE_CHECKING:
    from comm.base_comm import BaseComm
    from IPython.display import DisplayHandle

    from jupyter_pai.widgets.form_widget import FormWidget
    from jupyter_pai.wire_types import Validation

MIME: Final = "application/vnd.jupyter-pai.form+json"
"""What the panel renders."""
TARGET: Final = "jupyter-pai.form"
"""The comm by which the panel finds a form in its kernel."""
EMPTY: Final = "empty"
"""The shipped template that fields are filled in to, where there is no document."""

_forms: WeakValueDictionary[str, JobForm] = WeakValueDictionary()


class JobForm:
    """A document and its form. ``text`` is the document, ``value`` what it says; both may be set.

    A change by the form changes the fewest lines of the text. One by Python rewrites it, without comments.
    """

    def __init__(self, endpoint: Endpoint, text: str, filename: str = "") -> None:
        self._client = shared(endpoint)
        self._id = uuid.uuid4().hex
        self._text, self.filename = text, filename
        self._submitted = ""
        self._comms: list[BaseComm] = []
        self._handles: list[DisplayHandle] = []
        self._widgets: list[FormWidget] = []
        _forms[self._id] = self
        comm.get_comm_manager().register_target(TARGET, _opened)

    @property
    def text(self) -> str:
        """The document, byte for byte where nothing was changed."""
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._take(text, None)

    @property
    def value(self) -> dict[str, Any]:
        """What the document says. Raises InvalidDocument while it cannot be read."""
        if not self._text.strip():
            return {}
        is_json = self._text.lstrip("\ufeff \t\r\n").startswith(("{", "/"))
        read = locate(self._text) if is_json else locate_yaml(self._text)
        found = read.root.plain() if read.root is not None and not read.flaws else None
        if not isinstance(found, dict):
            raise InvalidDocument(
                "The document of the form cannot be read.",
                code="InvalidJobConfigError",
                hint="validate() says what is wrong and where.",
            )
        return found

    @value.setter
    def value(self, value: Mapping[str, object]) -> None:
        is_json = self._text.strip() == "" or self._text.lstrip("\ufeff \t\r\n").startswith(("{", "/"))
        self.text = (
            json.dumps(value, ensure_ascii=False, indent=2) + "\n"
            if is_json
            else yaml.safe_dump(dict(value), allow_unicode=True, sort_keys=False, width=1 << 20)
        )

    @property
    def schema(self) -> Schema:
        """The fields that a document of this dialect may have, from the backend. Raises ClientError."""
        query = {"dialect": dialect_of(self.value)}
        answer = self._client.thread.run(self._client.api.request("GET", "/api/v2/schema/job", query=query))
        return cast(Schema, json.loads(answer.body))

    @property
    def job(self) -> JobView | None:
        """The job that was last submitted by the form or by :meth:`submit`; None before."""
        if not self._submitted:
            return None
        return JobView(self._client.api.endpoint, self._client.job(self._submitted))

    def fill(self, **fields: object) -> None:
        """Set fields by their names, of the job or of its task roles. Raises ClientError for one that there is not."""
        value, schema = self.value, self.schema
        for name, given in fields.items():
            value = with_value(value, place_of(schema, value, name), given)
        self.value = value

    def validate(self) -> Validation:
        """What the backend finds wrong. Nothing is submitted."""
        run = self._client.thread.run
        return run(self._client.api.validate(self._text.encode(), filename=self.filename or None))

    def submit(self, name: str | None = None, *, replace: bool = False) -> JobView:
        """Submit the document as it is now. Raises InvalidDocument with every fault, and NameTaken."""
        work = self._client.api.submit(self._text.encode(), name=name, filename=self.filename or None, replace=replace)
        job = self._client.thread.run(work)
        self._submitted = job["uid"]
        return JobView(self._client.api.endpoint, job)

    def widget(self) -> FormWidget:
        """The form as widgets of ipywidgets, for programs without the panel. They live as long as this kernel."""
        from jupyter_pai.widgets.form_widget import FormWidget

        made = FormWidget(self)
        self._widgets.append(made)
        return made

    def bundle(self) -> dict[str, Any]:
        """The form as an output of a cell, in all forms that a notebook may be looked at in."""
        text = masked(self._text.encode()).decode() if self._text.strip() else ""
        return {
            MIME: {"form": self._id, "text": text, "filename": self.filename},
            "text/html": f'<pre aria-label="job document">{escape(text)}</pre>',
            "text/plain": text,
        }

    def __repr__(self) -> str:
        return str(self.bundle()["text/plain"])

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        found = self.bundle()
        if _draws_widgets_only():
            view = self.widget()._repr_mimebundle_()
            found = {**view, **found}
        return found

    def _ipython_display_(self) -> None:
        """Called by IPython in place of looking for representations."""
        handle = display(self._repr_mimebundle_(), raw=True, display_id=True)
        if handle is not None and not _draws_widgets_only():
            self._handles.append(handle)

    def connect(self, connection: BaseComm) -> None:
        """Keep a drawn form in step, until it is closed."""
        self._comms.append(connection)
        connection.on_msg(lambda message: self._heard(message["content"]["data"], connection))
        connection.on_close(lambda _: self._comms.remove(connection))
        connection.send({"text": self._text, "filename": self.filename})

    def _heard(self, told: Mapping[str, str], connection: BaseComm) -> None:
        if "submitted" in told:
            self._submitted = told["submitted"]
        if "text" in told:
            self.filename = told.get("filename", self.filename)
            self._take(told["text"], connection)

    def _take(self, text: str, source: BaseComm | None) -> None:
        """Keep a text, and bring all that shows it in step, except what has told it."""
        if text == self._text:
            return
        self._text = text
        for each in self._comms:
            if each is not source:
                each.send({"text": text, "filename": self.filename})
        for handle in self._handles:
            handle.update(self.bundle(), raw=True)
        for widget in self._widgets:
            widget.follow()


def _opened(connection: BaseComm, message: Mapping[str, Any]) -> None:
    """Called when something that draws forms looks for one; it may be of a kernel that is gone."""
    found = _forms.get(str(message["content"]["data"].get("form")))
    if found is None:
        connection.close()
    else:
        found.connect(connection)


def _draws_widgets_only() -> bool:
    """Whether the notebook is shown by VS Code or Colab, which draw widgets and have no panel."""
    return "VSCODE_PID" in os.environ or "google.colab" in sys.modules


def form(document: Document | None = None, *, template: str | None = None, **fields: object) -> JobForm:
    """A form for a job: of a document, of a template, or an empty one.

    ``fields`` are filled in, by their names in the document: ``pai.form(jobName="train", gpuNumber=2)``. Without any
    of these the form offers templates and drafts. Raises ClientError.
    """
    if document is not None and template is not None:
        raise ClientError("Name either a document or a template.", code="InvalidParametersError")
    endpoint = resolve(start=True)
    client = shared(endpoint)
    data, filename = b"", None
    if document is not None:
        data, filename = document_bytes(document)
    elif template is not None or fields:
        data = client.thread.run(templates.document(client.api, template or EMPTY))
    made = JobForm(endpoint, data.decode("utf-8-sig", "replace"), filename or "")
    if fields:
        made.fill(**fields)
    return made
