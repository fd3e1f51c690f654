"""From a placed task to the plan its engine starts: keys and secrets join the pure plan here."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import UTC, datetime

from pydantic import SecretStr

from pai_backend.access.gateway.names import SSH_LABEL
from pai_backend.access.hostca import certify_host, host_ca_key, names_of_task
from pai_backend.access.inside import peers_line
from pai_backend.access.keys import gateway_public_key, public_line
from pai_backend.access.secrecy import JobSecrets
from pai_backend.controller.image_logins import ImageLogins
from pai_backend.controller.job_records import JobRecords
from pai_backend.controller.task_keys import TaskKeys
from pai_backend.controller.team_storages import with_storages
from pai_backend.engine.base import SshPlan, StartRefused, TaskPlan
from pai_backend.launch.jupyter import TOKEN_VARIABLE
from pai_backend.launch.parts import PartsMemory
from pai_backend.launch.plan import build_plan
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.labels import Toleration
from pai_backend.model.plan import PeerAccess
from pai_backend.model.tags import UnresolvedTag
from pai_backend.storage.reach import Reach
from pai_backend.store.base import Store, slot_of


class Planner:
    """Makes plans; remembers keys of the cluster after the first use, and those of tasks until their first plan."""

    def __init__(
        self,
        store: Store,
        default_fs_uri: str = "",
        reach: Reach | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._clock = clock
        self.secrets = JobSecrets(store)
        self.records = JobRecords(store)
        self._default_fs_uri = default_fs_uri
        self._reach = reach or Reach(default_fs_uri)
        self._logins = ImageLogins(self._reach)
        self._parts = PartsMemory(default_fs_uri)
        self._gateway_key: str | None = None
        self._host_ca: str | None = None
        self._keys = TaskKeys(store)

    async def prepare(self, job: Job, uids: Container[TaskUid]) -> None:
        """Have the keys of these tasks ready. Raises Unavailable; see :class:`TaskKeys`."""
        await self._keys.prepare(job, uids)

    def forget(self, job: Job) -> None:
        """Keep nothing of a job that is done with."""
        self._keys.forget(job)
        self.records.forget(job.uid)

    async def plan(self, job: Job, task: Task, tolerations: tuple[Toleration, ...] = ()) -> TaskPlan:
        """The plan of a placed task; ``tolerations`` are those of tasks that have such a place.

        Raises Unavailable when the store is away, EngineError and StartRefused for what the document names
        elsewhere (authFile, storages) and cannot be had now or at all, StartRefused for a secret that is named
        and not there.
        """
        if self._gateway_key is None:
            self._gateway_key = await gateway_public_key(self._store)
        extra = {TOKEN_VARIABLE: await self.secrets.token(job.uid)}
        values = await self.secrets.values(job)
        try:
            login = await self._logins.of(job, job.spec.role(task.role), values)
            ssh = await self._ssh(job, task)
            plan = build_plan(
                job,
                task,
                ssh=ssh,
                extra_env=extra,
                default_fs_uri=self._default_fs_uri,
                secrets=values,
                parts=self._parts.of(job),
                image_login=login,
            )
        except UnresolvedTag as tag:
            raise StartRefused(f"The document has no value for a tag: {tag}.") from None
        carried = await self.records.made(job, task, ssh)
        more = {"tolerations": tolerations, "database": carried.database}
        more |= {"job_record": carried.job, "task_record": carried.task}
        return with_storages(plan.model_copy(update=more), job, self._reach)

    def job_info(self, job: Job) -> str:
        """What tasks of an incremental job are told anew while they run: the text of their job info file."""
        return self._parts.of(job).info

    async def _ssh(self, job: Job, task: Task) -> SshPlan | None:
        if task.placement is None or self._gateway_key is None:
            return None
        ports = task.placement.ports.get(SSH_LABEL)
        if not ports:
            return None
        keys = await self._keys.of(job, task)
        if self._host_ca is None:
            self._host_ca = await host_ca_key(self._store)
        ca, now, names = self._host_ca, self._clock(), names_of_task(job, task.role, task.index)
        return SshPlan(
            port=ports[0],
            host_key=SecretStr(keys.host),
            host_certificate=certify_host(ca, keys.host, key_id=slot_of(task.uid), principals=names, now=now),
            authorized_keys=(
                self._gateway_key,
                peers_line(keys.peers, job.uid),
            ),
            peers=PeerAccess(key=SecretStr(keys.peers), host_ca=public_line(ca)),
        )
