"""Whether a job fits what is configured of the cluster: its virtual cluster, its kinds of cells, its quota."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.api.context import CellRules
from pai_backend.auth.users import User
from pai_backend.model.errors import DocumentError, Fault, Forbidden, NoVirtualCluster
from pai_backend.model.validation import nearest
from pai_backend.protocol import Document, place_of
from pai_backend.scheduling.jobs.quota import misfits


def check_cells(user: User, document: Document, known: Sequence[str], rules: CellRules) -> None:
    """Refuse what can never start, or not for this user.

    Raises NoVirtualCluster, Forbidden for a virtual cluster that is not granted, DocumentError for kinds of cells that
    are not there and for a gang that is larger than the quota.
    """
    _check_virtual_cluster(user, document, known, rules)
    if rules.config is None:
        return
    wrong = misfits(document.spec, rules.config, rules.sizing)
    if wrong:
        faults = [_fault(document, each.path, each.message, each.hint) for each in wrong]
        raise DocumentError(wrong[0].message, errors=faults, hint=wrong[0].hint)


def _check_virtual_cluster(user: User, document: Document, known: Sequence[str], rules: CellRules) -> None:
    wanted = document.spec.virtual_cluster
    path = ("defaults", "virtualCluster") if document.dialect.is_v2 else ("virtualCluster",)
    if wanted not in known:
        like = nearest(wanted, known)
        message = f"There is no virtual cluster {wanted}; there are: {', '.join(known)}."
        hint = f"Did you mean {like}?" if like else f"Set virtualCluster to one of: {', '.join(known)}."
        raise NoVirtualCluster(message, errors=[_fault(document, path, message, hint)], hint=hint)
    if not rules.granted(user, wanted):
        message = f"{user.name} may not use the virtual cluster {wanted}."
        hint = f"Use one of: {', '.join(rules.grants[user.name]) or 'none'}; or ask the administrator for a grant."
        raise Forbidden(message, errors=[_fault(document, path, message, hint)], hint=hint)


def _fault(document: Document, path: tuple[str, ...], message: str, hint: str) -> Fault:
    line, column = place_of(document, path) or (None, None)
    return Fault(path=f"$.{'.'.join(path)}", message=message, line=line, column=column, hint=hint)
