"""``pai usage``: GPU and CPU hours, and what they cost."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from jupyter_pai import durations, render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.wire_types import Usage, UsageRow

COLUMNS = {
    "day": ("DAY", "day"),
    "user": ("USER", "user"),
    "group": ("GROUP", "group"),
    "vc": ("VC", "virtualCluster"),
    "type": ("GPU TYPE", "gpuType"),
    "job": ("JOB", "job"),
    "quota": ("QUOTA", "quota"),
}
"""What hours are told apart by -> the head of its column, and the field of the answer."""
DAYS = 30


def moment(text: str) -> datetime:
    """A day such as 2026-11-25, which begins at midnight UTC, or a length of time such as 30d until now.

    Raises argparse.ArgumentTypeError.
    """
    try:
        if "-" in text:
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return datetime.now(UTC) - timedelta(seconds=durations.seconds(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            tr("{text} is neither a day such as 2026-11-25 nor a time such as 30d", text=f"{text!r}")
        ) from None


def parts(text: str) -> list[str]:
    """Names of columns with commas between them. Raises argparse.ArgumentTypeError."""
    found = list(dict.fromkeys(filter(None, text.split(","))))
    unknown = [each for each in found if each not in COLUMNS]
    if unknown or not found:
        raise argparse.ArgumentTypeError(tr("{text} is not of {columns}", text=f"{text!r}", columns=", ".join(COLUMNS)))
    return [each for each in COLUMNS if each in found]


@verb(
    "usage",
    argument(
        "--by",
        type=parts,
        default=["user", "vc", "type"],
        help="of day,user,group,vc,type,job,quota; default: user,vc,type",
    ),
    argument("--since", type=moment, help=f"a day such as 2026-11-01, or a time such as 7d; default: {DAYS}d"),
    argument("--until", type=moment, help="the same; a day itself does not count any more; default: now"),
    flag("--csv", help="print lines for a spreadsheet"),
)
def usage(args: argparse.Namespace, out: Output) -> int:
    """GPU and CPU hours that jobs held: yours, those of virtual clusters that you manage, or all for an administrator.

    A task holds what it was given from its placing until its place is free again, also while it pulls its image or is
    kept for debugging. Days are UTC's. Where there are prices (`pai price list`), it shows what that cost. By group,
    the hours of a user in several groups count in each.
    """
    with connected() as client:
        found = client.usage(by=args.by, since=args.since, until=args.until)
    out.result(found, _csv(found, args.by).rstrip("\n") if args.csv else _text(found, args.by))
    return OK


def _text(found: Usage, by: Sequence[str]) -> str:
    if not found["data"]:
        return tr("Nothing was held in that time.")
    currency, total = found["currency"], found["total"]
    head = (*(COLUMNS[each][0] for each in by), "GPU HOURS", "CPU HOURS", "RUNS", *(("COST",) if currency else ()))
    rows = [
        (*_names(row, by), f"{row['gpuHours']:,.1f}", f"{row['cpuHours']:,.1f}", row["runs"], *_cost(row))
        for row in found["data"]
    ]
    hours = {"gpus": f"{total['gpuHours']:,.1f}", "cpus": f"{total['cpuHours']:,.1f}"}
    if currency and total["cost"] is not None:
        cost = f"{Decimal(total['cost']):,.2f} {currency}"
        together = tr("Together {gpus} GPU hours and {cpus} CPU hours, which cost {cost}.", cost=cost, **hours)
    else:
        together = tr("Together {gpus} GPU hours and {cpus} CPU hours.", **hours)
    return f"{render.table(head, rows)}\n{together}"


def _cost(row: UsageRow) -> tuple[str, ...]:
    return () if row["cost"] is None else (f"{Decimal(row['cost']):,.2f}",)


def _csv(found: Usage, by: Sequence[str]) -> str:
    text, currency = io.StringIO(), found["currency"]
    lines = csv.writer(text, lineterminator="\n")
    money = ["cost", "currency"] if currency else []
    lines.writerow([*(COLUMNS[each][1] for each in by), "gpuHours", "cpuHours", "runs", *money])
    for row in found["data"]:
        cost = [row["cost"], currency] if currency else []
        hours = [f"{row['gpuHours']:.6f}", f"{row['cpuHours']:.6f}"]
        lines.writerow([*_names(row, by), *hours, row["runs"], *cost])
    return text.getvalue()


def _names(row: UsageRow, by: Sequence[str]) -> list[str]:
    known: dict[str, object] = {**row}
    return [str(known[COLUMNS[each][1]] or "") for each in by]
