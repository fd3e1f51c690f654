"""A person's yes before an assistant starts or ends anything.

An assistant's program that can ask its user has to (*elicitation* in the protocol), and the answer does not pass
through the model. Any other gets the question and a word that only this process can make for exactly this change; the
model must show the one and bring the other, so that a change is never made by a first call.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Annotated, Any

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit
from pydantic import BaseModel, Field

from jupyter_pai.assistants.callers import Call

_KEY = secrets.token_bytes(32)
WORD_CHARACTERS = 10

Confirmation = Annotated[
    str, Field(description="Only where this asked for one: the word that it gave, once the user has agreed.")
]


class Agreement(BaseModel):
    """What the person says."""

    agreed: bool = Field(title="Do it")


def ask(ctx: Call, question: str, change: object, confirmation: str) -> Elicit[Agreement] | Agreement:
    """Have the user asked; where their program cannot, take the word for this change. Raises ToolError without it."""
    able = ctx.client_capabilities
    if able is not None and able.elicitation is not None:
        return Elicit(question, Agreement)
    word = word_for(change)
    if hmac.compare_digest(confirmation.strip().encode(), word.encode()):
        return Agreement(agreed=True)
    raise ToolError(
        f"Nothing was done yet. {question}\n"
        f"Show this to the user; once they agree, call again with the same arguments and confirmation={word!r}."
    )


def word_for(change: object) -> str:
    """The word for a change, which is anything that JSON can hold; good as long as this process lives."""
    text = json.dumps(change, sort_keys=True).encode()
    return hmac.new(_KEY, text, hashlib.sha256).hexdigest()[:WORD_CHARACTERS]


def require(answer: ElicitationResult[Any]) -> None:
    """Raises ToolError unless the person agreed."""
    if not isinstance(answer, AcceptedElicitation) or not answer.data.agreed:
        raise ToolError("The user does not want it. Nothing was done.")
