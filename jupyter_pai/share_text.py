"""Shares in words: who may enter what, until when, to do what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_pai.language import tr
from jupyter_pai.render import clock, job_list, table

if TYPE_CHECKING:
    from jupyter_pai.broker import Shares
    from jupyter_pai.wire_types import ShareWire, Summary


def owner(share: ShareWire) -> str:
    """Whose job it is. Source: docs/rest.md, names of jobs (``user~name``)."""
    return share["job"].partition("~")[0]


def only_words(share: ShareWire) -> str:
    """What it allows."""
    if share.get("isLink"):
        return tr("reading {services}", services=" ".join(share["services"]))
    return " ".join(share["only"]) or tr("everything")


def until(share: ShareWire) -> str:
    """When it ends by itself."""
    return clock(share["expiresAt"]) or tr("the job's end")


def share_line(share: ShareWire) -> str:
    """One share of a job."""
    if share.get("isLink"):
        parts = [share["job"], share["user"]]
    else:
        named = tr("ssh name {alias}", alias=share["alias"]), tr("with {user}", user=share["user"])
        parts = [share["job"], *named]
    return "  ".join([*parts, only_words(share), tr("until {time}", time=until(share))])


def received_text(shares: Sequence[ShareWire]) -> str:
    """Jobs of others that the reader may enter; empty when there is none."""
    rows = [(each["job"], each["alias"], owner(each), only_words(each), until(each)) for each in shares]
    return table(("SHARED WITH YOU", "SSH NAME", "BY", "ALLOWED", "UNTIL"), rows) if rows else ""


def given_text(shares: Sequence[ShareWire]) -> str:
    """Jobs of the reader's that others may enter; empty when there is none."""
    rows = [(each["job"], each["user"], only_words(each), until(each)) for each in shares]
    return table(("SHARED BY YOU", "WITH", "ALLOWED", "UNTIL"), rows) if rows else ""


def shares_text(shares: Shares) -> str:
    """Both, for people."""
    parts = [received_text(shares["received"]), given_text(shares["given"])]
    return "\n\n".join(part for part in parts if part) or tr("Nothing is shared.")


def listed(jobs: Sequence[Summary], shares: Shares, *, chosen: bool = False) -> str:
    """A list of jobs that says which are shared and, unless jobs were ``chosen``, what others share with the reader."""
    received = "" if chosen else received_text(shares["received"])
    return "\n\n".join(part for part in (job_list(jobs, sharers(shares["given"])), received) if part)


def sharers(shares: Sequence[ShareWire]) -> dict[str, str]:
    """With whom each job is shared, by its uid: the mark in a list."""
    found: dict[str, list[str]] = {}
    for share in shares:
        found.setdefault(share["uid"], []).append(share["user"])
    return {uid: ", ".join(users) for uid, users in found.items()}
