"""``notify``: messages about jobs by mail, a webhook or a chat."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.commands.keys import duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.users import ask
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb
from pai_backend.model.text import Text

GROUPS["notify"] = "Messages about your jobs by mail, a webhook or a chat: add, list, test, remove"

PATH = "/api/v2/notifications"
CHANNELS = ("mail", "webhook", "slack", "teams", "feishu", "dingtalk")
NEWS = (
    "started", "waited", "succeeded", "failed", "stopped", "retried", "preempted", "kept", "idle", "gpus-idle",
    "budget",
)  # fmt: skip
ANSWER_S = 40.0
LOOK_S = 0.5

ID = argument("id", help="its id, as `pai notify list` shows it")


@verb(
    "notify add",
    argument("channel", choices=CHANNELS, help="how they come"),
    argument("to", nargs="?", help="a mail address, by default your account's; or a URL, or - to read it from stdin"),
    argument(
        "--on",
        action="append",
        default=[],
        choices=NEWS,
        help="which news, as often as needed; default: succeeded, failed, preempted, kept, idle, gpus-idle, budget",
    ),
    argument(
        "--waited", type=duration, metavar="TIME", help="for --on waited: from which time on, such as 2h; default: 1h"
    ),
    flag("--secret-stdin", help="read the secret that messages are signed with from the standard input"),
    shell_only=True,
)
def add(args: argparse.Namespace, out: Output) -> int:
    """Get messages about your jobs from now on: by mail, a webhook, or in a chat by the URL that its bot has.

    A document with `jobStatusChangeNotification` adds to them for its own job.
    """
    given = {
        "channel": args.channel,
        "to": _line(Text("URL or address")) if args.to == "-" else args.to,
        "secret": _line(Text("secret")) if args.secret_stdin else None,
        "news": list(dict.fromkeys(args.on)) or None,
        "waitedS": args.waited,
    }
    value = {name: each for name, each in given.items() if each is not None}
    made = cast(dict[str, Any], asked(lambda api: ask(api, "POST", PATH, value)))
    told = tr(
        "From now on {channel} ({place}) has: {news}.",
        channel=made["channel"],
        place=made["place"],
        news=", ".join(made["news"]),
    )
    out.result(made, told + "\n" + tr("`pai notify test {id}` sends a message now.", id=made["id"]))
    return OK


def _line(what: str) -> str:
    line = sys.stdin.readline().strip()
    if not line:
        raise ClientError(Text("There is no {what} on the standard input.", what=what), code="InvalidParametersError")
    return line


@verb("notify list")
def list_notifications(args: argparse.Namespace, out: Output) -> int:
    """Your notifications, and whether the last message arrived."""
    found = _all()
    rows = [(each["id"], each["channel"], each["place"], " ".join(each["news"]), _state(each)) for each in found]
    out.result(found, render.table(("ID", "CHANNEL", "TO", "NEWS", "LAST MESSAGE"), rows))
    return OK


@verb("notify test", ID)
def test(args: argparse.Namespace, out: Output) -> int:
    """Send a message now, and say whether it arrived."""
    before = _one(args.id)
    asked(lambda api: ask(api, "POST", f"{PATH}/{quote(args.id, safe='')}/test"))
    end = time.monotonic() + ANSWER_S
    while (now := _one(args.id))["triedAt"] == before["triedAt"]:
        if time.monotonic() > end:
            raise ClientError(
                "The message has not been sent yet.", code="UnavailableError", hint="`pai notify list` tells more."
            )
        time.sleep(LOOK_S)
    if now["trouble"]:
        raise ClientError(
            Text("The message did not arrive: {trouble}.", trouble=now["trouble"]), code="UnavailableError"
        )
    out.result(now, tr("A message has arrived at {place}.", place=now["place"]))
    return OK


@verb("notify remove", ID)
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a notification."""
    asked(lambda api: ask(api, "DELETE", f"{PATH}/{quote(args.id, safe='')}"))
    out.result({"removed": args.id}, tr("Removed {id}.", id=args.id))
    return OK


def _all() -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], asked(lambda api: ask(api, "GET", PATH))["data"])


def _one(id_: str) -> dict[str, Any]:
    for each in _all():
        if each["id"] == id_:
            return each
    raise ClientError(
        Text("You have no notification {id}.", id=f"{id_!r}"),
        code="NoNotificationError",
        hint="`pai notify list` shows yours.",
    )


def _state(each: dict[str, Any]) -> str:
    if each["trouble"]:
        said = tr("did not arrive: {trouble}", trouble=each["trouble"])
        if each["waiting"]:
            said = tr("{state}; {number} wait", state=said, number=each["waiting"])
        return tr("{state}; {number} were given up", state=said, number=each["lost"]) if each["lost"] else said
    return tr("arrived {sent_at}", sent_at=render.clock(each["sentAt"])) if each["sentAt"] else tr("none yet")
