"""The cluster configuration over REST: its shapes, and the calls of ``pai cluster`` and ``%pai cluster``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from jupyter_pai import streams
from jupyter_pai.errors import BackendAway
from jupyter_pai.wire_types import ClusterPlan, ConfigShown, ConfigVersionShown, OrphanShown
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient, Query

PATH = "/api/v2/cluster/config"
ORPHANS = "/api/v2/cluster/orphans"
PLAN_TIMEOUT_S = 300.0
"""A plan rebuilds the whole cluster several times; of 10,000 nodes that takes a while."""
PATIENCE_S = 60.0
"""How long the controller may take to go over to a version."""
LOOK_S = 0.5


async def show(api: AsyncClient, version: int | None = None) -> ConfigShown:
    """The version in force, or another one. Raises NotFound."""
    return cast(ConfigShown, await _get(api, PATH, {"version": version}))


async def history(api: AsyncClient, limit: int = 20) -> list[ConfigVersionShown]:
    """The last versions, the newest first."""
    return cast(dict[str, list[ConfigVersionShown]], await _get(api, f"{PATH}/history", {"limit": limit}))["data"]


async def orphans(api: AsyncClient) -> list[OrphanShown]:
    """Running tasks that the database does not know, the longest known first."""
    return cast(dict[str, list[OrphanShown]], await _get(api, ORPHANS, {}))["data"]


async def end_orphan(api: AsyncClient, task: str) -> None:
    """Ask one of them to end. Raises NotFound."""
    await api.request("DELETE", f"{ORPHANS}/{quote(task, safe='')}")


async def plan(api: AsyncClient, text: bytes) -> ClusterPlan:
    """What a configuration would do; one with faults is an answer here, not an exception."""
    return await _post(api, text, {"dryRun": "true"})


async def apply(api: AsyncClient, text: bytes, expected: int, patience_s: float = PATIENCE_S) -> ClusterPlan:
    """Have a configuration taken over, and wait until it is in force.

    Raises InvalidDocument, Denied, ClientError when ``expected`` is no longer the newest version, and BackendAway when
    it is recorded and no controller takes it over in time.
    """
    done = await _post(api, text, {"expectedVersion": expected})
    version = done["appliedVersion"]
    if done["inForce"] or version is None:
        return done
    try:
        async with asyncio.timeout(patience_s):
            while (await show(api))["version"] < version:  # noqa: ASYNC110 - the backend pushes no news of this
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise BackendAway(
            Text("Version {version} is recorded, but no controller has applied it yet.", version=version),
            hint="It takes effect when the controller is back; see `pai cluster history`.",
        ) from None
    return {**done, "inForce": True}


async def _get(api: AsyncClient, path: str, query: Query) -> object:
    return streams.decoded((await api.request("GET", path, query=query)).body)


async def _post(api: AsyncClient, text: bytes, query: Query) -> ClusterPlan:
    answer = await api.request(
        "POST", PATH, query=query, body=text, media_type="application/yaml", timeout_s=PLAN_TIMEOUT_S
    )
    return cast(ClusterPlan, streams.decoded(answer.body))
