"""Kernel specs of running jobs for a Jupyter server, beside those of whatever manager it has.

The configured manager is kept and asked first. Ours adds a snapshot, which is refreshed when jobs change, because
``get_all_specs`` may not wait for a backend.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from traitlets import Instance

from jupyter_pai import broker
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import BackendAway, ClientError, NotFound
from jupyter_pai.kernels.specs import PREFIX, is_job_name, spec
from jupyter_pai.streams import decoded

MOST_JOBS = 50
"""Newer ones first; a launcher with more does not help to choose. Others are found by their names."""
PAUSE_S = 30.0
"""How often the list is refreshed without news; shares come without events."""

RESOURCES = str(Path(__file__).parent / "task")
"""A directory without logos: Jupyter's address of a logo does not allow the colon of our names."""


class JobKernelSpecManager(KernelSpecManager):
    """Adds the kernels of running jobs to what ``inner`` has."""

    inner = Instance(KernelSpecManager)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.jobs: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        """Whatever a configured manager has beyond the documented methods."""
        if name.startswith("_") or not self.has_trait("inner"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def find_kernel_specs(self) -> dict[str, str]:
        """All names, with a directory each."""
        return {**{PREFIX + alias: RESOURCES for alias in self.jobs}, **self.inner.find_kernel_specs()}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The spec of that name; any job can be named, also one that waits or is not listed. Raises NoSuchKernel."""
        job = kernel_name.removeprefix(PREFIX)
        try:
            return self.inner.get_kernel_spec(kernel_name)
        except NoSuchKernel:
            if job == kernel_name or not is_job_name(job):
                raise
        return KernelSpec(resource_dir=RESOURCES, name=kernel_name, **self._spec(job))

    def _spec(self, job: str) -> dict[str, Any]:
        return spec(job, self.jobs.get(job, f"Python on {job}"))

    def get_all_specs(self) -> dict[str, Any]:
        """All specs."""
        ours = {PREFIX + alias: {"resource_dir": RESOURCES, "spec": self._spec(alias)} for alias in self.jobs}
        return {**ours, **self.inner.get_all_specs()}

    def remove_kernel_spec(self, name: str) -> str:
        """Remove an installed spec."""
        return self.inner.remove_kernel_spec(name)

    def install_kernel_spec(self, source_dir: str, *args: Any, **kwargs: Any) -> str:
        """Install a spec."""
        return self.inner.install_kernel_spec(source_dir, *args, **kwargs)


def extend(serverapp: Any) -> JobKernelSpecManager | None:
    """Give a server the manager; None where kernels are another server's matter (gateway mode)."""
    inner = serverapp.kernel_spec_manager
    if getattr(getattr(serverapp, "gateway_config", None), "gateway_enabled", False):
        return None
    manager = JobKernelSpecManager(parent=serverapp, inner=inner)
    serverapp.kernel_spec_manager = manager
    serverapp.kernel_manager.kernel_spec_manager = manager
    serverapp.web_app.settings["kernel_spec_manager"] = manager
    return manager


class SpecsRefresher:
    """Keeps the snapshot of running jobs that the user may run commands in."""

    def __init__(self, link: BackendLink, manager: JobKernelSpecManager, log: logging.Logger) -> None:
        self._link = link
        self._manager = manager
        self._log = log
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Refresh at each change until cancelled. Waits while there is no backend, and starts none."""
        while True:
            await self._link.established.wait()
            await self.refresh()
            try:
                async with asyncio.timeout(PAUSE_S):
                    await self.changed.wait()
            except TimeoutError:
                continue

    async def refresh(self) -> None:
        """Ask once; without an answer the list is empty."""
        if not self._link.established.is_set():
            return
        self.changed.clear()
        client = await self._link.client()
        try:
            self._manager.jobs = await _entered(client)
        except BackendAway:
            self._manager.jobs = {}
            self._link.lost(client)
        except ClientError as error:
            self._log.info("Jobs cannot be listed for kernels: %s", error.message)
            self._manager.jobs = {}


async def _entered(client: AsyncClient) -> dict[str, str]:
    """Aliases of running jobs with the names of their kernels: the user's own, and those shared for commands."""
    me = cast(dict[str, str], decoded((await client.request("GET", "/api/v2/users/me")).body))["username"]
    own = await client.jobs(state="RUNNING", username=me, limit=MOST_JOBS)
    found = {job["alias"]: f"Python on {job['name']}" for job in own if job["username"] == me}
    try:
        shares = await broker.shares(client)
    except NotFound:
        shares = []
    for share in shares:
        if not share["only"] or {"shell", "exec"} & set(share["only"]):
            found.setdefault(share["alias"], f"Python on {share['alias']} (shared)")
    return found
