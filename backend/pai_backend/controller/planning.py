"""From a placed task to the plan its engine starts: keys and secrets join the pure plan here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import SecretStr

from pai_backend.access.hostca import certify_host, host_ca_key, names_of_task
from pai_backend.access.inside import peer_key, user_ca_lines
from pai_backend.access.keys import (
    gateway_public_key,
    job_public_key,
    job_rsa_public_key,
    public_line,
    task_host_key,
)
from pai_backend.access.secrecy import JobSecrets
from pai_backend.controller.image_logins import ImageLogins
from pai_backend.controller.team_storages import with_storages
from pai_backend.engine.base import SshPlan, StartRefused, TaskPlan
from pai_backend.launch.jupyter import TOKEN_VARIABLE
from pai_backend.launch.parts import PartsMemory
from pai_backend.launch.plan import build_plan
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.labels import Toleration
from pai_backend.model.plan import PeerAccess
from pai_backend.model.tags import UnresolvedTag
from pai_backend.storage.reach import Reach
from pai_backend.store.base import Store, slot_of

SSH_LABEL = "ssh"
"""The port label every v1 task has implicitly (OpenPAI v1); its SSH server listens on the first one."""

JOB_KEYS = 1000
"""Jobs whose keys are remembered, 700 bytes each; then all are forgotten and asked for again."""


@dataclass(frozen=True)
class _JobKeys:
    """What all tasks of a job let in, and what they log in to each other with."""

    public: tuple[str, ...]
    peers: str
    peers_private: SecretStr


class Planner:
    """Makes plans; remembers keys of the cluster after the first use, and host keys until their first plan."""

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
        self._default_fs_uri = default_fs_uri
        self._reach = reach or Reach(default_fs_uri)
        self._logins = ImageLogins(self._reach)
        self._parts = PartsMemory(default_fs_uri)
        self._gateway_key: str | None = None
        self._host_ca: str | None = None
        self._host_keys: dict[str, asyncio.Task[str]] = {}
        self._job_keys: dict[tuple[JobUid, int], _JobKeys] = {}

    async def prepare(self, job: Job, uids: Container[TaskUid]) -> None:
        """Have the host keys of these tasks ready. Beside the write of their placement, they share its transaction.

        Raises Unavailable when the store is away; the plan asks for the key again then.
        """
        making = {slot: self._host_key(slot) for slot in _slots_with_ssh(job, uids)}
        self._host_keys.update(making)
        runs = {task.attempt for task in job.tasks if task.uid in uids} if making else ()
        try:
            await asyncio.gather(*making.values(), *(self._keys_of(job.uid, run) for run in runs))
        except BaseException:
            for slot in making:
                self._host_keys.pop(slot, None)
            raise

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
            plan = build_plan(
                job,
                task,
                ssh=await self._ssh(job, task),
                extra_env=extra,
                default_fs_uri=self._default_fs_uri,
                secrets=values,
                parts=self._parts.of(job),
                image_login=login,
            )
        except UnresolvedTag as tag:
            raise StartRefused(f"The document has no value for a tag: {tag}.") from None
        return with_storages(plan.model_copy(update={"tolerations": tolerations}), job, self._reach)

    def job_info(self, job: Job) -> str:
        """What tasks of an incremental job are told anew while they run: the text of their job info file."""
        return self._parts.of(job).info

    async def _ssh(self, job: Job, task: Task) -> SshPlan | None:
        if task.placement is None or self._gateway_key is None:
            return None
        ports = task.placement.ports.get(SSH_LABEL)
        if not ports:
            return None
        slot = slot_of(task.uid)
        host_key = await (self._host_keys.pop(slot, None) or self._host_key(slot))
        if self._host_ca is None:
            self._host_ca = await host_ca_key(self._store)
        keys, ca, now = await self._keys_of(job.uid, task.attempt), self._host_ca, self._clock()
        names = names_of_task(job, task.role, task.index)
        users = await user_ca_lines(self._store, job.alias, names[-1], now)
        return SshPlan(
            port=ports[0],
            host_key=SecretStr(host_key),
            host_certificate=certify_host(ca, host_key, key_id=slot, principals=names, now=now),
            authorized_keys=(self._gateway_key, *keys.public, keys.peers, *users),
            peers=PeerAccess(key=keys.peers_private, host_ca=public_line(ca)),
        )

    async def _keys_of(self, uid: JobUid, run: int) -> _JobKeys:
        """The job's own keys; the same for all of its tasks, so they are asked for once.

        Again for each run: the RSA key is made when a user asks for it, and tasks that start later let it in.
        """
        name = uid, run
        if name not in self._job_keys:
            if len(self._job_keys) >= JOB_KEYS:
                self._job_keys.clear()
            public, rsa, private = await asyncio.gather(
                job_public_key(self._store, uid), job_rsa_public_key(self._store, uid), peer_key(self._store, uid)
            )
            own = (public,) if rsa is None else (public, rsa)
            self._job_keys[name] = _JobKeys(own, f"{public_line(private)} pai-peers-{uid}", SecretStr(private))
        return self._job_keys[name]

    def _host_key(self, slot: str) -> asyncio.Task[str]:
        return asyncio.create_task(task_host_key(self._store, slot))


def _slots_with_ssh(job: Job, uids: Container[TaskUid]) -> list[str]:
    """Slots of those of the tasks whose role has a port for SSH."""
    having = {role.name for role in job.spec.task_roles if any(port.label == SSH_LABEL for port in role.ports)}
    return [slot_of(task.uid) for task in job.tasks if task.uid in uids and task.role in having]
