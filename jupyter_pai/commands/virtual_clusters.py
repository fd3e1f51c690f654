"""``vc``: what jobs of a virtual cluster may do, set by its managers while the backend runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

from jupyter_pai.commands.keys import duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.users import ask, names
from jupyter_pai.durations import duration_text
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.render import padded, width
from jupyter_pai.verbs import GROUPS, argument, flag, one_of, verb
from pai_backend.model.text import Text

PATH = "/api/v2/virtual-clusters"
GROUPS["vc"] = "Rules of virtual clusters: show, set; set by administrators and managers"

VC = argument("vc", help="its name")
CLEARED = {
    "most-gpus-per-user": ("mostGpusPerUser",),
    "most-jobs-per-user": ("mostJobsPerUser",),
    "longest-run": ("longestRunS",),
    "gpu-types": ("gpuTypes",),
    "images": ("images",),
    "priorities": ("priorities",),
    "idle": ("idleBelowPercent", "idleForS"),
}


def percent(text: str) -> float:
    """A percentage, with or without its sign. Raises argparse.ArgumentTypeError."""
    try:
        return float(text.strip().removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(tr("{text} is not a percentage such as 5%", text=repr(text))) from None


@verb("vc show", VC)
def show(args: argparse.Namespace, out: Output) -> int:
    """What jobs of a virtual cluster may do, for who may use it."""
    found = cast(dict[str, Any], asked(lambda api: ask(api, "GET", _path(args.vc))))
    out.result(found, text_of(found))
    return OK


@verb(
    "vc set",
    VC,
    argument("--most-gpus-per-user", type=int, metavar="N", help="GPUs of each user that run at once"),
    argument("--most-jobs-per-user", type=int, metavar="N", help="jobs of each user that run at once"),
    argument("--longest-run", type=duration, metavar="TIME", help="how long an attempt of a job may run, such as 2d"),
    argument("--gpu-types", metavar="A,B", help="GPU types that jobs may name, and no others"),
    argument("--images", metavar="A,B", help="patterns of images, such as 'registry.example.com/*', and no others"),
    argument("--priorities", metavar="A,B", help="priority classes: crit, prod, test, oppo"),
    argument("--idle-below", type=percent, metavar="PERCENT", help="jobs whose GPUs work less than this are underused"),
    argument("--idle-for", type=duration, metavar="TIME", help="the time over which that is averaged, from 10m"),
    one_of(
        flag("--idle-stop", help="stop underused jobs after a warning; the default"),
        flag("--idle-warn", help="only warn the owners of underused jobs"),
    ),
    argument("--clear", action="append", default=[], choices=sorted(CLEARED), help="remove this rule; may be repeated"),
)
def change(args: argparse.Namespace, out: Output) -> int:
    """Set rules of a virtual cluster; for its managers and administrators.

    Other rules stay. They hold within 2 s; what runs goes on, but for a shorter longest run and the idle rule.
    """
    given = {name: value for name, value in _given(args).items() if value is not None}
    for option in args.clear:
        for name in CLEARED[option]:
            if name in given:
                raise ClientError(
                    Text("--clear {option} contradicts another option.", option=option),
                    code="InvalidParametersError",
                    hint="Give one of the two.",
                )
            given[name] = None
    if not given:
        raise ClientError("No rule is given.", code="InvalidParametersError", hint="`pai vc set --help` lists them.")
    found = cast(dict[str, Any], asked(lambda api: ask(api, "PUT", _path(args.vc), given)))
    out.result(found, text_of(found))
    return OK


def _path(vc: str) -> str:
    return f"{PATH}/{quote(vc, safe='')}/rules"


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "mostGpusPerUser": args.most_gpus_per_user,
        "mostJobsPerUser": args.most_jobs_per_user,
        "longestRunS": args.longest_run,
        "gpuTypes": names(args.gpu_types),
        "images": names(args.images),
        "priorities": names(args.priorities),
        "idleBelowPercent": args.idle_below,
        "idleForS": args.idle_for,
        "idleStops": True if args.idle_stop else False if args.idle_warn else None,
    }


def text_of(found: dict[str, Any]) -> str:
    """The rules of a virtual cluster as a shell shows them."""
    rules, force, fixed = found["rules"], found["inForce"], found["fromConfiguration"]

    def limit(name: str, shown: Callable[[int], str] = str) -> str:
        value = force[name]
        text = tr("no limit") if value is None else shown(value)
        return tr("{value}, by the configuration of the backend", value=text) if name in fixed else text

    lines = [
        (tr("GPUs of each user"), limit("mostGpusPerUser")),
        (tr("Jobs of each user"), limit("mostJobsPerUser")),
        (tr("Longest run"), limit("longestRunS", duration_text)),
        (tr("GPU types"), _list(rules["gpuTypes"])),
        (tr("Images"), _list(rules["images"])),
        (tr("Priorities"), _list(rules["priorities"])),
        (tr("Idle GPUs"), _idle(rules)),
    ]
    columns = max(width(name) for name, _ in lines) + 2
    return "\n".join(f"{padded(name + ':', columns)}{value}" for name, value in lines)


def _list(words: list[str] | None) -> str:
    if words is None:
        return tr("all")
    return ", ".join(words) or tr("none")


def _idle(rules: dict[str, Any]) -> str:
    if rules["idleForS"] is None:
        return tr("no rule")
    text = Text(
        "jobs whose GPUs work less than {percent} % for {time} are stopped after a warning"
        if rules["idleStops"]
        else "owners of jobs whose GPUs work less than {percent} % for {time} are warned",
        percent=f"{rules['idleBelowPercent']:g}",
        time=duration_text(rules["idleForS"]),
    )
    return tr(text)
