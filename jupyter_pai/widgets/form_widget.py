"""The form of a document as widgets of ipywidgets: for VS Code, Colab, and a notebook's own arrangement of widgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import yaml

from jupyter_pai.errors import ClientError, InvalidDocument
from jupyter_pai.language import tr
from jupyter_pai.render import error_text
from jupyter_pai.widgets.form_schema import Place, Schema, in_language, leaves, role_schema, roles, value_at, with_value
from jupyter_pai.widgets.html import message_html

if TYPE_CHECKING:
    from jupyter_pai.widgets.form import JobForm

_WIDE = {"description_width": "160px"}


class _Kind(Enum):
    """What a widget's value is of a document's."""

    SAME = "the value itself"
    LINES = "its items, a line each"
    YAML = "a text of YAML"


@dataclass(frozen=True)
class _Field:
    """A widget that shows a field, and what stands for the field when it is left out."""

    widget: Any
    kind: _Kind
    fallback: object

    def shown(self, value: object) -> object:
        """A value as the widget has it."""
        if isinstance(self.widget, ipywidgets.Checkbox):
            return (self.fallback if value is None else value) is True
        if value is None:
            return ""
        if self.kind is _Kind.LINES and isinstance(value, list):
            return "\n".join(map(str, value))
        if self.kind is _Kind.YAML:
            written = str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=None))
            return written.removesuffix("...\n").rstrip("\n")
        return str(value)

    def meant(self, typed: object) -> object:
        """The value for what the widget has; None leaves the field out. Raises YAMLError."""
        if typed == "":
            return None
        if self.kind is _Kind.LINES:
            return str(typed).rstrip("\n").split("\n")
        return yaml.safe_load(str(typed)) if self.kind is _Kind.YAML else typed


class FormWidget(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A page for each group of fields, one for each task role, and buttons that validate, submit and show the document.

    A click waits until the running cell is done. The fields are those of the backend's schema; what has parts of its
    own, such as a list of ports, is a text of YAML.
    """

    def __init__(self, form: JobForm) -> None:
        self._form = form
        self._schema: Schema = form.schema
        self._fields: dict[Place, _Field] = {}
        self._following = False
        self.pages = ipywidgets.Tab()
        self.message = ipywidgets.HTML()
        self.document = ipywidgets.Textarea(layout={"width": "100%", "height": "24em", "display": "none"})
        self.document.observe(self._typed, "value")
        buttons = []
        for label, act in (
            (tr("Validate"), self._validate),
            (tr("Submit"), self._submit),
            (tr("Show document"), self._show),
        ):
            button = ipywidgets.Button(description=label)
            button.on_click(act)
            buttons.append(button)
        super().__init__([self.pages, ipywidgets.HBox(buttons), self.message, self.document])
        self.follow()

    def follow(self) -> None:
        """Show the document as the form has it now. Called by the form."""
        self._following = True
        try:
            if self._is_shown:
                self.document.value = self._form.text
            try:
                value = self._form.value
            except InvalidDocument as error:
                self.message.value = message_html(error_text(error))
                return
            places = {place for place, _ in self._wanted(value)}
            if places != set(self._fields):
                self._draw(value)
            for place, field in self._fields.items():
                shown = field.shown(value_at(value, place))
                if field.widget.value != shown:
                    field.widget.value = shown
        finally:
            self._following = False

    def _wanted(self, value: Mapping[str, Any]) -> list[tuple[Place, Schema]]:
        """The fields that this document has room for."""
        of_job = [(place, field) for place, field in leaves(self._schema) if place[0] != "taskRoles"]
        of_roles = [
            (("taskRoles", step, *place), field)
            for step, _, _ in roles(value)
            for place, field in leaves(role_schema(self._schema))
        ]
        return [(place, field) for place, field in [*of_job, *of_roles] if not _is_left_out(field)]

    def _draw(self, value: Mapping[str, Any]) -> None:
        self._fields = {}
        names = {step: name for step, name, _ in roles(value)}
        pages: dict[str, list[Any]] = {}
        for place, schema in self._wanted(value):
            field = self._fields[place] = _field(schema, str(place[-1]))
            field.widget.observe(lambda change, place=place: self._changed(place, change["new"]), "value")
            page = names[place[1]] if place[0] == "taskRoles" else _section(self._schema, place)
            pages.setdefault(page, []).append(field.widget)
        self.pages.children = [ipywidgets.VBox(fields) for fields in pages.values()]
        self.pages.titles = list(pages)

    def _changed(self, place: Place, typed: object) -> None:
        if self._following:
            return
        try:
            put = self._fields[place].meant(typed)
        except yaml.YAMLError as error:
            self.message.value = message_html(f"{place[-1]}: {error}")
            return
        self.message.value = ""
        value = self._form.value
        if value_at(value, place) != put:
            self._form.value = with_value(value, place, put)

    def _typed(self, change: Mapping[str, Any]) -> None:
        if not self._following:
            self._form.text = change["new"]

    def _validate(self, _: object) -> None:
        try:
            found = self._form.validate()
        except ClientError as error:
            self.message.value = message_html(error_text(error))
            return
        faults = [f"{fault['path']}: {fault['message']}" for fault in found["errors"]]
        text = "\n".join(faults) if faults else tr("Ready to submit: {name}", name=found["name"])
        self.message.value = f'<pre role="status">{escape(text)}</pre>'

    def _submit(self, _: object) -> None:
        try:
            job = self._form.submit()
        except ClientError as error:
            self.message.value = message_html(error_text(error))
            return
        self.message.value = f'<pre role="status">{escape(tr("Submitted: {name}", name=job.name))}</pre>'

    @property
    def _is_shown(self) -> bool:
        """Whether the document is shown. Only then a widget holds it: it may have secrets."""
        return bool(self.document.layout.display != "none")

    def _show(self, _: object) -> None:
        self.document.layout.display = "none" if self._is_shown else None
        self._following = True
        self.document.value = self._form.text if self._is_shown else ""
        self._following = False


def _is_left_out(schema: Schema) -> bool:
    """Whether it is no field: hidden, or a secret, which no widget may hold. The document takes it."""
    held = schema.get("additionalProperties") or schema.get("items") or {}
    return schema.get("x-widget") in ("hidden", "secret") or held.get("x-widget") == "secret"


def _section(schema: Schema, place: Place) -> str:
    """The title of the page that a field of the job is on."""
    titles = {each["id"]: in_language(each)["title"] for each in schema.get("x-sections", ())}
    found, at = "", schema
    for step in place:
        at = at["properties"][step]
        found = at.get("x-section", found)
    return str(titles.get(found, tr("More")))


def _field(schema: Schema, name: str) -> _Field:
    """The widget of a field."""
    type_, widget, words = schema.get("type"), schema.get("x-widget"), in_language(schema)
    common = {
        "description": words.get("title", name),
        "tooltip": words.get("description", ""),
        "style": _WIDE,
        "layout": {"width": "95%"},
    }
    kind = _Kind.SAME
    if "enum" in schema:
        made = ipywidgets.Dropdown(options=["", *schema["enum"]], **common)
    elif type_ == "boolean":
        made = ipywidgets.Checkbox(**common)
    elif type_ == "string" and widget != "textarea":
        made = ipywidgets.Text(continuous_update=False, **common)
    else:
        if type_ != "string":
            kind = _Kind.LINES if widget == "lines" else _Kind.YAML
        rows = 1 if type_ in ("integer", "number") else 3
        made = ipywidgets.Textarea(continuous_update=False, rows=rows, **common)
    return _Field(made, kind, schema.get("x-fallback"))
