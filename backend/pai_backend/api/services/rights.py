"""Who may change rights: administrators everything, managers of a virtual cluster the grants of that one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pai_backend.api.services.identity import require_person
from pai_backend.auth.users import User
from pai_backend.model.account import VcGrants
from pai_backend.model.errors import Forbidden, InvalidParameters
from pai_backend.model.text import Text
from pai_backend.model.validation import nearest


def require_administrator(user: User) -> None:
    """Raise Forbidden for all but administrators, and for application tokens."""
    require_person(user)
    if not user.admin:
        raise Forbidden(Text("This needs administrator rights."), hint=Text("Ask an administrator."))


def granted(
    before: VcGrants, use: Iterable[str] | None, manages: Iterable[str] | None, known: Collection[str]
) -> VcGrants:
    """The grants with what is given of the two in place of what was there.

    Raises InvalidParameters for an unknown virtual cluster that was not granted before.
    """
    after = VcGrants(
        before.use if use is None else frozenset(use), before.manages if manages is None else frozenset(manages)
    )
    for name in sorted(after.usable - before.usable - set(known)):
        like = nearest(name, known)
        raise InvalidParameters(
            Text("The virtual cluster {name} does not exist.", name=repr(name[:100])),
            hint=Text("Did you mean {like}?", like=like)
            if like
            else Text("The virtual clusters are: {known}.", known=", ".join(known)),
        )
    return after


def require_may_grant(user: User, before: VcGrants, after: VcGrants) -> None:
    """Raise Forbidden unless the user may make this change: who manages a virtual cluster lets others use it."""
    require_person(user)
    if user.admin or (before.manages == after.manages and before.use ^ after.use <= user.manages):
        return
    mine = ", ".join(sorted(user.manages))
    raise Forbidden(
        Text("This needs administrator rights."),
        hint=Text("You may grant: {mine}.", mine=mine)
        if mine
        else Text("Ask an administrator, or a manager of the virtual cluster."),
    )
