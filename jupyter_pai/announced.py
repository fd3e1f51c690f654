"""What administrators announce to all users, as the verbs that most begin with say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.errors import Denied, NotFound
from jupyter_pai.language import tr

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import AnnouncementWire


def tell(client: Client, say: Callable[[str], None]) -> None:
    """Say what is announced, beside what a verb is for. Raises ClientError."""
    try:
        found = client.announcement()
    except (Denied, NotFound):  # a token that may not read, or a backend of before
        return
    if found is not None:
        say(text_of(found))


def text_of(found: AnnouncementWire) -> str:
    """An announcement, with who made it and until when."""
    begins, by = found["noStartsFrom"], found["by"]
    said = tr("Announced by {by}: {text}", by=by, text=found["text"])
    if found["until"]:
        said = tr(
            "Announced by {by} until {time}: {text}", by=by, time=render.clock(found["until"]), text=found["text"]
        )
    if begins:
        said += "\n" + tr("From {time} on no job starts; running jobs go on.", time=render.clock(begins))
    return said
