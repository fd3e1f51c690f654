"""The rules of virtual clusters: all who may use one read them, its managers and administrators change them."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.vc_rules_wire import VcLimits, VcRulesChange, VcRulesWire
from pai_backend.auth.policy import administers
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, NoVirtualCluster
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import KeptRules, VcRules
from pai_backend.store.grants import Act


class VcRulesService:
    """Rules. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def rules(self, user: User, vc: str) -> VcRulesWire:
        """Those of a virtual cluster that the caller may use or administers. Raises NoVirtualCluster, Forbidden."""
        self._require(vc)
        if not (administers(user, vc) or self._ctx.rules.granted(user, vc)):
            raise Forbidden(
                Text("{user} may not use the virtual cluster {vc}.", user=user.name, vc=vc),
                hint=Text("Ask an administrator or its manager for a grant."),
            )
        return self._shown(user, vc, (await self._ctx.store.vc_rules.all()).get(vc))

    async def change(self, user: User, vc: str, change: VcRulesChange) -> VcRulesWire:
        """Set some of the rules. Raises NoVirtualCluster, Forbidden, InvalidParameters."""
        self._require(vc)
        if not administers(user, vc):
            raise Forbidden(
                Text("The rules of the virtual cluster {vc} are changed by its managers and by administrators.", vc=vc),
                hint=Text("Ask one of them."),
            )
        given = {name: getattr(change, name) for name in change.model_fields_set}
        act = Act(user.name, self._ctx.clock(), self._source)
        kept = await self._ctx.store.vc_rules.change(vc, given, act)
        await self._ctx.live_rules.refresh(at_once=True)
        return self._shown(user, vc, kept)

    def _require(self, vc: str) -> None:
        known = self._ctx.virtual_clusters
        if vc not in known:
            raise NoVirtualCluster(
                Text("There is no virtual cluster {vc}.", vc=repr(vc[:100])),
                hint=Text("There are: {known}.", known=", ".join(known)),
            )

    def _shown(self, user: User, vc: str, kept: KeptRules | None) -> VcRulesWire:
        rules = kept.rules if kept is not None else VcRules()
        policy = self._ctx.live_rules.policy_of_settings
        base = policy.vcs.get(vc, policy.vc)
        longest = None if base.longest_run is None else int(base.longest_run.after.total_seconds())
        settled = {"most_gpus_per_user": base.user.gpus, "most_jobs_per_user": base.user.jobs, "longest_run_s": longest}
        return VcRulesWire(
            virtual_cluster=vc,
            rules=rules,
            in_force=VcLimits.model_validate(
                {name: getattr(rules, name) if value is None else value for name, value in settled.items()}
            ),
            from_configuration=tuple(_CAMEL[name] for name, value in settled.items() if value is not None),
            may_change=administers(user, vc),
            changed_at=None if kept is None else kept.changed_at,
            changed_by="" if kept is None else kept.changed_by,
        )


_CAMEL = {
    "most_gpus_per_user": "mostGpusPerUser",
    "most_jobs_per_user": "mostJobsPerUser",
    "longest_run_s": "longestRunS",
}
