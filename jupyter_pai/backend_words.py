"""English sentences that a backend has made, in the user's language: what an end means, and answers to requests.

A backend sends most texts with a code or in both languages. These it sends as sentences, which are recognised by the
templates that they are made of. One that is not known stays as it is, as it does in English. Source:
``pai_backend.lifecycle.exits`` and the services of the API; a test compares them.
"""

from __future__ import annotations

import re

from jupyter_pai.language import ENGLISH, language, recognised, tr
from pai_backend.model.text import Text

ANSWERS = (
    Text("job {job} is asked to stop"),
    Text("job {job} is restarted"),
    Text("job {job} is started already"),
    Text("job {job} is deleted; its outputs in storages are kept"),
    Text("job {job} is deleted as soon as the engine has removed its tasks; its outputs in storages are kept"),
    Text("job {job}: released: {tasks}"),
    Text("job {job}: nothing to release: no such task is kept"),
    Text("job {job} is there already"),
    Text("job {job} is number {place} of its priority now"),
)
FACTS = (
    Text("exited with status {code}"),
    Text("ended by signal {signal}"),
    Text("{reason}, exit status not known"),
)
"""What an engine says of an end in one clause."""

_SIGNAL = re.compile(r"signal (\d+(?: \([A-Z0-9]+\))?)", re.IGNORECASE)


def answered(message: str) -> str:
    """The answer to a request that changes a job."""
    return recognised(message, ANSWERS)


def ended(message: str) -> str:
    """What an end means: a clause of docs/exits.md, and behind it in brackets what the engine says."""
    if language() == ENGLISH:
        return message
    for at in (place.start() for place in re.finditer(r" \(", message)):
        if message.endswith(")") and (clause := _clause(message[:at])):
            return tr("{clause} ({fact})", clause=clause, fact=recognised(message[at + 2 : -1], FACTS))
    return recognised(tr(message), FACTS)


def _clause(text: str) -> str:
    """The clause in the user's language, as part of a line; empty when it is not one of docs/exits.md."""
    sentence = f"{text[:1].upper()}{text[1:]}."
    found = _SIGNAL.search(sentence)
    key = sentence if found is None else sentence.replace(found[1], "%1", 1)
    said = tr(key)
    if said == key:
        return ""
    return (said if found is None else said.replace("%1", found[1])).rstrip("。")
