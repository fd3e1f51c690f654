"""How a text for a user was made, as answers and stored values have it beside the English text (ADR 0056)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import (
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    computed_field,
    model_validator,
)

from pai_backend.model.base import Model
from pai_backend.model.text import Text


class Wording(Model):
    """Template and arguments of a text: clients translate the template and put the arguments in."""

    template: str = Field(description="English, with ``{name}`` where an argument goes. Other braces are text.")
    arguments: dict[str, str | Wording] = Field(
        default_factory=dict, description="By name: a text to take as it is, or a wording to translate first."
    )


def wording_of(text: object) -> Wording | None:
    """The wording of a :class:`Text` that says something; None for any other, which has no template."""
    if not isinstance(text, Text) or not text:
        return None
    arguments = {name: wording_of(each) or str(each) for name, each in text.arguments.items()}
    return Wording(template=text.template, arguments=arguments)


def text_of(wording: Wording) -> Text:
    """The text that has this wording."""
    arguments = {name: text_of(each) if isinstance(each, Wording) else each for name, each in wording.arguments.items()}
    return Text(wording.template, **arguments)


def restored(text: str, wording: object) -> str:
    """A text that was stored, or sent, beside its wording; as it is where that does not make it."""
    if wording is None or isinstance(text, Text):
        return text
    made = text_of(wording if isinstance(wording, Wording) else Wording.model_validate(wording))
    return made if made == text else text


class Worded(Model):
    """A model with texts for a user, and beside each its wording, which it takes from them.

    That of ``message`` is ``wording``, that of another field is called after it: ``hint_wording``.
    """

    @model_validator(mode="before")
    @classmethod
    def _take_wordings(cls, values: Any) -> Any:
        """Called by pydantic with what a value is made of."""
        if not isinstance(values, dict):
            return values
        found = {
            name: wording
            for name, text in _text_fields(cls)
            if name not in values and (wording := wording_of(values.get(text))) is not None
        }
        return {**values, **found}


@cache
def _text_fields(kind: type[Model]) -> tuple[tuple[str, str], ...]:
    """The fields that are wordings, each with that of its text."""
    names = [name for name in kind.model_fields if name.endswith("wording")]
    return tuple((name, name.removesuffix("wording").removesuffix("_") or "message") for name in names)


class KeepsWording(Model):
    """A stored model whose ``message`` is a text for a user; the JSON has its wording beside it."""

    @computed_field(description="How ``message`` was made; null where another program wrote it.")  # type: ignore[prop-decorator]
    @property
    def wording(self) -> Wording | None:
        """The template and arguments of the message."""
        return wording_of(getattr(self, "message", ""))

    @model_validator(mode="before")
    @classmethod
    def _restore_message(cls, values: Any) -> Any:
        """Called by pydantic with what a value is made of."""
        if not isinstance(values, dict) or "wording" not in values:
            return values
        message = restored(values.get("message", ""), values["wording"])
        return {**{name: value for name, value in values.items() if name != "wording"}, "message": message}


def _kept(text: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return text if isinstance(text, Text) else check(text)


def _read(text: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return text_of(Wording.model_validate(text)) if isinstance(text, dict) else _kept(text, check)


def _written(text: str) -> object:
    wording = wording_of(text)
    return text if wording is None else wording.model_dump()


UserText = Annotated[str, WrapValidator(_kept)]
"""A field that keeps a :class:`Text` as it is; pydantic would make a bare string of it."""
StoredText = Annotated[str, WrapValidator(_read), PlainSerializer(_written)]
"""As :data:`UserText`, of a model that is only stored: its JSON has the wording of such a text in place of it."""
MessageWording = Annotated[
    Wording | None, Field(description="How ``message`` was made; null where another program wrote it.")
]
HintWording = Annotated[Wording | None, Field(description="How ``hint`` was made; null where there is no hint.")]
TextWording = Annotated[
    Wording | None, Field(description="How that text was made; null where it is empty, or another program wrote it.")
]


def with_wordings(payload: Mapping[str, object]) -> dict[str, object]:
    """The payload of an event, and beside each text for a user its wording."""
    found = {f"{name}_wording": wording for name, text in payload.items() if (wording := wording_of(text)) is not None}
    return {**payload, **{name: wording.model_dump() for name, wording in found.items()}}
