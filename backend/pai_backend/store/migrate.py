"""Bring the schema to this version's, inside the caller's write transaction.

A new database gets the tables of ``tables`` as they are and the newest revision's mark; an older one is
taken there by alembic, which is imported only then: it costs 11 MiB that an idle backend should not hold.
A test shows that both roads lead to the same schema.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select
from sqlalchemy.engine import create_mock_engine

from pai_backend.model.errors import Unavailable
from pai_backend.store.people_tables import metadata

HEAD = "0032"
"""The revision that ``tables`` describes: the newest file in ``migrations/versions``."""

SCRIPTS = Path(__file__).parent / "migrations"

# As alembic itself makes it, so that it recognises it.
_version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def revision(conn: Connection) -> str | None:
    """The revision of the stored schema; None for a new database."""
    if not inspect(conn).has_table(_version.name):
        return None
    return conn.execute(select(_version.c.version_num)).scalar_one_or_none()


def to_head(conn: Connection) -> None:
    """Create or upgrade the schema; no-op at head. Raises Unavailable for one that a newer version made."""
    found = revision(conn)
    if found == HEAD:
        return
    if found is None:
        for statement in creation(conn.engine.url.drivername):
            conn.exec_driver_sql(statement)
        conn.execute(insert(_version), {"version_num": HEAD})
        return
    upgrade(conn, found)


@cache
def creation(driver: str) -> tuple[str, ...]:
    """The statements that make this version's tables and indexes where they are missing, for a driver of SQLAlchemy.

    Kept, because to write them takes SQLAlchemy ten times as long as it takes SQLite to run them.
    """
    statements: list[str] = []

    def keep(made: Any, *_: object, **__: object) -> None:
        made.if_not_exists = True
        statements.append(str(made.compile(dialect=planned.dialect)))

    planned = create_mock_engine(f"{driver}://", keep)
    for tables in (metadata, _version.metadata):
        tables.create_all(planned, checkfirst=False)
    return tuple(statements)


def upgrade(conn: Connection, found: str | None, to: str = "head") -> None:
    """Run the migrations after ``found`` with alembic, up to a revision; None: all of them."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    # No alembic.ini: it would configure logging for the whole process, and be one more file to ship.
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = conn
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise Unavailable(
            f"The database has schema {found}, which this version of jupyter-pai does not know: a newer one made it.",
            hint="Upgrade jupyter-pai, or use another database.",
        )
    command.upgrade(config, to)
