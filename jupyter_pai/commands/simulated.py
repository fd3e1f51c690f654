"""The answer of a simulation, for people: one report, or two side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from jupyter_pai import render
from jupyter_pai.language import tr
from jupyter_pai.wire_types import Comparison, GroupFigures, Report
from pai_backend.model.text import Text

HEAD = ("GROUPS", "WAIT MEAN", "P50", "P95", "MAX", "GPU HOURS", "ON QUOTA", "OPPORTUNISTIC")
LOSSES = ("PREEMPTED", "LOST GPU HOURS", "FAILED", "DISPLACED", "OVERTAKEN", "CAPPED", "GROWN")
MOST_REFUSED = 20
"""Refused groups that are listed in text; JSON has all."""
MOST_USERS = 20
"""Users that are listed in text, those with the most GPU hours; JSON has all."""


def text(report: Report) -> str:
    """The figures of one simulation."""
    total, span, fragmented = report["total"], _clock(report["spanS"]), _percent(report["fragmentation"])
    lines = [
        tr("{groups} groups on {gpus} GPUs in {time}", groups=total["groups"], gpus=report["gpus"], time=span),
        tr(
            "{used} of the GPU time was used ({guaranteed} on a quota, {opportunistic} opportunistically); "
            "{broken} was broken; {idle} was idle while groups waited for as much.",
            used=_percent(report["utilisation"]),
            guaranteed=_percent(report["guaranteed"]),
            opportunistic=_percent(report["opportunistic"]),
            broken=_percent(report["broken"]),
            idle=_percent(report["idleWhileWanted"]),
        ),
        tr("{part} of the idle GPU time was in free cells smaller than a machine.", part=fragmented),
        "",
        _table("VC", [*((share["vc"], share) for share in report["vcs"]), (tr("all"), total)]),
    ]
    if report["users"]:
        lines += ["", _table("USER", [(share["user"], share) for share in _users(report)])]
    if len(report["users"]) > MOST_USERS:
        lines.append(tr("and {number} more users", number=len(report["users"]) - MOST_USERS))
    return "\n".join(lines + _warnings(report))


def _users(report: Report) -> list[GroupFigures]:
    """Those with the most GPU hours, by name when they have the same."""
    return sorted(report["users"], key=lambda share: (-_ran(share), share["user"]))[:MOST_USERS]


def _ran(share: GroupFigures) -> float:
    return share["guaranteedGpuHours"] + share["opportunisticGpuHours"]


def _table(name: str, rows: Sequence[tuple[str, GroupFigures]]) -> str:
    """Figures, and below them what was lost, where anything was."""
    wide = any(_loss(share) != _NOTHING for _, share in rows)
    head = (name, *HEAD, *(LOSSES if wide else ()))
    return render.table(head, [(each, *_figures(share), *(_loss(share) if wide else ())) for each, share in rows])


def _figures(share: GroupFigures) -> tuple[str, ...]:
    waits, owned = share["waits"], share["ownedGpuHours"]
    times = [_clock(waits["meanS"]), _clock(waits["p50S"]), _clock(waits["p95S"]), _clock(waits["maxS"])]
    of_owned = f" ({_percent(share['guaranteedGpuHours'] / owned)})" if owned else ""
    hours = [f"{share['guaranteedGpuHours']:.1f}{of_owned}", f"{share['opportunisticGpuHours']:.1f}"]
    return (str(share["groups"]), *times, f"{share['gpuHours']:.1f}", *hours)


_NOTHING = ("0", "0.0", "0", "0", "0", "0", "0")


def _loss(share: GroupFigures) -> tuple[str, ...]:
    capped = f" ({share['cappedHours']:.1f} h)" if share["capped"] else ""
    return (
        str(share["preempted"]),
        f"{share['lostGpuHours']:.1f}",
        str(share["failed"]),
        str(share["displaced"]),
        str(share["overtaken"]),
        f"{share['capped']}{capped}",
        str(share["grown"]),
    )


def _warnings(report: Report) -> list[str]:
    refused = report["refused"]
    lines = []
    for each in refused[:MOST_REFUSED]:
        told = render.told_in_language(each["texts"])
        refusal = tr("{group} is refused: {reason}", group=render.safe(each["group"]), reason=told["sentence"])
        lines.append(f"! {refusal} {told['remedy']}")
    if len(refused) > MOST_REFUSED:
        lines.append("! " + tr("and {number} more are refused", number=len(refused) - MOST_REFUSED))
    if overrun := report["total"]["overrun"]:
        lines.append("! " + tr("{number} groups were stopped at the longest run", number=overrun))
    if report["left"]:
        names = ", ".join(render.safe(name) for name in report["left"][:MOST_REFUSED])
        if len(report["left"]) > MOST_REFUSED:
            names = tr("{names} and {number} more", names=names, number=len(report["left"]) - MOST_REFUSED)
        lines.append("! " + tr("still waiting at the end: {names}", names=names))
    return lines


# -- two of them -------------------------------------------------------------------------------------------------------

_WHOLE: tuple[tuple[str, Callable[[Report], str]], ...] = (
    ("GPUs", lambda report: str(report["gpus"])),
    (Text("time until the last end"), lambda report: _clock(report["spanS"])),
    (Text("GPU time used"), lambda report: _percent(report["utilisation"])),
    (Text("  on a quota"), lambda report: _percent(report["guaranteed"])),
    (Text("  opportunistically"), lambda report: _percent(report["opportunistic"])),
    (Text("GPU time broken"), lambda report: _percent(report["broken"])),
    (Text("GPU time idle while groups waited"), lambda report: _percent(report["idleWhileWanted"])),
    (Text("idle GPU time in cells smaller than a machine"), lambda report: _percent(report["fragmentation"])),
    (Text("groups refused"), lambda report: str(len(report["refused"]))),
    (Text("groups left waiting"), lambda report: str(len(report["left"]))),
)


def compared(answer: Comparison) -> str:
    """Two simulations of the same trace: a column for each, then both figures in each cell."""
    one, two = answer["reports"]
    whole = [(tr(name), figure(one), figure(two)) for name, figure in _WHOLE]
    vcs = [*_pairs(one["vcs"], two["vcs"], "vc"), (tr("all"), one["total"], two["total"])]
    lines = [render.table(("", *answer["configs"]), whole), "", _pair_table("VC", vcs)]
    names = {share["user"] for report in (one, two) for share in _users(report)}
    users = [each for each in _pairs(one["users"], two["users"], "user") if each[0] in names]
    if users:
        lines += ["", _pair_table("USER", users)]
    warnings = [_warnings(one), _warnings(two)]
    lines += [line for line in warnings[0] if line in warnings[1]]
    for name, own, others in zip(answer["configs"], warnings, reversed(warnings), strict=True):
        lines += [f"! {render.safe(name)}: {line.removeprefix('! ')}" for line in own if line not in others]
    return "\n".join(lines)


def _pairs(
    one: list[GroupFigures], two: list[GroupFigures], key: str
) -> list[tuple[str, GroupFigures | None, GroupFigures | None]]:
    """Shares of the same name; None where one has none of it."""
    before, after = ({str(share.get(key)): share for share in shares} for shares in (one, two))
    return [(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]


def _pair_table(name: str, rows: Sequence[tuple[str, GroupFigures | None, GroupFigures | None]]) -> str:
    wide = any(share is not None and _loss(share) != _NOTHING for _, *shares in rows for share in shares)
    head = (name, *HEAD, *(LOSSES if wide else ()))
    empty = ("-",) * (len(head) - 1)

    def cells(share: GroupFigures | None) -> tuple[str, ...]:
        return empty if share is None else (*_figures(share), *(_loss(share) if wide else ()))

    return render.table(
        head,
        [
            (each, *(old if old == new else f"{old} → {new}" for old, new in zip(cells(one), cells(two), strict=True)))
            for each, one, two in rows
        ],
    )


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
