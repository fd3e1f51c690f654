"""The cluster configuration: shown, planned, applied."""

from __future__ import annotations

import re

from pai_backend.api.base import ApiHandler
from pai_backend.api.config_wire import (
    ChangeQuery,
    ClusterPlan,
    ConfigHistory,
    ConfigQuery,
    ConfigShown,
    HistoryQuery,
)
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.configuring import ConfigService
from pai_backend.model.errors import (
    DocumentError,
    Forbidden,
    InvalidParameters,
    NoSuchConfig,
    StaleVersion,
    TooLarge,
)
from pai_backend.model.scope import Scope
from pai_backend.model.text import Text
from pai_backend.scheduling.config.document import MAX_BYTES
from pai_backend.store import deeds

_NUMBER = re.compile(r'"?(\d{1,9})"?', re.ASCII)


class ClusterConfigHandler(ApiHandler):
    """``/api/v2/cluster/config``."""

    scope = Scope.ADMIN

    def body_limit(self) -> int:
        """What a configuration may have, and a little more, so that the reader tells of what is too large."""
        return MAX_BYTES + 1024

    @operation(
        Operation(
            "The cluster configuration in force, or an earlier version.",
            query=ConfigQuery,
            answer=ConfigShown,
            raises=(Forbidden, NoSuchConfig),
        )
    )
    async def get(self, query: ConfigQuery) -> ConfigShown:
        """Text, version, since when, by whom."""
        return await ConfigService(self.ctx, self.user).show(query.version)

    @operation(
        Operation(
            "Change the cluster configuration while jobs run, or plan the change.",
            audit="cluster.configured",
            query=ChangeQuery,
            takes_document=True,
            document="A cluster configuration, as it is.",
            answer=ClusterPlan,
            raises=(DocumentError, Forbidden, StaleVersion, InvalidParameters, TooLarge),
        )
    )
    async def post(self, query: ChangeQuery) -> ClusterPlan:
        """What it does; with ``dryRun`` what it would do, faults included."""
        if query.dry_run:
            deeds.changes_nothing()
        service = ConfigService(self.ctx, self.user)
        expected = self._expected() if query.expected_version is None else query.expected_version
        take = service.plan if query.dry_run else service.apply
        return await take(self.body(), expected)

    def _expected(self) -> int | None:
        """The version that ``If-Match`` names. Raises InvalidParameters for anything else there."""
        given = self.request.headers.get("If-Match")
        if given is None:
            return None
        found = _NUMBER.fullmatch(given.strip())
        if found is None:
            raise InvalidParameters(
                Text("If-Match has {given}, which is not a version.", given=repr(given[:40])),
                hint=Text("Give the number of a version."),
            )
        return int(found[1])


class ClusterConfigHistoryHandler(ApiHandler):
    """``/api/v2/cluster/config/history``."""

    scope = Scope.ADMIN

    @operation(
        Operation(
            "The last versions of the cluster configuration, and what they did.",
            query=HistoryQuery,
            answer=ConfigHistory,
            raises=(Forbidden,),
        )
    )
    async def get(self, query: HistoryQuery) -> ConfigHistory:
        """The newest first."""
        return await ConfigService(self.ctx, self.user).history(query.limit)
