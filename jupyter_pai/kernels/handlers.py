"""``…/pai/kernels`` of the Jupyter server: kernels in jobs, what they wait for, and why they have ended."""

from __future__ import annotations

import json

from jupyter_server.base.handlers import APIHandler

from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from jupyter_pai.kernels.server_kernels import ServerKernels
from jupyter_pai.kernels.server_specs import SpecsRefresher


class KernelsHandler(APIHandler):
    """The kernels of this server that run in jobs. Asking also refreshes the list of kernel specs."""

    refresher: SpecsRefresher | None
    kernels: ServerKernels | None
    _track_activity = False

    def initialize(self, refresher: SpecsRefresher | None, kernels: ServerKernels | None) -> None:
        """Called by tornado with the arguments of the route."""
        self.refresher = refresher
        self.kernels = kernels

    @authenticated
    @authorized("read", JOBS)
    async def get(self) -> None:
        """List."""
        if self.refresher is not None:
            await self.refresher.refresh()
        found = [] if self.kernels is None else self.kernels.listing()
        self.finish(json.dumps({"kernels": found}))
