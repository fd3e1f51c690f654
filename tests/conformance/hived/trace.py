"""Files of recorded traces and of the configurations they run on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.core.group import Group, Member

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Trace:
    """Operations and what the reference answered to each."""

    id: str
    config: str
    ops: list[Record]
    outcomes: list[Record]
    kind_sets: list[list[str]]
    """Per operation, the kinds the reference itself answered in several runs; empty when it was always the same."""


def read_traces(path: Path) -> Iterator[Trace]:
    """The traces of a ``.jsonl`` or ``.jsonl.gz`` file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                data = json.loads(line)
                kinds = data.get("kindSets") or []
                yield Trace(data["id"], data["config"], data["ops"], data["outcomes"], kinds)


def read_configs(path: Path) -> dict[str, ClusterConfig]:
    """Configurations by id, read by the code under test."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        data = json.load(file)
    return {name: read_config(_yaml(entry)) for name, entry in data.items()}


def read_free_lists(path: Path) -> dict[str, dict[str, list[list[str]]]]:
    """Per configuration, the reference's free lists after all nodes became healthy."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {name: entry["initialFreeList"] for name, entry in json.load(file).items()}


def _yaml(entry: Record) -> str:
    sections = {key: entry[key] for key in ("physicalCluster", "virtualClusters")}
    return yaml.safe_dump(sections, sort_keys=False)


def group_of(name: str, spec: Record) -> Group:
    """The request of a ``submit`` operation."""
    members = tuple(Member(each["podNumber"], each["leafCellNumber"]) for each in spec["members"])
    return Group(
        name,
        spec["vc"],
        members,
        priority=spec["priority"],
        leaf_type=spec.get("leafCellType") or "",
        pinned_id=spec.get("pinnedCellId") or "",
        lazy_preemption=bool(spec.get("lazyPreemptionEnable")),
        ignore_suggested=bool(spec.get("ignoreK8sSuggestedNodes", True)),
    )
