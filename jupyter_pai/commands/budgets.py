"""``budget``: GPU hours, CPU hours and money that users, groups and virtual clusters may use."""

from __future__ import annotations

import argparse
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Any

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.prices import amount
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.usage import moment
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.wire_types import BudgetList, BudgetWire

GROUPS["budget"] = "Budgets of GPU hours, CPU hours or money: list, set, remove; set by administrators and managers"


def percent(text: str) -> int:
    """A whole percentage, with or without its sign. Raises argparse.ArgumentTypeError."""
    try:
        return int(text.strip().removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(tr("{text} is not a percentage such as 80%", text=repr(text))) from None


@verb("budget list")
def show(args: argparse.Namespace, out: Output) -> int:
    """Budgets that concern you, or all for an administrator, and what of each is used.

    A budget is of a user, of the members of a group together, or of a virtual cluster. Months are UTC's.
    """
    with connected() as client:
        found = client.budgets()
    out.result(found, text_of(found))
    return OK


@verb(
    "budget set",
    argument("most", type=amount, help="so many hours may be used, or with --money so much"),
    argument("--user", help="whose use counts"),
    argument("--group", help="whose members' use counts together; `default` is every user"),
    argument("--vc", help="only use in this virtual cluster counts; alone: all use in it"),
    flag("--cpu", help="count CPU hours; without it, GPU hours, which jobs without GPUs do not use"),
    flag("--money", help="count what GPU and CPU hours cost, see `pai price`"),
    flag("--total", help="count all time, not each calendar month"),
    argument("--since", type=moment, help="with --total: from when on, such as 2026-11-01; default: from now on"),
    argument("--warn", type=percent, default=80, metavar="PERCENT", help="warn from this share on; default: 80%%"),
)
def put(args: argparse.Namespace, out: Output) -> int:
    """Set a budget, or change it; for administrators, and managers of the virtual cluster that it is in.

    When all of it is used, jobs that it concerns wait; running jobs go on. It counts within 2 s.
    """
    if args.cpu and args.money:
        raise ClientError(tr("Give --cpu or --money, not both"), code="InvalidParametersError")
    body: dict[str, Any] = {
        "user": args.user,
        "group": args.group,
        "virtualCluster": args.vc,
        "resource": "money" if args.money else "cpu" if args.cpu else "gpu",
        "per": "total" if args.total else "month",
        "hours": None if args.money else float(args.most),
        "amount": args.most if args.money else None,
        "warnPercent": args.warn,
        "since": args.since.isoformat() if args.since is not None else None,
    }
    with connected() as client:
        made = client.set_budget(body)
    out.result(made, tr("Set the budget {id}: {hours} for {of}.", id=made["id"], hours=_most(made), of=_of(made)))
    return OK


@verb("budget remove", argument("budget", help="its id, as `pai budget list` shows it"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a budget; jobs that it holds up start."""
    with connected() as client:
        client.remove_budget(args.budget)
    out.result({"removed": args.budget}, tr("Removed the budget {id}.", id=args.budget))
    return OK


def text_of(found: BudgetList) -> str:
    """Budgets as a shell shows them."""
    if not found["data"]:
        return tr("No budget concerns you.")
    rows = [
        (
            each["id"],
            _of(each),
            _most(each),
            _used(each),
            _share(each),
            each["begins"][:10],
            (each["ends"] or "")[:10] or "-",
        )
        for each in found["data"]
    ]
    return render.table(("ID", "OF", "BUDGET", "USED", "SHARE", "COUNTS FROM", "BEGINS AGAIN"), rows)


def _of(budget: BudgetWire) -> str:
    named = ((tr("user"), budget["user"]), (tr("group"), budget["group"]), (tr("vc"), budget["virtualCluster"]))
    return ", ".join(f"{kind} {name}" for kind, name in named if name)


def _most(budget: BudgetWire) -> str:
    if budget["hours"] is not None:
        return tr("{hours} {resource} hours", hours=f"{budget['hours']:,g}", resource=budget["resource"].upper())
    return f"{Decimal(budget['amount'] or 0):,.2f} {budget['currency']}"


def _used(budget: BudgetWire) -> str:
    if budget["usedHours"] is not None:
        return f"{budget['usedHours']:,.1f}"
    return f"{Decimal(budget['usedAmount'] or 0).quantize(Decimal('0.01'), ROUND_DOWN):,}"


def _share(budget: BudgetWire) -> str:
    """Rounded down, so that a budget of which something is left never reads as used up."""
    if budget["level"] == "used-up":
        return tr("used up")
    used, most = (budget[each] for each in (("usedHours", "hours") if budget["hours"] else ("usedAmount", "amount")))
    return f"{int(100 * Decimal(used or 0) / Decimal(most or 1))} %"
