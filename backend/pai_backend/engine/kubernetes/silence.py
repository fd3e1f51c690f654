"""How long nodes have not been heard of, by their leases: sooner than their condition Ready tells.

A kubelet renews the Lease of its node every quarter of its duration (10 s of 40 by default). The cluster calls the node
not ready when that has failed for ``--node-monitor-grace-period``, 50 s by default, and until then everything on it
looks as it did. Source: Kubernetes documentation, "Nodes", Heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Final

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound, ClusterError
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.places import lease
from pai_backend.engine.kubernetes.status.view import part, time_of

FRESH_S: Final = 2.0
"""How long what a lease said is used again: a job's page is asked for by everybody who looks at it."""
ASK_S: Final = 2.0  # of one request: the caller waits for it
LATE_S: Final = 2.0
"""Time for a renewal that is due, on a busy machine."""
MOST: Final = 16
"""Nodes that are asked about at once."""

_log = logging.getLogger(__name__)


class Silences:
    """What leases of nodes said lately."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Object]] = {}
        self._forbidden = False

    async def of(self, calls: Calls, names: Iterable[str]) -> dict[str, float]:
        """Seconds since those of these nodes were heard of that are late. Of some nothing can be known."""
        asked = list(dict.fromkeys(names))[:MOST]
        found = zip(asked, await asyncio.gather(*(self._lease(calls, name) for name in asked)), strict=True)
        told = {name: late_s(each, calls.now().timestamp()) for name, each in found}
        return {name: seconds for name, seconds in told.items() if seconds}

    async def _lease(self, calls: Calls, name: str) -> Object:
        at, known = self._known.get(name, (0.0, {}))
        now = time.monotonic()
        if self._forbidden or (at and now - at < FRESH_S):
            return known
        try:
            known = await calls.get(lease(name), deadline_s=ASK_S)
        except ApiForbidden as error:
            self._forbidden = True
            _log.warning(
                "leases of nodes may not be read, so a silent node is noticed only once it is not ready: %s", error
            )
        except ApiNotFound:
            known = {}
        except ClusterError:
            return {}  # that the cluster is away is reported for everything
        if len(self._known) > 100 * MOST:
            self._known.clear()
        self._known[name] = (now, known)
        return known


def late_s(found: Object, now: float) -> float:
    """Seconds since the lease was renewed, when that is late; 0 when it is not, or nothing is known."""
    spec = part(found, "spec")
    renewed, lasts = time_of(spec.get("renewTime")), spec.get("leaseDurationSeconds")
    if renewed is None or not isinstance(lasts, int):
        return 0.0
    age = now - renewed.timestamp()
    return age if age >= lasts / 4 + LATE_S else 0.0
