"""What a conversion gives: the text, and what it does not say any more."""

from __future__ import annotations

from dataclasses import dataclass, field

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import DocumentWarning
from pai_backend.model.text import NO_TEXT, Text
from pai_backend.protocol.document import read_document
from pai_backend.protocol.fields import Path
from pai_backend.protocol.tree import path_text


@dataclass(frozen=True)
class Converted:
    """A document in another protocol. Not in ``repr``: the text, which may hold secrets.

    Each of ``lost`` has the path of something in the document it was made from, and one of these codes: ``lost``
    (nothing in the result says it), ``kept-aside`` (this product follows it, other systems do not),
    ``renamed`` and ``rewritten`` (said in other words).
    """

    text: str = field(repr=False)
    lost: tuple[DocumentWarning, ...] = ()


class Losses:
    """Collects what a conversion loses or changes."""

    def __init__(self) -> None:
        self._found: list[DocumentWarning] = []

    def lost(self, path: Path, message: Text, hint: Text = NO_TEXT) -> None:
        """Something that nothing in the result says."""
        self._add("lost", path, message, hint)

    def kept_aside(self, path: Path, message: Text, hint: Text = NO_TEXT) -> None:
        """Something that only this product reads back."""
        self._add("kept-aside", path, message, hint)

    def renamed(self, path: Path, message: Text, hint: Text = NO_TEXT) -> None:
        """A name that the target does not allow, and what it is now."""
        self._add("renamed", path, message, hint)

    def rewritten(self, path: Path, message: Text, hint: Text = NO_TEXT) -> None:
        """A text that says the same in other words."""
        self._add("rewritten", path, message, hint)

    @property
    def found(self) -> tuple[DocumentWarning, ...]:
        """All so far."""
        return tuple(self._found)

    def _add(self, code: str, path: Path, message: Text, hint: Text) -> None:
        self._found.append(DocumentWarning(code=code, message=message, path=path_text(path), hint=hint))


def finished(text: str, losses: Losses) -> Converted:
    """The conversion, once its text was read back. Raises DocumentError when it is over a limit of the reader.

    A document near the limits may be beyond them in the other protocol: quotes make texts longer, and what is put
    aside stands deeper.
    """
    try:
        read_document(text)
    except DocumentError as error:
        first = error.errors[0]
        message = Text(
            "in the other protocol it is not a valid document: {first} ({path})", first=first.message, path=first.path
        )
        raise refused((), message, Text("Shorten or simplify the document.")) from None
    return Converted(text, losses.found)


def refused(path: Path, message: Text, hint: Text) -> DocumentError:
    """The error of a document that cannot be said in the target at all."""
    fault = Fault(path=path_text(path), message=message, hint=hint)
    return DocumentError(
        Text("the document cannot be converted: {message}", message=message), errors=[fault], hint=hint
    )
