"""Kernels in jobs that outlive their Jupyter server: taken up again at its start, with the sessions that use them.

This is the one place that uses what ``jupyter_client`` and ``jupyter_server`` do not document (ADR 0032): there is no
documented way to give a manager a kernel that runs already. Where a release has changed, :func:`is_supported` is false;
then kernels in jobs end with the server, as local ones do.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.restarter import KernelRestarter
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyter_server.services.sessions.sessionmanager import SessionManager

from jupyter_pai.kernels.provisioner import JobProvisioner
from jupyter_pai.kernels.records import KernelRecord, KernelRecords
from jupyter_pai.kernels.remote import remove_leftovers

LOOK_S = 1.0
MOST_ENDED = 100


def is_supported(kernel_manager: Any) -> bool:
    """Whether a manager has what adopting a kernel needs."""
    needed = ("_handle_kernel_died", "start_watching_activity", "stop_watching_activity", "pre_start_kernel")
    return (
        isinstance(kernel_manager, AsyncMappingKernelManager)
        and all(hasattr(kernel_manager, name) for name in (*needed, "_kernels", "_kernel_connections", "_kernel_ports"))
        and all(hasattr(KernelManager, name) for name in ("_close_control_socket", "_launch_args", "_restarter"))
        and hasattr(KernelRestarter, "_fire_callbacks")
        and {"session_id", "path", "name", "type", "kernel_id"}
        <= set(inspect.signature(SessionManager.save_session).parameters)
    )


class ServerKernels:
    """The kernels of one server that run in jobs."""

    def __init__(self, serverapp: Any, records: KernelRecords, log: logging.Logger) -> None:
        self._manager = serverapp.kernel_manager
        self._sessions = serverapp.session_manager
        self._records = records
        self._log = log
        self.ended: dict[str, str] = {}
        JobProvisioner.records = records

    def _ours(self) -> dict[str, tuple[Any, JobProvisioner]]:
        found = {}
        for kernel_id in self._manager.list_kernel_ids():
            manager = self._manager.get_kernel(kernel_id)
            if isinstance(manager.provisioner, JobProvisioner):
                found[kernel_id] = (manager, manager.provisioner)
        return found

    def listing(self) -> list[dict[str, str]]:
        """Kernels in jobs, those that wait for their job as well, and the last that have ended, with the reason."""
        found = [
            provisioner.description() for provisioner in list(JobProvisioner.live) if provisioner.remote is not None
        ]
        return found + [{"id": kernel, "state": "ended", "reason": why} for kernel, why in self.ended.items()]

    async def adopt(self) -> None:
        """Take up the kernels that an earlier run of this server has left."""
        for record in list(self._records):
            try:
                await self._adopt(record)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with one, the server and the others start
                self._log.warning("Kernel %s in job %s is not taken up: %r", record.kernel_id, record.place.job, error)

    async def _adopt(self, record: KernelRecord) -> None:
        remove_leftovers(Path(record.local))
        manager, _, kernel_id = self._manager.pre_start_kernel(record.kernel_name, {"kernel_id": record.kernel_id})
        manager.kernel_id = kernel_id
        factory = KernelProvisionerFactory.instance(parent=self._manager)
        provisioner = factory.create_provisioner_instance(kernel_id, manager.kernel_spec, parent=manager)
        assert isinstance(provisioner, JobProvisioner)
        manager.provisioner = provisioner
        manager.load_connection_info(await provisioner.attach(record.place, record.key))
        manager._launch_args = {}
        manager._attempted_start = True
        manager.ready.set_result(None)
        self._manager._kernels[kernel_id] = manager
        self._manager._kernel_connections[kernel_id] = 0
        self._manager._kernel_ports[kernel_id] = manager.ports
        manager.execution_state = "starting"
        manager.reason = ""
        manager.last_activity = datetime.now(UTC)
        self._manager.start_watching_activity(kernel_id)
        died = self._manager._handle_kernel_died
        manager.start_restarter()
        self._manager.add_restart_callback(kernel_id, lambda: died(kernel_id), "dead")
        for session in record.sessions:
            if not await self._sessions.session_exists(session["path"]):
                await self._sessions.save_session(**session, kernel_id=kernel_id)
        self._log.info("Kernel %s in job %s is taken up again.", kernel_id, record.place.job)

    async def watch(self) -> None:
        """Note which documents use the kernels, and say of one whose job has ended that it is dead, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            ours = self._ours()
            if not ours:
                continue
            rows = await self._sessions.list_sessions()
            for kernel_id, (manager, provisioner) in ours.items():
                self._records.note_sessions(kernel_id, [_row(row) for row in rows if row["kernel"]["id"] == kernel_id])
                if provisioner.remote is not None and provisioner.remote.reason:
                    await self._bury(kernel_id, manager, provisioner)

    async def _bury(self, kernel_id: str, manager: Any, provisioner: JobProvisioner) -> None:
        """A kernel that no restart can bring back: tell its clients at once, and restart nothing."""
        assert provisioner.remote is not None
        self.ended[kernel_id] = provisioner.remote.reason
        while len(self.ended) > MOST_ENDED:
            del self.ended[next(iter(self.ended))]
        manager.stop_restarter()
        if manager._restarter is not None:
            manager._restarter._fire_callbacks("dead")
        self._records.forget(kernel_id)
        await provisioner.leave()

    async def leave(self) -> None:
        """Let the kernels live on without this server, which ends."""
        for kernel_id, (manager, provisioner) in self._ours().items():
            self._manager.stop_watching_activity(kernel_id)
            manager.stop_restarter()
            manager._close_control_socket()
            self._manager.remove_kernel(kernel_id)
            await provisioner.leave()
        JobProvisioner.records = None
        self._records.close()


def _row(session: dict[str, Any]) -> dict[str, str]:
    """What the server's table has of a session."""
    return {
        "session_id": session["id"],
        "path": session["path"],
        "name": session["name"],
        "type": session["type"],
    }
