"""Bodies of errors, and faults and warnings without their wordings, for tests of what they say in English."""

from typing import TypeVar

from pai_backend.model.wording import Worded

ERROR_KEYS = {"code", "message", "errors", "hint", "requestId", "wording", "hintWording"}
"""What every body of an error has."""
Said = TypeVar("Said", bound=Worded)


def in_english(said: Said) -> Said:
    """The value with its English texts alone."""
    return said.model_copy(update={"wording": None, "hint_wording": None})
