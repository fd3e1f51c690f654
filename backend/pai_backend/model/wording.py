"""How a text for a user was made, as answers and stored values have it beside the English text (ADR 0056)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

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


class Worded(Model):
    """A model with a ``message`` and a ``hint`` for a user, and beside each its wording, which it takes from them."""

    @model_validator(mode="before")
    @classmethod
    def _take_wordings(cls, values: Any) -> Any:
        """Called by pydantic with what a value is made of."""
        if not isinstance(values, dict):
            return values
        found = {
            name: wording
            for name, text in (("wording", "message"), ("hint_wording", "hint"))
            if name not in values and (wording := wording_of(values.get(text))) is not None
        }
        return {**values, **found}


def _kept(text: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return text if isinstance(text, Text) else check(text)


UserText = Annotated[str, WrapValidator(_kept)]
"""A field that keeps a :class:`Text` as it is; pydantic would make a bare string of it."""
MessageWording = Annotated[
    Wording | None, Field(description="How ``message`` was made; null where another program wrote it.")
]
HintWording = Annotated[Wording | None, Field(description="How ``hint`` was made; null where there is no hint.")]
