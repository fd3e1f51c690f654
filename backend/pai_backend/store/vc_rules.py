"""The rules of virtual clusters that are set while the backend runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import KeptRules, VcRules
from pai_backend.store import audit
from pai_backend.store.grants import Act
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import vc_rules as table


class VcRulesOfAll(Repository):
    """Rules by virtual cluster."""

    async def all(self) -> Mapping[str, KeptRules]:
        """Those of every virtual cluster that ever had any, also of one that is gone."""
        return await self._database.read(_all)

    async def change(self, vc: str, given: Mapping[str, Any], act: Act) -> KeptRules:
        """Set these fields of a virtual cluster's rules; the others stay. Writes its audit event in one transaction.

        Raises InvalidParameters when they do not fit with what stays.
        """
        return await self._writer.run(partial(_change, vc=vc, given=given, act=act))


def _all(conn: Connection) -> dict[str, KeptRules]:
    return {row.vc: _kept(row) for row in conn.execute(select(table).order_by(table.c.vc))}


def _change(conn: Connection, vc: str, given: Mapping[str, Any], act: Act) -> KeptRules:
    row = conn.execute(select(table).where(table.c.vc == vc)).one_or_none()
    before = None if row is None else _kept(row)
    old = VcRules() if before is None else before.rules
    new = VcRules.model_validate({**old.model_dump(), **given})
    _check(new)
    were, are = old.model_dump(mode="json"), new.model_dump(mode="json")
    told = {name: value for name, value in are.items() if value != were[name]}
    longest_at = None if before is None else before.longest_run_at
    if new.longest_run_s != old.longest_run_s:
        longest_at = act.at
    kept = KeptRules(new, act.at, act.by, longest_at)
    conn.execute(delete(table).where(table.c.vc == vc))
    values = {"vc": vc, "body": new.model_dump_json(), "changed_at": act.at, "changed_by": act.by}
    conn.execute(insert(table), {**values, "longest_run_at": longest_at})
    audit.note(conn, "virtual-cluster.rules-changed", act.by, vc, act, detail=_words(told))
    return kept


def _check(rules: VcRules) -> None:
    if (rules.idle_below_percent is None) != (rules.idle_for_s is None):
        raise InvalidParameters(
            Text("The idle rule needs both a percentage and a time."),
            hint=Text("Give idleBelowPercent and idleForS together, or null for both."),
        )


def _words(changed: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {'no rule' if value is None else value}" for name, value in changed.items())


def _kept(row: AnyRow) -> KeptRules:
    return KeptRules(VcRules.model_validate_json(row.body), row.changed_at, row.changed_by, row.longest_run_at)
