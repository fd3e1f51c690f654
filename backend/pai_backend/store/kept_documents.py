"""Documents that users keep without submitting them: templates of their own, and drafts.

They come with their secrets masked, and are sealed like documents of jobs: what v1 holds is not known to be none.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from pai_backend.model.errors import InvalidParameters, NoSuchFile
from pai_backend.model.text import Text
from pai_backend.store.cipher import Sealed
from pai_backend.store.people_tables import kept_documents
from pai_backend.store.repository import Repository

MOST = 100
"""Documents that a user may keep of each kind."""


class DocumentKind(StrEnum):
    """What a document is kept as."""

    TEMPLATE = "template"
    DRAFT = "draft"


@dataclass(frozen=True)
class KeptDocument:
    """A kept document, without its text."""

    name: str
    filename: str
    changed_at: datetime


_OF_USER = (kept_documents.c.username == bindparam("user_")) & (kept_documents.c.kind == bindparam("kind_"))
_ONE = _OF_USER & (kept_documents.c.name == bindparam("name_"))
_LIST = (
    select(kept_documents.c.name, kept_documents.c.filename, kept_documents.c.changed_at)
    .where(_OF_USER)
    .order_by(kept_documents.c.name)
)
_GET = select(kept_documents.c.source, kept_documents.c.filename).where(_ONE)
_COUNT = select(func.count()).select_from(kept_documents).where(_OF_USER)
_UPDATE = update(kept_documents).where(_ONE)
_DELETE = delete(kept_documents).where(_ONE)
_DELETE_ALL = delete(kept_documents).where(kept_documents.c.username == bindparam("user_"))


def forget_user(conn: Connection, user: str) -> None:
    """Delete all that a user keeps."""
    conn.execute(_DELETE_ALL, {"user_": user})


class KeptDocuments(Repository):
    """Templates and drafts of users."""

    async def list(self, user: str, kind: DocumentKind) -> list[KeptDocument]:
        """What the user keeps, by name."""
        rows = await self._database.read(lambda conn: conn.execute(_LIST, {"user_": user, "kind_": kind.value}).all())
        return [KeptDocument(row.name, row.filename, row.changed_at) for row in rows]

    async def get(self, user: str, kind: DocumentKind, name: str) -> tuple[bytes, str] | None:
        """A document and its file name; None when the user keeps none of this name."""
        values = _key(user, kind, name)
        row = await self._database.read(lambda conn: conn.execute(_GET, values).one_or_none())
        return None if row is None else (await self._ring.open(row.source), row.filename)

    async def put(self, user: str, kind: DocumentKind, name: str, text: bytes, filename: str, at: datetime) -> None:
        """Keep a document, instead of an earlier one of its name. Raises InvalidParameters when there are too many."""
        made = self._ring.cipher.sealed(text)
        values = {**_key(user, kind, name), "filename": filename, "changed_at": at}
        await self._writer.run(partial(_put, values=values, made=made), announce=False)

    async def delete(self, user: str, kind: DocumentKind, name: str) -> None:
        """Keep it no longer. Raises NoSuchFile when the user keeps none of this name."""
        await self._writer.run(partial(_delete, values=_key(user, kind, name)), announce=False)


def _key(user: str, kind: DocumentKind, name: str) -> dict[str, str]:
    return {"user_": user, "kind_": kind.value, "name_": name}


def _put(conn: Connection, values: dict[str, object], made: Sealed) -> None:
    new = {"filename": values["filename"], "changed_at": values["changed_at"]}
    changed = _UPDATE.values(source=made.data, sealed_by=made.by, **new)
    if conn.execute(changed, values).rowcount:
        return
    if conn.execute(_COUNT, values).scalar_one() >= MOST:
        raise InvalidParameters(
            Text("You have {most} documents of this kind, which is the limit.", most=MOST),
            hint=Text("Delete those not needed."),
        )
    key = {"username": values["user_"], "kind": values["kind_"], "name": values["name_"]}
    row = {"id": secrets.token_hex(16), **key, **new, "source": made.data, "sealed_by": made.by}
    conn.execute(insert(kept_documents), row)


def _delete(conn: Connection, values: dict[str, str]) -> None:
    if not conn.execute(_DELETE, values).rowcount:
        raise NoSuchFile(
            Text("You keep no {values} {values2}.", values=values["kind_"], values2=repr(values["name_"][:100]))
        )
