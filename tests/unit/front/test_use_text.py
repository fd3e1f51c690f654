"""What is in use, as text: what is not known is never shown as nothing."""

from __future__ import annotations

from jupyter_pai.use_text import curve, nodes_text, status_text, top_text
from jupyter_pai.wire_types import CellsUseWire, ClusterUseWire, NodeUseWire, TaskUseRow, UsePoint, VirtualClusterUse


def point(**change: float | None) -> UsePoint:
    known: UsePoint = {
        "at": "2026-11-25T10:00:00Z",
        "cpus": 1.5,
        "memoryMb": 2048,
        "gpuPercent": 50,
        "gpuMemoryMb": 512,
        "idleGpus": 0,
    }
    return {**known, **change}  # type: ignore[typeddict-item]


def row(index: int, now: UsePoint | None, gpus: int = 2) -> TaskUseRow:
    return {
        "job": "ada~train",
        "name": "train",
        "username": "ada",
        "virtualCluster": "default",
        "role": "worker",
        "index": index,
        "node": "dan",
        "gpus": gpus,
        "cpus": 4,
        "memoryMb": 8192,
        "now": now,
        "trend": [point(gpuPercent=share) for share in (0, 50, None, 100)] if now else [],
    }


def test_a_task_a_line_with_what_is_not_known_marked() -> None:
    rows = [row(0, point()), row(1, point(gpuPercent=None, cpus=None)), row(2, None), row(3, point(), gpus=0)]
    head, first, second, third, fourth, note = top_text(rows, 60).splitlines()
    assert head.split()[:4] == ["JOB", "TASK", "NODE", "GPUS"]
    assert head.endswith("LAST HOUR")
    assert first.split("  ")[0] == "ada~train"
    assert first.endswith("2     50     512 MiB     1.5/4  2.0 GiB/8.0 GiB  ▁▅ █")
    assert "?      512 MiB     ?/4" in second
    assert third.rstrip().endswith("dan   2")
    assert fourth.endswith("▄▄▄▄"), "the curve of a task without GPUs is that of its CPUs"
    assert note == "1 of 4 tasks were not looked at yet; it is done every 60 s."
    assert top_text([], 60) == "No task runs."


def test_a_curve_stays_within_its_bars() -> None:
    assert curve([point(cpus=cpus) for cpus in (0, 4, 9, None)], 4, gpus=False) == "▁██ "


def node(name: str, **change: object) -> NodeUseWire:
    known: NodeUseWire = {
        "name": name,
        "ready": True,
        "schedulable": True,
        "reason": "",
        "gpuTypes": ["H100"],
        "gpus": 8,
        "usedGpus": 3,
        "badGpus": 0,
        "cpus": 64,
        "usedCpus": 12,
        "memoryMb": 524_288,
        "usedMemoryMb": 65_536,
        "otherGpus": 0,
        "otherCpus": 0,
        "otherMemoryMb": 0,
    }
    return {**known, **change}  # type: ignore[typeddict-item]


def test_nodes_say_what_is_wrong_with_them() -> None:
    nodes = [
        node("a"),
        node("b", ready=False, reason="its kubelet is silent"),
        node("c", schedulable=False, badGpus=1, otherGpus=2, otherCpus=8),
    ]
    _, a, b, c = nodes_text(nodes).splitlines()
    assert a.split() == ["a", "ready", "H100", "3/8", "12/64", "64.0", "GiB/512.0", "GiB"]
    assert b.endswith("its kubelet is silent")
    assert "not ready" in b
    assert "cordoned" in c
    assert "3/8 (1 bad, 2 of others)" in c
    assert "20/64" in c
    assert nodes_text([]) == "There are no nodes."


def test_a_cluster_in_a_few_lines() -> None:
    cells: CellsUseWire = {
        "leafType": "H100",
        "pinnedCell": "",
        "shapes": {},
        "owned": 8,
        "guaranteed": 2,
        "opportunistic": 1,
        "reserved": 0,
        "bad": 1,
        "free": 5,
    }
    vision: VirtualClusterUse = {
        "name": "vision",
        "granted": True,
        "mostGpus": None,
        "cells": [cells, cells],
        "running": [],
        "unlistedJobs": 3,
        "unlistedGpus": 6,
        "waiting": 4,
        "queue": [],
    }
    use: ClusterUseWire = {
        "user": "ada",
        "admin": False,
        "shared": False,
        "virtualClusters": [vision],
        "nodes": [node("a"), node("b", ready=False)],
        "images": [],
    }
    _, row_, _, nodes, down = status_text(use).splitlines()
    assert row_.split() == ["vision", "16", "6", "10", "2", "3", "4"]
    assert nodes == "1 of 2 nodes ready; 6 of 16 GPUs, 24 of 128 CPUs in use."
    assert down == "Not ready: b. `pai nodes` tells why."
