"""Files of recorded traces and of the configurations they run on."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from pai_backend.model.errors import PaiError
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.request import Group, Member
from tests.conformance.hived.check import fault

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


class Unreadable(Exception):
    """A file that is not what it should be; the text names it, the line and the reason."""


def read_traces(path: Path, configs: Collection[str]) -> Iterator[Trace]:
    """The traces of a ``.jsonl`` or ``.jsonl.gz`` file, which run on one of ``configs``.

    Raises Unreadable at the first line that is no such trace, for a file that breaks off, and for one without traces.
    """
    found = False
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise Unreadable(f"{path}:{number}: no JSON ({error}); was the file cut off?") from error
        reason = fault(data, configs)
        if reason is not None:
            raise Unreadable(f"{path}:{number}: {reason}")
        found = True
        yield Trace(data["id"], data["config"], data["ops"], data["outcomes"], data.get("kindSets") or [])
    if not found:
        raise Unreadable(f"{path}: there is no trace in it")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers."""
    number = 0
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, 1):
                yield number, line
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise Unreadable(f"{path}:{number + 1}: cannot be read: {error}") from error


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_configs(path: Path) -> dict[str, ClusterConfig]:
    """Configurations by id, read by the code under test. Raises Unreadable."""
    try:
        with _open(path) as file:
            data = json.load(file)
        return {name: read_config(_yaml(entry)) for name, entry in data.items()}
    except (OSError, EOFError, ValueError, zlib.error, AttributeError, KeyError, TypeError) as error:
        raise Unreadable(f"{path}: no configurations: {error!r}; name their file with --configs") from error
    except PaiError as error:
        raise Unreadable(f"{path}: {error.message}") from error


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
