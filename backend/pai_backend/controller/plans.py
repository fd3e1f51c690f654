"""From a placed task to the plan its engine starts: keys, secrets and logins join the pure plan here.

Credentials for a private image are in a v1 document's authFile, or in a v2 document with its secrets put in. An
authFile is read beside the loop and shared by the tasks of its job. A plan waits only a moment for it and is put off
then, so that a storage which hangs holds up only its own job.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from pydantic import SecretStr

from pai_backend.access.gateway.names import SSH_LABEL
from pai_backend.access.hostca import certify_host, host_ca_key, names_of_task
from pai_backend.access.inside import peers_line
from pai_backend.access.keys import gateway_public_key, make_ed25519, public_line
from pai_backend.access.secrecy import JobSecrets
from pai_backend.controller.orphans import JobRecords
from pai_backend.engine.base import EngineError, SshPlan, StartRefused, TaskPlan
from pai_backend.launch.directories import directories
from pai_backend.launch.job_info import PartsMemory
from pai_backend.launch.jupyter import TOKEN_VARIABLE
from pai_backend.launch.plan import build_plan
from pai_backend.launch.service_addresses import ServiceSite
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.ids import JobUid, TaskUid, slot_of
from pai_backend.model.job import Job, Task
from pai_backend.model.labels import Toleration
from pai_backend.model.plan import PeerAccess, RegistryLogin, TeamStorage
from pai_backend.model.spec import ImageAuth, TaskRole
from pai_backend.model.tags import UnresolvedTag, fill
from pai_backend.storage.faults import Away, StorageFault
from pai_backend.storage.reach import StorageReach, TeamMount
from pai_backend.store.base import peer_key_slot
from pai_backend.store.sql import Store

MAX_BYTES = 4096  # three short lines
READ_TIMEOUT_S = 20.0
MOMENT_S = 1.0  # that a plan waits for it before it is put off
KEPT_S = 60.0  # for the other tasks of the job; a retry after that reads again, so that a corrected file is seen
AT_ONCE = 4  # readers are processes


class ImageLogins:
    """Logins of jobs, read when asked for. ``clock`` is monotonic, in seconds."""

    def __init__(self, reach: StorageReach, clock: Callable[[], float] = monotonic) -> None:
        self._reach = reach
        self._clock = clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reading: dict[JobUid, asyncio.Task[RegistryLogin]] = {}
        self._since: dict[JobUid, float] = {}

    async def of(self, job: Job, role: TaskRole, secrets: Mapping[str, Any]) -> RegistryLogin | None:
        """The login for the image of a role; None when its document names none.

        Raises StartRefused when there can be none as things are, EngineError when a later try may succeed.
        """
        if role.image_auth is not None:
            return _filled(role.image_auth, secrets)
        if not job.spec.auth_file:
            return None
        reading = self._begin(job)
        done, _ = await asyncio.wait({reading}, timeout=MOMENT_S)
        if not done:
            raise EngineError("the authFile is still being read")
        if reading.exception() is not None:
            self._forget(job.uid)
        try:
            return reading.result()
        except StorageFault as fault:
            kind = EngineError if isinstance(fault, Away) else StartRefused
            raise kind(f"authFile: {fault.line()}") from None

    def _begin(self, job: Job) -> asyncio.Task[RegistryLogin]:
        """The one reading of this job that is under way or fresh."""
        now = self._clock()
        for uid in [uid for uid, since in self._since.items() if now - since > KEPT_S and self._reading[uid].done()]:
            self._forget(uid)
        if job.uid not in self._reading:
            self._reading[job.uid] = asyncio.create_task(self._read(job))
            self._since[job.uid] = now
        return self._reading[job.uid]

    def _forget(self, uid: JobUid) -> None:
        """Let a later plan read again. Retrieves the error of an abandoned read, so that asyncio does not log it."""
        self._since.pop(uid, None)
        reading = self._reading.pop(uid, None)
        if reading is not None and not reading.cancelled():
            reading.exception()

    async def _read(self, job: Job) -> RegistryLogin:
        uri = directories(job, self._reach.default_fs_uri).auth_file
        async with self._slots:
            text = await self._reach.small_file(uri, job.user, MAX_BYTES, READ_TIMEOUT_S)
        return parse_auth_file(text)

    async def aclose(self) -> None:
        """Give up what is being read."""
        for reading in self._reading.values():
            reading.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)
        self._reading.clear()
        self._since.clear()


def parse_auth_file(text: bytes) -> RegistryLogin:
    """Registry, user and password, a line each (OpenPAI v1). Raises StorageFault, which quotes nothing of it."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise StorageFault("the file is not UTF-8 text", "write three lines: registry, user, password") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != 3 or not all(line.strip() for line in lines):
        raise StorageFault(f"the file has {len(lines)} lines", "write three: registry (docker.io), user, password")
    return RegistryLogin(registry_uri=lines[0].strip(), username=lines[1].strip(), password=SecretStr(lines[2]))


def _filled(auth: ImageAuth, secrets: Mapping[str, Any]) -> RegistryLogin:
    try:
        username, password, registry = (
            fill(text, "secrets", secrets) for text in (auth.username, auth.password, auth.registry_uri)
        )
    except UnresolvedTag as unresolved:
        raise StartRefused(f"auth of the image: {unresolved}") from None
    return RegistryLogin(username=username, password=SecretStr(password), registry_uri=registry)


