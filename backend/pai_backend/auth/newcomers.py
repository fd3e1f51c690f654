"""Users who are known elsewhere, and become users here when they first come."""

from __future__ import annotations

import re

from pai_backend.model.errors import Forbidden, UserExists
from pai_backend.model.text import Text
from pai_backend.store.external_users import ExternalUser, ExternalUsers
from pai_backend.store.grants import Act

_NAME = re.compile(r"(?!me$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of users here: they name directories, and ``me`` is the caller."""


async def let_come(users: ExternalUsers, user: ExternalUser, act: Act, *, take_names: bool) -> None:
    """Have the user of that name be this one, who is added when there is none.

    ``take_names``: also a user who was here before. Raises Forbidden for a name that cannot be taken, so also for that
    of a removed user, whose jobs and files the new one would have.
    """
    if not _NAME.fullmatch(user.name):
        raise Forbidden(
            Text("{user} cannot be the name of a user here.", user=repr(user.name[:64])),
            hint=Text("Names are letters, digits, `_`, `.` and `-`, at most 64, and not `me`."),
        )
    try:
        await users.come(user, act, take_names=take_names)
    except UserExists as error:
        raise Forbidden(error.message, hint=error.hint) from None
