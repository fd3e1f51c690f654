"""The provisioner ``pai`` of ``jupyter_client``: a kernel of it runs in a task of a job.

A kernel spec names it in ``metadata.kernel_provisioner``, with the job in its ``config``. Nothing of this machine's
environment goes into the task: only variables of the kernel spec do.
"""

from __future__ import annotations

import asyncio
import signal
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Unicode

from jupyter_pai.errors import ClientError
from jupyter_pai.kernels.remote import CHANNELS, KernelFailed, KernelPlace, RemoteKernel, new_place, remove_leftovers
from jupyter_pai.kernels.route import end_made_job

if TYPE_CHECKING:
    from jupyter_client.connect import KernelConnectionInfo

    from jupyter_pai.kernels.records import KernelRecords

PROVISIONER = "pai"
"""The name of the entry point."""

NAMED_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
LONELY_S = 24 * 3600.0
"""How long a kernel lives without its client that no Jupyter server will attach to again."""
SHUTDOWN_WAIT_S = 20.0
"""A polite end takes a way to the task and back, on a connection that may have to be made again."""
SESSION_NAME = "JPY_SESSION_NAME"


class JobProvisioner(KernelProvisionerBase):
    """Starts, signals and ends a kernel in the job ``job`` (a name, an alias, or a task's alias)."""

    job = Unicode(help="The job, or an alias of one of its tasks.")
    python = Unicode("", help="The program in the task; default: python3 of its PATH.")

    records: ClassVar[KernelRecords | None] = None
    """What a Jupyter server knows of its kernels after a restart. It sets this; a kernel that is noted lives on."""

    live: ClassVar[weakref.WeakSet[JobProvisioner]] = weakref.WeakSet()
    """All of this process."""

    remote: RemoteKernel | None = None

    @property
    def has_process(self) -> bool:
        """Whether there is a kernel, as far as is known."""
        return self.remote is not None

    async def poll(self) -> int | None:
        """The exit status; None while the kernel runs, and while the network is away and it is thought to."""
        if self.remote is None:
            return 0
        if self.remote.reason and self.records is not None:
            return None  # the server says so itself: a restarter would try to start it again and again
        return self.remote.status

    async def wait(self) -> int | None:
        """Wait until the kernel has ended."""
        if self.remote is None:
            return 0
        await self.remote.run(self.remote.wait())
        return self.remote.status

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process group in the task."""
        if signum != 0 and self.remote is not None and self.remote.status is None:
            await self._quietly(self.remote.run(self.remote.signal(signum)))

    async def kill(self, restart: bool = False) -> None:
        """End the kernel at once."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Ask the kernel to end."""
        await self.send_signal(signal.SIGTERM)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """As the base class. The command is the task's matter."""
        kwargs.pop("extra_arguments", None)
        session_name = (kwargs.get("env") or {}).get(SESSION_NAME)
        kwargs = await super().pre_launch(cmd=[], **kwargs)
        variables = dict(self.kernel_spec.env)
        if session_name:
            variables[SESSION_NAME] = Path(session_name).name
        kwargs["env"] = variables
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel in the task. Raises KernelFailed."""
        if self.remote is not None and self.remote.reason:
            raise KernelFailed(self.remote.reason)  # a restart of what cannot come back
        if self.remote is None:
            await self._reach(new_place(self.job), new=True)
        remote = self.remote
        assert remote is not None
        info = self.connection()
        try:
            await remote.run(remote.start(self._task_connection(info), kwargs["env"]))
        except BaseException:
            await self.cleanup()
            raise
        self.connection_info = info
        if self.records is not None and self.kernel_id:
            local = str(Path(remote.ip).parent)
            self.records.note(self.kernel_id, self._manager.kernel_name, remote.place, info, local)
        return info

    async def _reach(self, place: KernelPlace, *, new: bool) -> None:
        keep_s = LONELY_S if self.records is None else None
        remote = RemoteKernel(place, self.log, keep_s=keep_s, python=self.python)
        self.remote = remote
        self.live.add(self)
        try:
            await remote.run(remote.open(new=new))
        except BaseException:
            self.remote = None
            remote.end()
            raise

    def description(self) -> dict[str, str]:
        """How the kernel stands, for the panel."""
        assert self.remote is not None
        reason = self.remote.waiting or self.remote.died
        return {"id": self.kernel_id or "", "job": self.job, "state": self.remote.state, "reason": reason}

    async def attach(self, place: KernelPlace, key: str) -> KernelConnectionInfo:
        """Take a kernel that runs already, with the key of its messages. Whether it still does is seen later."""
        self._session.key = key.encode()
        await self._reach(place, new=False)  # which waits for no connection
        self.connection_info = self.connection()
        return self.connection_info

    def connection(self) -> KernelConnectionInfo:
        """What clients here connect to."""
        assert self.remote is not None
        ports: dict[str, Any] = {f"{name}_port": number for number, name in enumerate(NAMED_CHANNELS, 1)}
        assert len(ports) == CHANNELS
        info = {
            **ports,
            "transport": "ipc",
            "ip": self.remote.ip,
            "key": self._session.key,
            "signature_scheme": self._session.signature_scheme,
            "kernel_name": self.kernel_spec.name,
        }
        return cast("KernelConnectionInfo", info)

    @property
    def _session(self) -> Any:
        """What signs messages."""
        return self._manager.session

    @property
    def _manager(self) -> Any:
        assert self.parent is not None
        return self.parent

    def _task_connection(self, info: KernelConnectionInfo) -> dict[str, Any]:
        """What the kernel reads; the holder puts its own directory in."""
        key = info["key"]
        return {**info, "key": key.decode() if isinstance(key, bytes) else key}

    async def cleanup(self, restart: bool = False) -> None:
        """End the holder, unless the kernel is to be started again."""
        remote = self.remote
        if restart or remote is None:
            return
        self.remote = None
        if self.records is not None and self.kernel_id:
            self.records.forget(self.kernel_id)
        reached = await self._quietly(remote.run(remote.quit()))
        if not reached:
            self.log.warning("Kernel in job %s was not reached to end it. It ends with its task.", remote.place.job)
        if not any(
            other.remote is not None and other.remote.place.job == remote.place.job for other in list(self.live)
        ):
            await self._end_made_job(remote.place.job)
        await self._let_go(remote)

    async def _end_made_job(self, uid: str) -> None:
        """A job that was made for this kernel has no other use."""
        try:
            if await asyncio.to_thread(end_made_job, uid):
                self.log.info("Job %s was made for its kernel and is stopped.", uid)
        except ClientError as error:
            self.log.warning("Whether job %s was made for its kernel is not known: %s", uid, error.message)

    async def leave(self) -> None:
        """Give the kernel up without ending it."""
        remote, self.remote = self.remote, None
        if remote is not None:
            await self._let_go(remote)

    async def _let_go(self, remote: RemoteKernel) -> None:
        await remote.run(remote.close())
        remote.end()
        remove_leftovers(Path(remote.ip).parent)

    async def _quietly(self, work: Any) -> Any:
        """The result, or None when the kernel is gone already."""
        try:
            return await work
        except KernelFailed as error:
            self.log.info("%s", error)
            return None

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """How long a polite end may take."""
        return max(recommended, SHUTDOWN_WAIT_S)
