"""Which jobs a filter means: its conditions as SQL, and what is known of those that have to be looked for.

Users, states, virtual clusters and priorities are counted by ``tally``. A keyword, a tag or a GPU type is looked for in
an index that holds all that lists filter by (``ix_jobs_filter``): 100,000 jobs take some 20 ms of processor time. What
was found is remembered for as long as no job that could match has come, gone or got other tags or GPU types.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, FromClause, Integer, func, or_, select, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from pai_backend.model.job import State
from pai_backend.store.base import JobFilter
from pai_backend.store.columns import Instant
from pai_backend.store.tables import jobs
from pai_backend.store.tally import Tally, owned

FEW = 1000
"""So many jobs are remembered by their uids, and then read and sorted in some 5 ms, whatever the order."""

REMEMBERED = 64
"""Filters whose findings are remembered: 64 with 1000 uids each are about 5 MB."""

FILTERED = ("state", "virtual_cluster", "priority", "tags", "gpu_types", "search", "submitted_at")
"""The columns of ``jobs`` that a filter is about, besides the owner's."""


class _place_in(FunctionElement[int]):  # noqa: N801 — a function of SQL, written as one
    """Where a text holds another, counted from 1, or 0. Each database has a name of its own for it. The case counts."""

    type = Integer()
    inherit_cache = True


@compiles(_place_in, "sqlite")
def _instr(element: _place_in, compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(_place_in, "postgresql")
def _strpos(element: _place_in, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


class unaided(FunctionElement[Any]):  # noqa: N801 — as above
    """A column as it is. SQLite, which knows nothing of how common a value is, looks for it in no index then."""

    inherit_cache = True


@compiles(unaided, "sqlite")
def _plus(element: unaided, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


@compiles(unaided, "postgresql")
def _itself(element: unaided, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@dataclass(frozen=True)
class Matches:
    """How many jobs match a filter, and the uids where they are few and had to be looked for."""

    total: int
    uids: tuple[str, ...] | None = None


class Findings:
    """What was found for the latest filters; may be used by several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[JobFilter, tuple[int, Matches]] = OrderedDict()
        self._lock = threading.Lock()

    def matches(self, conn: Connection, which: JobFilter, numbers: Tally) -> Matches:
        """How many jobs match in the snapshot that ``numbers`` are of."""
        looked_for = which.keyword, which.with_tags, which.without_tags, which.gpu_types, which.submitted_since
        if not any(looked_for):
            return Matches(numbers.matching)
        asked = replace(which, order="", descending=True, offset=0, limit=0, count=True)
        with self._lock:
            changes, known = self._kept.get(asked, (-1, None))
        if known is None or changes != numbers.changes:
            known = look_for(conn, which)
            with self._lock:
                self._kept[asked] = numbers.changes, known
                self._kept.move_to_end(asked)
                while len(self._kept) > REMEMBERED:
                    self._kept.popitem(last=False)
        return known


def look_for(conn: Connection, which: JobFilter) -> Matches:
    """One walk through the index: the number, and all uids in one text, which costs less than a row for each."""
    # No uid has a comma.
    found = select(func.count(), func.aggregate_strings(jobs.c.uid, ",")).where(*conditions(which))
    number, uids = conn.execute(found).one()
    return Matches(number, tuple(uids.split(",")) if 0 < number <= FEW else () if number == 0 else None)


def conditions(which: JobFilter) -> list[ColumnElement[bool]]:
    """All of a filter, so that ``ix_jobs_filter`` finds it: the states first, even where they are all."""
    states = jobs.c.state.in_([state.value for state in which.states or State])
    return [states, *owned(which, jobs.c.username, jobs.c.virtual_cluster), *details(which, jobs)]


def details(which: JobFilter, of: FromClause) -> list[ColumnElement[bool]]:
    """All else that a filter asks for, each looked at in every job."""
    columns = of.c
    asked: list[ColumnElement[bool]] = []
    if which.virtual_clusters:
        asked.append(unaided(columns.virtual_cluster).in_(which.virtual_clusters))
    if which.priorities:
        priority = unaided(columns.priority)
        unnamed = [priority.is_(None)] if None in which.priorities else []
        asked.append(or_(priority.in_([each for each in which.priorities if each is not None]), *unnamed))
    if which.with_tags:
        asked.append(or_(*(_has(tag, columns.tags) for tag in which.with_tags)))
    if which.gpu_types:
        asked.append(or_(*(_has(each, columns.gpu_types) for each in which.gpu_types)))
    asked += [~_has(tag, columns.tags) for tag in which.without_tags]
    if which.submitted_since:
        asked.append(type_coerce(unaided(columns.submitted_at), Instant()) >= which.submitted_since)
    if which.keyword:
        asked.append(columns.search.contains(which.keyword.lower(), autoescape=True))
    return asked


def _has(word: str, words: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a JSON list has the word; the case counts.

    By its form with the quotes and what precedes it, so that it is found whole: a quote in a word follows a backslash.
    """
    text = to_json(word).decode()
    return or_(_place_in(words, f"[{text}") > 0, _place_in(words, f",{text}") > 0)
