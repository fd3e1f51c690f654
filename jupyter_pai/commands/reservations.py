"""``reserve``: GPUs of a virtual cluster that are reserved for a time."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jupyter_pai import render
from jupyter_pai.commands.keys import duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, one_of, verb

if TYPE_CHECKING:
    from jupyter_pai.wire_types import BookingList, BookingWire

GROUPS["reserve"] = "Reservations of GPUs: list, add, remove; made by administrators and managers"


def instant(text: str) -> datetime:
    """A time such as 2026-12-04T09:00, of this computer's zone unless it names one. Raises ArgumentTypeError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            tr("{text} is not a time such as 2026-12-04T09:00 or 2026-12-04T09:00+01:00", text=repr(text))
        ) from None
    return found if found.tzinfo is not None else found.astimezone()


@verb("reserve list")
def show(args: argparse.Namespace, out: Output) -> int:
    """Reservations in the virtual clusters that you may use, and those of the last 30 days."""
    with connected() as client:
        found = client.reservations()
    out.result(found, text_of(found))
    return OK


@verb(
    "reserve add",
    argument("name", help="what it is for, which all who may use the virtual cluster see"),
    argument("--vc", default="default", help="the virtual cluster that owns the GPUs; default: default"),
    argument("--gpus", type=int, required=True, metavar="N", help="so many GPUs of one kind"),
    argument("--gpu-type", default="", metavar="TYPE", help="of this type"),
    flag("--one-node", help="all in one node"),
    argument("--from", dest="begins", type=instant, metavar="TIME", help="such as 2026-12-04T09:00; default: now"),
    one_of(
        argument("--to", dest="ends", type=instant, metavar="TIME", help="when it is over"),
        argument("--for", dest="lasts", type=duration, metavar="DURATION", help="how long it lasts, such as 9h"),
        required=True,
    ),
    argument("--user", action="append", default=[], help="whose jobs may use it; may be repeated"),
    argument("--group", action="append", default=[], help="whose members' jobs may use it; may be repeated"),
    flag("--end-others", help="stop jobs that hold the GPUs when it begins, with a warning"),
)
def add(args: argparse.Namespace, out: Output) -> int:
    """Reserve GPUs of a virtual cluster for a time; for its managers and administrators.

    Before it begins, only jobs that end by then may hold them (maxDuration). While it lasts they are for jobs of the
    users and groups named; without any, for all of the virtual cluster. It holds within 2 s.
    """
    ends = args.ends
    if ends is None:
        ends = (args.begins or datetime.now().astimezone()) + timedelta(seconds=args.lasts)
    body: dict[str, Any] = {
        "virtualCluster": args.vc,
        "name": args.name,
        "gpus": args.gpus,
        "gpuType": args.gpu_type,
        "oneNode": args.one_node,
        "begins": None if args.begins is None else args.begins.isoformat(),
        "ends": ends.isoformat(),
        "users": args.user,
        "groups": args.group,
        "endOthers": args.end_others,
    }
    with connected() as client:
        made = client.reserve(body)
    said = tr(
        "Reserved {gpus} for {name}: {span} ({id}).",
        gpus=_gpus(made),
        name=_name(made),
        span=_span(made),
        id=made["id"],
    )
    if made["stops"]:
        said += "\n" + tr("Stopped when it begins: {jobs}.", jobs=", ".join(made["stops"]))
    out.result(made, said)
    return OK


@verb("reserve remove", argument("reservation", help="its id, as `pai reserve list` shows it"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a reservation; jobs that waited for it start."""
    with connected() as client:
        client.remove_reservation(args.reservation)
    out.result({"removed": args.reservation}, tr("Removed the reservation {id}.", id=args.reservation))
    return OK


def text_of(found: BookingList) -> str:
    """Reservations as a shell shows them."""
    if not found["data"]:
        return tr("Nothing is reserved.")
    rows = [
        (
            each["id"],
            _name(each),
            render.safe(each["virtualCluster"]),
            _gpus(each),
            render.clock(each["begins"]),
            render.clock(each["ends"]),
            _whom(each),
        )
        for each in found["data"]
    ]
    return render.table(("ID", "FOR", "VC", "GPUS", "FROM", "TO", "USERS"), rows)


def _name(each: BookingWire) -> str:
    return render.safe(each["name"])


def _gpus(each: BookingWire) -> str:
    kind = f" {render.safe(each['gpuType'])}" if each["gpuType"] else ""
    number = f"{each['gpus']}{kind}"
    return tr("{number} in one node", number=number) if each["oneNode"] else number


def _span(each: BookingWire) -> str:
    return f"{render.clock(each['begins'])} – {render.clock(each['ends'])}"


def _whom(each: BookingWire) -> str:
    named = [render.safe(user) for user in each["users"]]
    named += [tr("group {name}", name=render.safe(group)) for group in each["groups"]]
    return ", ".join(named) or tr("all")