class Planner:
    """Makes plans; remembers keys of the cluster after the first use, and those of tasks until their first plan."""

    def __init__(
        self,
        store: Store,
        default_fs_uri: str = "",
        reach: StorageReach | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        services: ServiceSite | None = None,
    ) -> None:
        self._store = store
        self._services = services
        self._clock = clock
        self.secrets = JobSecrets(store)
        self.records = JobRecords(store)
        self._default_fs_uri = default_fs_uri
        self._reach = reach or StorageReach(default_fs_uri)
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
        elsewhere (authFile, storages) and is unavailable now or for good, StartRefused for a secret that is named
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
                services=self._services,
            )
        except UnresolvedTag as tag:
            raise StartRefused(f"The document has no value for a tag: {tag}.") from None
        carried = await self.records.made(job, task, ssh)
        more = {"tolerations": tolerations, "database": carried.database}
        more |= {"job_record": carried.job, "task_record": carried.task}
        return with_storages(plan.model_copy(update=more), job, self._reach)

    def job_info(self, job: Job) -> str:
        """The text of the job info file, which is sent again to running tasks of an incremental job."""
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


FOLDER = "mnt"
"""Where a local task has links to them, in its working directory; v2 documents say ``/mnt/<name>``."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")


def with_storages(plan: TaskPlan, job: Job, reach: StorageReach) -> TaskPlan:
    """The plan with the storages of its job, and a variable ``PAI_STORAGE_<name>`` for each.

    Raises StartRefused for one that is no longer there or no longer granted, and when an input of the task has
    the name of the directory that the links are in.
    """
    if not job.spec.storages:
        return plan
    mounts = {mount.name: mount for mount in reach.mounts if mount.granted_to(job.user)}
    if any(item.name == FOLDER for item in plan.inputs):
        raise StartRefused(f"codeDir is called {FOLDER!r}, as the directory of team storages is; rename it")
    env, storages = dict(plan.env), []
    for wanted in job.spec.storages:
        mount = mounts.get(wanted.name)
        if mount is None:
            raise StartRefused(f"there is no storage {wanted.name!r} for {job.user}; ask the administrator")
        storages.append(TeamStorage(name=mount.name, uri=mount.uri, mount_path=wanted.mount_path))
        env[variable(mount)] = mount.uri
    return plan.model_copy(update={"env": env, "storages": tuple(storages)})


def variable(mount: TeamMount) -> str:
    """The environment variable that names a storage; a shell can read it."""
    return f"PAI_STORAGE_{_NOT_A_NAME.sub('_', mount.name)}"


MANY = 50
"""Keys that are made in a thread: each takes a tenth of a millisecond."""


@dataclass(frozen=True)
class Keys:
    """What a task's server shows, and what the task logs in to its peers with (private PEMs)."""

    host: str
    peers: str


class TaskKeys:
    """Remembers keys from :meth:`prepare` until their first plan; asks the store for others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._coming: dict[str, asyncio.Task[Mapping[str, str]]] = {}

    async def prepare(self, job: Job, uids: Container[TaskUid]) -> None:
        """Have the keys of these tasks ready. Beside the write of their placement, they share its transaction.

        Raises Unavailable when the store is away; the plan asks again then.
        """
        tasks = [task for task in job.tasks if task.uid in uids and _has_ssh(job, task)]
        if not tasks:
            return
        slots = [slot_of(task.uid) for task in tasks]
        first = not any(task.attempt for task in tasks)
        self._coming |= dict.fromkeys(slots, coming := asyncio.create_task(self._kept(job.uid, slots, first=first)))
        try:
            await coming
        except ReadOnlyJob:
            self._drop(slots)  # it was stopped meanwhile: nothing starts
        except BaseException:
            self._drop(slots)
            raise

    def forget(self, job: Job) -> None:
        """Keep no keys of a job that is done with: tasks that were stopped before their first plan have left some."""
        self._drop([slot_of(task.uid) for task in job.tasks])

    def _drop(self, slots: Sequence[str]) -> None:
        for slot in slots:
            self._coming.pop(slot, None)

    async def of(self, job: Job, task: Task) -> Keys:
        """The keys of a task: of its slot, kept over attempts, and of its job. Raises Unavailable, ReadOnlyJob."""
        slot = slot_of(task.uid)
        coming = self._coming.pop(slot, None)
        found = await coming if coming is not None else await self._kept(job.uid, [slot])
        return Keys(found[slot], found[peer_key_slot(job.uid)])

    async def _kept(self, uid: JobUid, slots: Sequence[str], *, first: bool = False) -> Mapping[str, str]:
        """Keys of these slots and of their job, by slot; missing ones are made. A ``first`` run has none stored."""
        wanted = [*slots, peer_key_slot(uid)]
        found = {} if first else await self._store.task_keys.kept(wanted)
        missing = [name for name in wanted if name not in found]
        if not missing:
            return found
        made = await asyncio.to_thread(_made, missing) if len(missing) > MANY else _made(missing)
        return found | await self._store.task_keys.keep(made)


def _made(names: Collection[str]) -> dict[str, tuple[str, str]]:
    return {name: make_ed25519(name) for name in names}


def _has_ssh(job: Job, task: Task) -> bool:
    return any(port.label == SSH_LABEL for port in job.spec.role(task.role).ports)
