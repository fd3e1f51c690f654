"""Versions of the cluster configuration in SQL."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pai_backend.model.errors import StaleVersion
from pai_backend.model.text import Text
from pai_backend.store import lease
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import cluster_configs as table
from pai_backend.store.versions import MOST_KEPT, ConfigState, ConfigVersion, VersionOrigin

_COLUMNS = (
    table.c.version,
    table.c.origin,
    table.c.username,
    table.c.recorded_at,
    table.c.in_force_at,
    table.c.effects,
)
_NEWEST_FIRST = select(*_COLUMNS).order_by(table.c.version.desc()).limit(bindparam("limit_"))
_IN_FORCE = select(*_COLUMNS).where(table.c.in_force_at.is_not(None)).order_by(table.c.version.desc()).limit(1)
_ONE = select(*_COLUMNS).where(table.c.version == bindparam("version_"))
_TEXT = select(table.c.text).where(table.c.version == bindparam("version_"))
_LAST_OF_SETTING = (
    select(table.c.version, table.c.text)
    .where(table.c.origin == VersionOrigin.SETTING.value)
    .order_by(table.c.version.desc())
    .limit(1)
)
_INSERT = insert(table)
_TAKE_FORCE = update(table).where(table.c.version == bindparam("version_"), table.c.in_force_at.is_(None))
_FORGET = delete(table).where(
    table.c.version <= bindparam("last_"), table.c.version.not_in(bindparam("kept_", expanding=True))
)


class Configurations(Repository):
    """Versions of the cluster configuration."""

    async def state(self) -> ConfigState:
        """Which version is the newest, and which is in force."""
        return await self._database.read(_state)

    async def version(self, number: int) -> ConfigVersion | None:
        """One version; None for one that is not kept."""
        return await self._database.read(partial(_one, number=number))

    async def text(self, version: int) -> str | None:
        """The text of a version, empty for "derive it from the nodes"; None for one that is not kept."""
        return await self._database.read(partial(_text, version=version))

    async def history(self, limit: int) -> list[ConfigVersion]:
        """The newest versions, the newest first."""
        return await self._database.read(partial(_history, limit=limit))

    async def record(self, text: str, by: str, at: datetime, expected: int) -> ConfigVersion:
        """Keep a text that an administrator wants in force, and wake the controller.

        Raises StaleVersion when ``expected`` is no longer the newest version's number.
        """
        return await self._writer.run(partial(_record, text=text, by=by, at=at, expected=expected))

    async def adopt_setting(self, text: str, at: datetime, epoch: int, *, fixed: bool) -> None:
        """Record the setting's text if it is another than that of the setting's last version; the first has force at
        once. Empty: the setting is not given. ``fixed``: also if anything else is the newest version. Raises Fenced.
        """
        await self._writer.run(partial(_adopt_setting, text=text, at=at, epoch=epoch, fixed=fixed))

    async def took_force(self, version: int, effects: str, at: datetime, epoch: int) -> None:
        """The controller decides by this version from now on. Idempotent. Raises Fenced."""
        await self._writer.run(partial(_took_force, version=version, effects=effects, at=at, epoch=epoch))


def _state(conn: Connection) -> ConfigState:
    newest = conn.execute(_NEWEST_FIRST, {"limit_": 1}).one_or_none()
    if newest is None:
        return ConfigState()
    in_force = newest if newest.in_force_at is not None else conn.execute(_IN_FORCE).one_or_none()
    return ConfigState(_version(newest), None if in_force is None else _version(in_force))


def _one(conn: Connection, number: int) -> ConfigVersion | None:
    row = conn.execute(_ONE, {"version_": number}).one_or_none()
    return None if row is None else _version(row)


def _text(conn: Connection, version: int) -> str | None:
    found: str | None = conn.execute(_TEXT, {"version_": version}).scalar_one_or_none()
    return found


def _history(conn: Connection, limit: int) -> list[ConfigVersion]:
    return [_version(row) for row in conn.execute(_NEWEST_FIRST, {"limit_": limit})]


def _record(conn: Connection, text: str, by: str, at: datetime, expected: int) -> ConfigVersion:
    now = _state(conn)
    if now.number != expected:
        raise StaleVersion(
            Text(
                "The newest cluster configuration is version {number}, not {expected}.",
                number=now.number,
                expected=expected,
            ),
            hint=Text("Look at what has changed with `pai cluster show`, and plan again."),
        )
    return _insert(conn, now, VersionOrigin.REST, text, by, at)


def _adopt_setting(conn: Connection, text: str, at: datetime, epoch: int, fixed: bool) -> None:
    lease.require(conn, epoch)
    last = conn.execute(_LAST_OF_SETTING).one_or_none()
    now = _state(conn)
    is_same = text == ("" if last is None else last.text)
    stands = not fixed or now.newest is None or (last is not None and last.version == now.number)
    if not (is_same and stands):
        _insert(conn, now, VersionOrigin.SETTING, text, "", at)


def _insert(
    conn: Connection, now: ConfigState, origin: VersionOrigin, text: str, by: str, at: datetime
) -> ConfigVersion:
    """A new version. The setting's first has force at once: it has been in force for as long as there was a backend."""
    force = at if origin is VersionOrigin.SETTING and now.newest is None else None
    made = ConfigVersion(now.number + 1, origin, by, at, force, "")
    values = {"version": made.version, "origin": origin.value, "username": by, "recorded_at": at}
    conn.execute(_INSERT, {**values, "in_force_at": force, "effects": "", "text": text})
    setting = conn.execute(_LAST_OF_SETTING).one_or_none()
    kept = [now.in_force_number, 0 if setting is None else setting.version]
    conn.execute(_FORGET, {"last_": made.version - MOST_KEPT, "kept_": kept})
    return made


def _took_force(conn: Connection, version: int, effects: str, at: datetime, epoch: int) -> None:
    lease.require(conn, epoch)
    conn.execute(_TAKE_FORCE.values(in_force_at=at, effects=effects), {"version_": version})


def _version(row: AnyRow) -> ConfigVersion:
    return ConfigVersion(
        row.version, VersionOrigin(row.origin), row.username, row.recorded_at, row.in_force_at, row.effects
    )
