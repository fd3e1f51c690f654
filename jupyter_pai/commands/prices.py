"""``price``: what hours of GPUs and CPUs cost."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.usage import moment
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, verb

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_pai.wire_types import PriceListWire

GROUPS["price"] = "Prices of GPU and CPU hours: list, set, remove; set by administrators"


def amount(text: str) -> str:
    """Money, as a decimal number. Raises argparse.ArgumentTypeError."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text.strip(), re.ASCII) is None:
        raise argparse.ArgumentTypeError(tr("{text} is not an amount such as 2.50", text=repr(text)))
    return text.strip()


TYPE = argument("type", help="a GPU type, as `pai usage` shows it; or `cpu`, for each CPU of tasks without GPUs")


@verb("price list")
def show(args: argparse.Namespace, out: Output) -> int:
    """Prices that hold, held and will hold."""
    with connected() as client:
        found = client.prices()
    out.result(found, text_of(found))
    return OK


@verb(
    "price set",
    TYPE,
    argument("hourly", type=amount, help="what an hour of one costs, such as 2.50"),
    argument("--from", dest="since", type=moment, help="from when on, such as 2026-12-01; default: from now on"),
    argument("--currency", help="the word for all prices, such as EUR; no amount is converted"),
)
def put(args: argparse.Namespace, out: Output) -> int:
    """Set what an hour of a GPU costs from a moment on; for administrators.

    What was used before that moment keeps its price. A later price that is set already stays.
    """
    _put(args.type, args.hourly, args.since, args.currency, out)
    return OK


@verb("price remove", TYPE, argument("--from", dest="since", type=moment, help="from when on; default: from now on"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """End a price, and remove those that were to follow it. What was used before that moment keeps its price."""
    _put(args.type, None, args.since, None, out)
    return OK


def _put(kind: str, hourly: str | None, since: datetime | None, currency: str | None, out: Output) -> None:
    at = since.isoformat() if since is not None else None
    with connected() as client:
        found = client.set_price({"type": kind, "hourly": hourly, "since": at, "currency": currency})
    out.result(found, text_of(found))


def text_of(found: PriceListWire) -> str:
    """Prices as a shell shows them."""
    if not found["data"]:
        return tr("Nothing has a price.")
    rows = [
        (
            each["type"],
            tr("none") if each["hourly"] is None else f"{each['hourly']} {found['currency']}",
            _day(each["since"]),
            _day(each["until"]) if each["until"] else "-",
            tr("yes") if each["holds"] else "",
        )
        for each in found["data"]
    ]
    return render.table(("TYPE", "AN HOUR", "FROM", "UNTIL", "HOLDS NOW"), rows)


def _day(at: str) -> str:
    """The day of UTC, with the minute of a moment that is not midnight."""
    day, time = at[:10], at[11:16]
    return day if time == "00:00" else f"{day} {time}"
