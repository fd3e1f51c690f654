"""The cluster configuration over REST: its shapes, and the calls of ``pai cluster`` and ``%pai cluster``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypedDict, cast
from urllib.parse import quote

from jupyter_pai import streams
from jupyter_pai.errors import BackendAway
from jupyter_pai.wire import FaultBody

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient, Query

PATH = "/api/v2/cluster/config"
ORPHANS = "/api/v2/cluster/orphans"
PLAN_TIMEOUT_S = 300.0
"""A plan rebuilds the whole cluster several times; of 10,000 nodes that takes a while."""
PATIENCE_S = 60.0
"""How long the controller may take to go over to a version."""
LOOK_S = 0.5


class JobEffect(TypedDict):
    """A job that a change concerns."""

    job: str
    vc: str
    gpus: int
    groups: list[str]
    message: str
    already: bool


class CellsOwned(TypedDict):
    """How many cells of one kind a virtual cluster owns."""

    cell: str
    before: int
    after: int


class VcChange(TypedDict):
    """What a virtual cluster owns before and after."""

    vc: str
    exists_before: bool
    exists_after: bool
    gpus_before: int
    gpus_after: int
    cells: list[CellsOwned]


class ClusterChange(TypedDict):
    """All effects of a change."""

    lost: list[JobEffect]
    regained: list[JobEffect]
    dropped: list[JobEffect]
    missing: list[JobEffect]
    impossible: list[JobEffect]
    starts: list[JobEffect]
    virtual_clusters: list[VcChange]
    added_nodes: list[str]
    removed_nodes: list[str]


class Plan(TypedDict):
    """What a configuration would do, or did when it was applied."""

    valid: bool
    errors: list[FaultBody]
    warnings: list[FaultBody]
    inForceVersion: int
    newestVersion: int
    concerns: bool
    change: ClusterChange | None
    appliedVersion: int | None
    inForce: bool


class Version(TypedDict):
    """A version of the configuration."""

    version: int
    state: str
    origin: str
    by: str
    recordedAt: str | None
    since: str | None
    change: ClusterChange | None


class Orphan(TypedDict):
    """A running task that the database does not know."""

    task: str
    database: str
    state: str
    since: str | None
    seenAt: str
    why: str
    endedBy: str


class Shown(Version):
    """A version with its text."""

    text: str
    derived: str
    newestVersion: int
    fixed: bool
    precedence: str


async def show(api: AsyncClient, version: int | None = None) -> Shown:
    """The version in force, or another one. Raises NotFound."""
    return cast(Shown, await _get(api, PATH, {"version": version}))


async def history(api: AsyncClient, limit: int = 20) -> list[Version]:
    """The last versions, the newest first."""
    return cast(dict[str, list[Version]], await _get(api, f"{PATH}/history", {"limit": limit}))["data"]


async def orphans(api: AsyncClient) -> list[Orphan]:
    """Running tasks that the database does not know, the longest known first."""
    return cast(dict[str, list[Orphan]], await _get(api, ORPHANS, {}))["data"]


async def end_orphan(api: AsyncClient, task: str) -> None:
    """Ask one of them to end. Raises NotFound."""
    await api.request("DELETE", f"{ORPHANS}/{quote(task, safe='')}")


async def plan(api: AsyncClient, text: bytes) -> Plan:
    """What a configuration would do; one with faults is an answer here, not an exception."""
    return await _post(api, text, {"dryRun": "true"})


async def apply(api: AsyncClient, text: bytes, expected: int, patience_s: float = PATIENCE_S) -> Plan:
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
            f"Version {version} is recorded, but no controller has applied it yet.",
            hint="It takes effect when the controller is back; see `pai cluster history`.",
        ) from None
    return {**done, "inForce": True}


async def _get(api: AsyncClient, path: str, query: Query) -> object:
    return streams.decoded((await api.request("GET", path, query=query)).body)


async def _post(api: AsyncClient, text: bytes, query: Query) -> Plan:
    answer = await api.request(
        "POST", PATH, query=query, body=text, media_type="application/yaml", timeout_s=PLAN_TIMEOUT_S
    )
    return cast(Plan, streams.decoded(answer.body))
