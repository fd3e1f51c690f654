"""The form of a document in a notebook: what Python has of it, and its plain widgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import ClientError, InvalidDocument
from jupyter_pai.widgets.form import MIME, JobForm
from jupyter_pai.widgets.form_schema import Schema, dialect_of
from jupyter_pai.widgets.form_widget import FormWidget
from pai_backend.protocol.schema import FormDialect, job_schema

ROOT = Path(__file__).parents[3]
SCM = (ROOT / "examples" / "scm-helloworld.json").read_text(encoding="utf-8")
V2 = (ROOT / "examples" / "train.yaml").read_text(encoding="utf-8")


class Offline(JobForm):
    """A form whose schema is the backend's own, without a backend."""

    @property
    def schema(self) -> Schema:
        """As the backend would tell it."""
        return job_schema(FormDialect(dialect_of(self.value)))


def form_of(text: str) -> Offline:
    """A form of a document."""
    return Offline(Endpoint("http://127.0.0.1:9", "t"), text)


def field_of(widget: FormWidget, title: str) -> Any:
    """The widget of a field."""
    fields = [field for page in widget.pages.children for field in page.children]
    return next(field for field in fields if field.description == title)


def test_fields_are_filled_in_by_name_of_the_job_and_of_its_role() -> None:
    form = form_of(SCM)
    form.fill(jobName="filled", gpuNumber=2)
    assert form.value["jobName"] == "filled"
    assert form.value["taskRoles"][0]["gpuNumber"] == 2
    v2 = form_of(V2)
    v2.fill(gpu=3)
    assert v2.value["taskRoles"]["worker"]["resourcePerInstance"]["gpu"] == 3


def test_a_field_that_there_is_not_is_refused_and_nothing_changed() -> None:
    form = form_of(SCM)
    with pytest.raises(ClientError) as raised:
        form.fill(jobName="kept-out", jobNmae="x")
    assert "jobName" in raised.value.hint
    assert form.text == SCM


def test_no_output_holds_a_secret() -> None:
    form = form_of(V2)
    assert "not-a-real-token" in form.text
    assert "not-a-real-token" not in json.dumps(form.bundle())
    assert set(form.bundle()) == {MIME, "text/html", "text/plain"}


def test_where_there_is_no_panel_the_output_is_widgets_with_text_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSCODE_PID", "1")
    found = form_of(V2)._repr_mimebundle_()
    assert {MIME, "text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} == set(found)


@pytest.mark.parametrize(("text", "tasks"), [(SCM, "Tasks"), (V2, "Tasks")])
def test_widgets_show_the_document_and_change_it(text: str, tasks: str) -> None:
    form = form_of(text)
    widget = form.widget()
    assert form.text == text
    field_of(widget, tasks).value = "7"
    (role,) = form.value["taskRoles"] if text is SCM else form.value["taskRoles"].values()
    assert 7 in (role.get("taskNumber"), role.get("instances"))
    form.fill(**{"jobName" if text is SCM else "name": "by-python"})
    assert field_of(widget, "Name").value == "by-python"


def test_no_widget_holds_a_secret_before_the_document_is_asked_for() -> None:
    widget = form_of(V2).widget()
    held = [field.value for page in widget.pages.children for field in page.children]
    assert "not-a-real-token" not in repr([*held, widget.document.value])


def test_what_cannot_be_read_is_told_and_kept() -> None:
    form = form_of(SCM)
    widget = form.widget()
    form.text = "{ broken"
    with pytest.raises(InvalidDocument):
        _ = form.value
    assert "cannot be read" in widget.message.value
    form.text = SCM
    assert field_of(widget, "Name").value == json.loads(SCM)["jobName"]
