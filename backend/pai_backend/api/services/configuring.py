"""Looking at the cluster configuration, planning another one and applying it. For administrators.

Nothing is decided here: a version is recorded, and the controller goes over to it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from pai_backend.api.config_wire import ClusterPlan, ConfigHistory, ConfigShown, ConfigVersionShown
from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import in_turn
from pai_backend.auth.users import User
from pai_backend.lifecycle.step import to_place
from pai_backend.model.change import ClusterChange
from pai_backend.model.errors import (
    DocumentError,
    Fault,
    Forbidden,
    InvalidParameters,
    NoSuchConfig,
    StaleVersion,
)
from pai_backend.model.text import Text
from pai_backend.scheduling.config.derive import derive, to_yaml
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.jobs.change import Queued, in_order, preview, rebuilt
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.store.versions import ConfigState, ConfigVersion

PATIENCE_S = 3.0
"""How long an answer waits for the controller to take a version over."""

LAST_WINS = (
    "After a restart this version is still in force, unless `cluster.config` has changed since it was last applied."
)
FIXED = "`cluster.fixed` is on: what `cluster.config` says is in force after a restart, whatever was applied before."


class ConfigService:
    """The configuration as an administrator sees and changes it."""

    def __init__(self, ctx: ApiContext, user: User) -> None:
        """Raises Forbidden for anybody else."""
        if not user.admin:
            raise Forbidden(
                Text("Only administrators see and change the cluster configuration."),
                hint=Text("`GET /api/v2/cluster/cells` shows the cells to every user."),
            )
        self._ctx = ctx
        self._user = user
        self._configs = ctx.store.configs

    async def show(self, version: int | None) -> ConfigShown:
        """One version, by default the one in force. Raises NoSuchConfig."""
        state = await self._configs.state()
        found = state.in_force if version is None else await self._version(version)
        derived = await asyncio.to_thread(lambda: to_yaml(derive(self._ctx.nodes())))
        text = "" if found is None else await self._configs.text(found.version)
        fixed = self._ctx.rules.fixed
        return ConfigShown(
            **dict(_shown(found, state)),
            text=text or derived,
            derived=derived,
            newest_version=state.number,
            fixed=fixed,
            precedence=FIXED if fixed else LAST_WINS,
        )

    async def _version(self, number: int) -> ConfigVersion:
        found = await self._configs.version(number)
        if found is None:
            message = Text("No cluster configuration of version {number} is kept.", number=number)
            raise NoSuchConfig(message, hint=Text("`GET /api/v2/cluster/config/history` lists those that are."))
        return found

    async def history(self, limit: int) -> ConfigHistory:
        """The last versions."""
        state, found = await self._configs.state(), await self._configs.history(limit)
        return ConfigHistory(data=tuple(_shown(each, state) for each in found))

    async def plan(self, text: bytes, expected: int | None) -> ClusterPlan:
        """What a configuration would do; one with faults is an answer, too. Raises StaleVersion."""
        state = await self._expected(expected)
        try:
            config = await _read(text)
        except DocumentError as error:
            return ClusterPlan(
                valid=False,
                errors=error.errors,
                in_force_version=state.in_force_number,
                newest_version=state.number,
            )
        return await self._planned(config, state)

    async def apply(self, text: bytes, expected: int | None) -> ClusterPlan:
        """Have a configuration taken over. Raises DocumentError, StaleVersion, Forbidden, InvalidParameters."""
        if self._ctx.rules.fixed:
            raise Forbidden(
                Text("The cluster configuration can only be changed in the settings: `cluster.fixed` is on."),
                hint=Text("Change what `cluster.config` names, and start the backend again."),
            )
        if expected is None:
            raise InvalidParameters(
                Text("A change must name the version that it is based on."),
                hint=Text("Plan it with `dryRun=true`, and give that answer's `newestVersion` as `expectedVersion`."),
            )
        state = await self._expected(expected)
        plan = await self._planned(await _read(text), state)
        made = await self._configs.record(text.decode("utf-8-sig"), self._user.name, self._ctx.clock(), expected)
        in_force = await self._in_force(made.version)
        told = {"applied_version": made.version, "newest_version": made.version, "in_force": in_force}
        return plan.model_copy(update=told)

    async def _planned(self, config: ClusterConfig, state: ConfigState) -> ClusterPlan:
        change = await self._preview(config)
        return ClusterPlan(
            valid=True,
            warnings=config.warnings,
            in_force_version=state.in_force_number,
            newest_version=state.number,
            concerns=change.concerns,
            change=change,
        )

    async def _expected(self, expected: int | None) -> ConfigState:
        state = await self._configs.state()
        if expected is not None and expected != state.number:
            raise StaleVersion(
                Text(
                    "The newest cluster configuration is version {number}, not {expected}.",
                    number=state.number,
                    expected=expected,
                ),
                hint=Text("Look at what has changed with `pai cluster show`, and plan again."),
            )
        return state

    async def _preview(self, config: ClusterConfig) -> ClusterChange:
        """Computed on copies that are rebuilt from what is stored, in a thread."""
        await self._ctx.live_rules.refresh(at_once=True)
        rules, now = self._ctx.rules, self._ctx.clock()
        jobs, nodes = await self._ctx.store.jobs.unfinished(), list(self._ctx.nodes())

        def copy() -> Placer:
            return rebuilt(
                rules.config,
                nodes,
                jobs,
                cells_for_all=rules.cells_for_all,
                rules=rules.node_rules,
                policy=rules.policy,
            )

        def computed() -> ClusterChange:
            waiting = in_order(Queued(job, tasks) for job in jobs if (tasks := to_place(job, now)))
            return preview(copy, config, jobs, waiting)

        return await in_turn(computed)

    async def _in_force(self, version: int) -> bool:
        """Whether the controller takes the version over in time."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    seen = self._ctx.changes.number
                    if (await self._configs.state()).in_force_number >= version:
                        break
                    await self._ctx.changes.wait(seen)
        except TimeoutError:
            return False
        await self._ctx.live_rules.refresh(at_once=True)
        return True


async def _read(text: bytes) -> ClusterConfig:
    """The configuration, read where it blocks no request. Raises DocumentError."""
    try:
        return await in_turn(partial(read_config, text.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        message = Text("this is not UTF-8 text (byte {start})", start=error.start)
        fault = Fault(
            path="$", message=message, line=text.count(b"\n", 0, error.start) + 1, hint=Text("Save it as UTF-8.")
        )
        raise DocumentError(message, errors=[fault], hint=fault.hint) from error


def _shown(found: ConfigVersion | None, state: ConfigState) -> ConfigVersionShown:
    if found is None:
        return ConfigVersionShown(
            version=0, state="in force", origin="derived", by="", recorded_at=None, since=None, change=None
        )
    change = ClusterChange.model_validate_json(found.effects) if found.effects else None
    return ConfigVersionShown.model_validate(
        {
            "version": found.version,
            "state": _state(found, state),
            "origin": found.origin.value,
            "by": found.by,
            "recorded_at": found.recorded_at,
            "since": found.in_force_at,
            "change": change,
        }
    )


def _state(found: ConfigVersion, state: ConfigState) -> str:
    if found.in_force_at is None:
        return "recorded" if found.version == state.number else "skipped"
    return "in force" if found.version == state.in_force_number else "past"
