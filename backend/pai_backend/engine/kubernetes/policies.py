"""NetworkPolicies that tasks of a namespace share: made before the first of them, and made sure of now and then."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.failures import AlreadyExists
from pai_backend.engine.kubernetes.objects import Object, name_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind

SURE_S: Final = 60.0
"""For how long a policy that was there is taken to be: who deletes one opens tasks for that long, and not for good."""


class Policies:
    """Which shared policies are known to be there."""

    def __init__(self, calls: Calls, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._sure_until: dict[tuple[str, str], float] = {}

    async def ensure(self, body: Object, places: ApiPaths) -> None:
        """Return once the policy is there; who comes meanwhile waits for the same request. Raises ClusterErrors."""
        key = (places.namespace, name_of(body))
        async with self._one_at_a_time:
            if self._sure_until.get(key, 0.0) > (now := self._clock()):
                return
            with contextlib.suppress(AlreadyExists):
                await self._calls.create(places.all(ResourceKind.NETWORK_POLICY), body)
            self._sure_until[key] = now + SURE_S
