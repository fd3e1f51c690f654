"""简体中文 (Simplified Chinese)."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.model.duration import duration_text
from pai_backend.model.waiting import Basis, Cause, Change, ChangeKind, Lack, LackOf, Waiting
from pai_backend.scheduling.explain.words import Say, Words, named, unique

_ROOM = (LackOf.CPU, LackOf.MEMORY)
_UNITS = {LackOf.CPU: ("个", " CPU"), LackOf.MEMORY: ("MiB", "内存"), LackOf.GPU: ("个", " GPU")}


def _nodes(names: Sequence[str]) -> str:
    return named(names, lambda more: f" 及另外 {more} 个节点", "、")


def _names(names: list[str]) -> str:
    return named(names, lambda more: f" 及另外 {more} 个任务组", "、") or "其他任务组"


def _groups(waiting: Waiting) -> str:
    return _names(unique(waiting.holders))


def _typed(waiting: Waiting) -> str:
    return f" {waiting.leaf_type} 类型的" if waiting.leaf_type else ""


def _where(waiting: Waiting) -> str:
    return f"虚拟集群 {waiting.vc} " if waiting.priority >= 0 else "集群"


def _cap(waiting: Waiting) -> str:
    cap = waiting.cap
    assert cap is not None
    where = f"在虚拟集群 {cap.vc} 中" if cap.vc else ""
    who = f"用户 {cap.user} " if cap.user else "所有用户合计"
    if cap.sweep:
        who = f"参数扫描 {cap.sweep} "
    limits = [f" {cap.tasks} 个任务"] if cap.tasks is not None else []
    limits += [f" {cap.gpus} 个 GPU"] if cap.gpus is not None else []
    limits += [f" {cap.jobs} 个作业"] if cap.jobs is not None else []
    jobs = f"{cap.running_jobs} 个作业、" if cap.jobs is not None else ""
    have = f"目前有 {jobs}{cap.running_tasks} 个任务、{cap.running_gpus} 个 GPU 在运行"
    return f"{where}{who}最多同时运行{'和'.join(limits)}，{have}。"


def _lack(lack: Lack) -> str:
    if lack.what in _UNITS:
        unit, what = _UNITS[lack.what]
        others = f"（不属于本后端的 Pod 占用了 {lack.others} {unit}）" if lack.others else ""
        return f"{lack.node} 需要 {lack.needed} {unit}{what}，只剩 {lack.available} {unit}{others}"
    if lack.what is LackOf.PORT:
        return f"{lack.node} 的端口 {lack.needed} 已被{f' {lack.holder} ' if lack.holder else ''}占用"
    if lack.what is LackOf.TAINT:
        return f"{lack.node} 有它不容忍的污点 {lack.detail}"
    if lack.what is LackOf.CORDONED:
        return f"{lack.node} 已停止调度新任务"
    return f"{lack.node} 没有所要求的标签 {lack.detail}"


def _lacking(waiting: Waiting) -> str:
    if not waiting.lacks:
        return f"有空闲 GPU 的节点缺少它需要的 CPU、内存或其他条件：{_names([*waiting.nodes])}。"
    said = named([_lack(lack) for lack in waiting.lacks], lambda more: f"；另有 {more} 个节点类似", "；")
    return f"有空闲 GPU，但所在节点无法容纳它：{said}。"


def _linear_remedy(waiting: Waiting) -> str:
    if any(lack.what is LackOf.GPU for lack in waiting.lacks):
        return "请减少每个任务的 GPU，或等待那里的 Pod 结束。"
    if not waiting.lacks or any(lack.what in _ROOM for lack in waiting.lacks):
        return "请减少每个任务的 CPU 或内存，或等待那里的任务结束。"
    return "请向管理员询问哪些节点供它使用，或改为要求其他节点标签。"


def _fragmented(waiting: Waiting) -> str:
    place = f"，而且不在同一个 {waiting.within} 内" if waiting.within else ""
    return (
        f"{_where(waiting)}有 {waiting.free} 个空闲 GPU，它需要 {waiting.needed} 个，但现在最大只能容纳 "
        f"{waiting.largest_free} 个 GPU 的任务，而它的任务最大需要 {waiting.largest_task} 个{place}。"
    )


def _booked(waiting: Waiting) -> str:
    booked = waiting.booked
    assert booked is not None
    till = f"{booked.begins:%Y-%m-%d %H:%M} 至 {booked.ends:%Y-%m-%d %H:%M}（UTC）"
    kind = f" {booked.gpu_type}" if booked.gpu_type else ""
    whom = f"（{booked.whom}）" if booked.whom else ""
    return f"{till}，{_where(waiting)}的 {booked.gpus} 个{kind} GPU 已为 {booked.name}{whom} 预留。"


_SENTENCES: dict[Cause, Say] = {
    Cause.TYPE: lambda w: f"虚拟集群 {w.vc} 没有{_typed(w)} GPU。",
    Cause.QUOTA: lambda w: f"它需要 {w.needed} 个{_typed(w)} GPU，而{_where(w)}只拥有 {w.owned} 个。",
    Cause.SHAPE: lambda w: (
        f"{_where(w)}拥有 {w.owned} 个{_typed(w)} GPU，但没有一个单元能容纳 {w.largest_task} 个 GPU 的任务。"
    ),
    Cause.CAP: _cap,
    Cause.BAD_NODES: lambda w: f"如果这些节点正常，它就能启动：{_names([*w.nodes])}。",
    Cause.LINEAR: _lacking,
    Cause.PORT: _lacking,
    Cause.PREEMPTING: lambda w: f"已为它选好位置，正在等待那里的 {_groups(w)} 停止。",
    Cause.KEPT: lambda w: f"已为它保留 GPU；以下任务组结束后即可启动：{_groups(w)}。",
    Cause.RESERVED: lambda w: f"它需要的 GPU 已保留给排在前面的 {_groups(w)}。",
    Cause.FRAGMENTED: _fragmented,
    Cause.BOOKED: _booked,
    Cause.PRIORITY: lambda w: (
        f"它需要 {w.needed} 个{_typed(w)} GPU，{_where(w)}有 {w.free} 个空闲；其余由优先级不低于它"
        f"（{w.priority}）的 {_groups(w)} 占用。"
    ),
    Cause.AHEAD: lambda w: f"它在队列中排第 {w.position} 位（共 {w.waiting} 个），前面的先启动。",
}

_REMEDIES: dict[Cause, Say] = {
    Cause.TYPE: lambda w: "请改用其他 GPU 类型或其他虚拟集群，或联系管理员。",
    Cause.QUOTA: lambda w: f"请最多申请 {w.owned} 个 GPU，或使用更大的虚拟集群。",
    Cause.SHAPE: lambda w: "请使用更小的任务，或请管理员分配更大的单元。",
    Cause.CAP: lambda w: (
        "请减少申请：仅它自己就超过了上限。"
        if w.cap is not None and w.cap.never
        else "请等待其中一些结束，或停止其中一个。"
    ),
    Cause.BAD_NODES: lambda w: "请联系管理员修复节点，或减少 GPU 数量。",
    Cause.LINEAR: _linear_remedy,
    Cause.PORT: lambda w: "请改为自动选择端口，或等待该端口空闲。",
    Cause.PREEMPTING: lambda w: "无需操作：它们停止后即会启动。",
    Cause.KEPT: lambda w: "无需操作：后来的任务组不能占用这些 GPU。",
    Cause.RESERVED: lambda w: "请等待它们启动，或减少 GPU 数量。",
    Cause.FRAGMENTED: lambda w: "请等待同一节点上的任务组结束，或使用更小的任务。",
    Cause.BOOKED: lambda w: "能在预留开始前结束的作业可以启动：请设置 maxDuration；或等待预留结束，或减少 GPU 数量。",
    Cause.PRIORITY: lambda w: "请等待其中一个结束。",
    Cause.AHEAD: lambda w: "请等待轮到它。",
}


def _change(change: Change) -> str:
    if change.kind is ChangeKind.TYPE:
        return f"改用 {change.leaf_type} 类型的 GPU 现在就能启动。"
    if change.kind is ChangeKind.VC:
        return f"在虚拟集群 {change.vc} 中现在就能启动。"
    if change.kind is ChangeKind.FEWER:
        return f"把任务数从 {change.before} 减到 {change.after} 现在就能启动。"
    if change.kind is ChangeKind.SMALLER:
        return f"把每个任务的 GPU 从 {change.before} 个减到 {change.after} 个现在就能启动。"
    if change.kind is ChangeKind.SHORTER:
        return f"把 maxDuration 设为不超过 {duration_text(change.after)} 现在就能启动。"
    if change.kind is ChangeKind.ANYWHERE:
        return f"如果不要求任务位于同一个 {change.detail} 内，现在就能启动。"
    if change.kind is ChangeKind.DROP_LABEL:
        return f"如果不要求节点带有标签 {change.detail}，现在就能启动。"
    if change.kind is ChangeKind.TOLERATE:
        return f"如果管理员允许它容忍 {_nodes(change.nodes)} 的污点 {change.detail}，现在就能启动。"
    if change.kind is ChangeKind.UNCORDON:
        return f"如果管理员恢复 {_nodes(change.nodes)} 的调度，现在就能启动。"
    return "作为机会型作业（优先级 oppo）现在就能启动，但可能被其他作业抢占。"


_BASES = {Basis.DECLARED: "作业声明的运行时间", Basis.HISTORY: "同一用户以往同类作业的运行时间"}


def _estimate(waiting: Waiting) -> str:
    known = "和".join(_BASES[basis] for basis in waiting.rests_on) or "预计的运行时间"
    return f"此时间为估计值：依据{known}，并假定没有新的作业排到前面。"


def _put_off(waiting: Waiting) -> str:
    return f"此处较短的作业优先，因此它按晚 {duration_text(waiting.put_off_s)} 提交来排队。"


WORDS = Words(_SENTENCES, _REMEDIES, _change, _estimate, _put_off)
