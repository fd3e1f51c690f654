"""The rules of a virtual cluster."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.vc_rules import VcRulesService
from pai_backend.api.vc_rules_wire import VcRulesChange, VcRulesWire
from pai_backend.model.errors import Forbidden, InvalidParameters, NoVirtualCluster
from pai_backend.model.scope import Scope


class VcRulesHandler(ApiHandler):
    """``/api/v2/virtual-clusters/{vc}/rules``."""

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """Who may use it reads them."""
        return Scope.READ if verb in ("get", "head") else Scope.ADMIN

    @operation(
        Operation("What jobs of a virtual cluster may do.", answer=VcRulesWire, raises=(Forbidden, NoVirtualCluster))
    )
    async def get(self, vc: str) -> VcRulesWire:
        """For who may use it."""
        return await VcRulesService(self.ctx).rules(self.user, vc)

    @operation(
        Operation(
            "Set rules of a virtual cluster; for its managers and administrators.",
            body=VcRulesChange,
            answer=VcRulesWire,
            raises=(Forbidden, InvalidParameters, NoVirtualCluster),
            audit="virtual-cluster.rules-changed",
            told_by_store=True,
        )
    )
    async def put(self, vc: str, change: VcRulesChange) -> VcRulesWire:
        """They hold at once, for what is submitted and what waits."""
        return await VcRulesService(self.ctx, self.request.remote_ip or "").change(self.user, vc, change)
