"""What the roles of one process share: settings, the store, how to end, who to tell that all is ready."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pai_backend.config.engine import NodeSettings
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.engine.providers import EngineProvider, Host, JobOwner, provider
from pai_backend.model.errors import Unavailable
from pai_backend.platform.disk_reserve import DiskReserve
from pai_backend.platform.runtime_files import read_json

if TYPE_CHECKING:
    import socket

    from pai_backend.controller.use_sampler import Sampling
    from pai_backend.engine.local.accounts import SystemAccounts
    from pai_backend.engine.log_place import LogPlace
    from pai_backend.launch.directories import TaskReach
    from pai_backend.model.ids import JobUid
    from pai_backend.model.node import Gpu, Node, Others
    from pai_backend.processes.node_cache import NodeCachingEngine
    from pai_backend.scheduling.config.model import ClusterConfig
    from pai_backend.storage.reach import StorageReach
    from pai_backend.storage.room import FileRoom
    from pai_backend.store.keyring import KeySource
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 10.0


class RoleError(Exception):
    """A role cannot run with this configuration; the message is one line that names the key."""


def key_source(settings: Settings) -> KeySource:
    """Where the keys of what is stored are: in the configuration itself, or in a file."""
    from pai_backend.store.keyring import GivenKeys, KeyFile

    return GivenKeys(settings.secret_keys) if settings.secret_keys else KeyFile(settings.secret_key_path)


@dataclass(frozen=True)
class ProcessLife:
    """How this process came to be: which of several with the same roles it is, and what it inherited."""

    copy: int = 1
    generation: int | None = None
    """Descriptor that keeps the next generation of processes waiting, until it is closed."""
    listener: socket.socket | None = None
    """The gateway's port, where the supervisor has taken it."""


class Components:
    """Things made once a process, when the first role asks; heavy modules are imported only then."""

    def __init__(
        self,
        settings: Settings,
        roles: tuple[ProcessRole, ...],
        version: str,
        stop: asyncio.Event,
        life: ProcessLife | None = None,
    ) -> None:
        self.settings, self.roles, self.version, self.stop = settings, roles, version, stop
        self.life = life or ProcessLife()
        self.hurry = asyncio.Event()
        """Set, some time after ``stop``, when what is still being waited for must be ended."""
        self.engine_root = settings.data_dir / "engine"
        self.reserve = DiskReserve(settings.data_dir, settings.disk_reserve_bytes)
        self.database_trouble = "The database is being opened."
        self.held_by_others: dict[str, Others] = {}
        """By nodes, as the controller of another process has counted it."""
        self._runtime_said: dict[str, tuple[int, dict[str, object] | None]] = {}
        self._store: Store | None = None
        self._engine: NodeCachingEngine | None = None
        self.configured_nodes: list[Node] = []
        self._opening: asyncio.Task[Store] | None = None
        self._holding = set(roles)

    def let_go(self, role: ProcessRole, ready: ReadyLine) -> None:
        """Note that a role, told to end, has given up all that its successor needs: ports, locks, files.

        When all have, the next generation may begin, while logins of this one go on.
        """
        self._holding.discard(role)
        if not self._holding:
            ready.leaving()
            if self.life.generation is not None:
                os.close(self.life.generation)
                self.life = replace(self.life, generation=None)

    def runtime(self, name: str) -> Path:
        """Path of a runtime file."""
        return self.settings.data_dir / "runtime" / name

    def runtime_json(self, name: str) -> dict[str, object] | None:
        """What a runtime file says; read again only when it was replaced, because requests ask for it."""
        path = self.runtime(name)
        try:
            stamp = path.stat().st_mtime_ns
        except OSError:
            return None
        if name not in self._runtime_said or self._runtime_said[name][0] != stamp:
            self._runtime_said[name] = stamp, read_json(path)
        return self._runtime_said[name][1]

    async def store_or_stop(self) -> Store | None:
        """The open store, or None when the process is told to end before the database answers.

        The first call begins to open it, and goes on trying while the database is away.
        Raises RoleError for an invalid URL.
        """
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_store(), name="open-store")
        ending = asyncio.create_task(self.stop.wait())
        await asyncio.wait({self._opening, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        return self._opening.result() if self._opening.done() else None

    @property
    def store_is_open(self) -> bool:
        """Whether the database has answered."""
        return self._opening is not None and self._opening.done()

    async def _open_store(self) -> Store:
        from pai_backend.model.errors import InvalidParameters
        from pai_backend.store.keyring import SecretKeyError
        from pai_backend.store.sql import Store

        try:
            store = self._store = Store(self.settings.database_url, key_source(self.settings), self.reserve)
        except InvalidParameters as error:
            raise RoleError(f"database: {error.message} {error.hint}") from None
        pause = FIRST_RETRY_S
        while True:
            try:
                await store.open()
                return store
            except SecretKeyError as error:
                key = "secret_key" if self.settings.secret_keys else "secret_key_file"
                raise RoleError(f"{key}: {error}") from None
            except Unavailable as error:
                self.database_trouble = f"The database cannot be opened: {error.message}"
                log.warning("%s Trying again in %.1f s.", self.database_trouble, pause)
                await asyncio.sleep(pause)
                pause = min(LONGEST_RETRY_S, 2 * pause)

    def cluster_text(self) -> str:
        """What ``cluster.config`` says, as YAML; empty when it is not given. Raises RoleError."""
        import yaml

        given = self.settings.cluster.config
        if given is None:
            return ""
        try:
            if isinstance(given, Path):
                return given.read_text(encoding="utf-8-sig")
            return yaml.safe_dump(given, sort_keys=False, allow_unicode=True)
        except (OSError, UnicodeDecodeError) as error:
            raise RoleError(f"cluster.config: {given} cannot be read: {error}") from None

    def cluster_config(self) -> ClusterConfig | None:
        """The configuration of cells, None when there is none. Raises RoleError with the first fault of it."""
        from pai_backend.model.errors import DocumentError
        from pai_backend.scheduling.config.read import read_config

        given, text = self.settings.cluster.config, self.cluster_text()
        if given is None:
            return None
        try:
            return read_config(text)
        except DocumentError as error:
            first, more = error.errors[0], len(error.errors) - 1
            where = f"{given}:{first.line}:{first.column}" if isinstance(given, Path) else first.path
            others = f" (and {more} more faults)" if more else ""
            raise RoleError(f"cluster.config: {where}: {first.message}. {first.hint}{others}") from None

    def reach(self) -> StorageReach:
        """The storages as configured, and who may reach what of them."""
        from pai_backend.storage.reach import StorageReach, TeamMount

        storage = self.settings.storage
        return StorageReach(
            default_fs_uri=self.settings.default_fs_uri,
            options={scheme: values.get_secret_value() for scheme, values in storage.options.items()},
            mounts=tuple(TeamMount(mount.name, mount.uri, mount.users) for mount in storage.mounts),
            shared=storage.shared,
            tasks_share_our_rights=self.provider.tasks_run_as_backend(self.settings),
            owners=self.settings.engine.accounts.given,
        )

    def task_reach(self) -> TaskReach:
        """What tasks reach by a path: here all that this machine has, elsewhere directories that all of them have."""
        from pai_backend.launch.directories import TaskReach

        return TaskReach(self.settings.default_fs_uri, self.provider.task_directories(self.settings))

    def files(self) -> FileRoom:
        """The default file system, for the API. The caller closes it."""
        from pai_backend.storage.room import FileRoom, open_files

        storage, reach = self.settings.storage, self.reach()
        return FileRoom(
            files=open_files(reach, self.settings.data_dir / "uploads"),
            shared=storage.shared,
            mounts=reach.mounts,
            max_file_bytes=storage.max_file_bytes,
            quota_bytes=storage.quota_bytes,
            shared_quota_bytes=storage.shared_quota_bytes,
        )

    def engine(self) -> NodeCachingEngine:
        """The engine that is configured. Raises RoleError for keys that it cannot use."""
        if self._engine is None:
            from pai_backend.processes.node_cache import Insight, NodeCachingEngine

            if self.provider.runs_here:
                self.configured_nodes = local_nodes(self.settings.engine.nodes)
            host = Host(self.settings, self.configured_nodes, self.accounts, self.reserve, self._owner_of)
            try:
                engine = self.provider.engine(host)
            except ValueError as error:
                raise RoleError(str(error)) from None
            self._engine = NodeCachingEngine(engine, engine if isinstance(engine, Insight) else None)
        return self._engine

    @cached_property
    def provider(self) -> EngineProvider:
        """The kind of engine that is configured; the settings were refused if there were none."""
        return provider(self.settings.engine.kind)

    @property
    def log_place(self) -> LogPlace:
        """Where logs of tasks are, for this process."""
        from pai_backend.engine.log_place import LogPlace

        return LogPlace(self.provider.logs(self.settings))

    @cached_property
    def sampling(self) -> Sampling:
        """How this process samples what tasks use, if its controller role does."""
        from pai_backend.controller.use_sampler import Sampling
        from pai_backend.engine.use_series import UseSeries

        given = self.settings.metrics
        return Sampling(UseSeries(self.log_place.path), given.sample_s, given.idle_gpus_s)

    @cached_property
    def accounts(self) -> SystemAccounts | None:
        """The accounts that local tasks run as; None where that is the backend's own. Raises RoleError."""
        if not self.settings.engine.accounts.given:
            return None
        from pai_backend.engine.base import EngineError
        from pai_backend.processes.task_accounts import accounts_of

        try:
            return accounts_of(self.settings, self.engine_root)
        except EngineError as error:
            raise RoleError(f"engine.accounts: {error}") from None

    async def open_to_accounts(self) -> None:
        """Before tasks start: let their accounts into what is theirs, and close the rest. Raises RoleError."""
        if (accounts := self.accounts) is None:
            return
        from pai_backend.engine.base import EngineError
        from pai_backend.processes.task_accounts import open_to

        try:
            await asyncio.to_thread(open_to, accounts, self.settings, self.engine_root)
        except EngineError as error:
            raise RoleError(f"engine.accounts: {error}") from None

    async def _owner_of(self, uid: JobUid) -> JobOwner | None:
        """Whose a job is; None for one that is not stored. Raises EngineError while the store is away."""
        from pai_backend.engine.base import EngineError
        from pai_backend.model.errors import NoSuchJob

        try:
            store = await self.store_or_stop()
            job = await store.jobs.get(uid) if store is not None else None
        except NoSuchJob:
            return None
        except Unavailable as error:
            raise EngineError(f"its owner cannot be read now: {error.message}") from None
        return JobOwner(job.user, job.spec.virtual_cluster) if job is not None else None

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._engine is not None:
            await self._engine.aclose()
        if self._store is not None:
            await self._store.aclose()


def local_nodes(configured: Sequence[NodeSettings]) -> list[Node]:
    """The nodes of the local engine; this machine as it is when none are configured."""
    from pai_backend.engine.local.nodes import detect_machine, marked, simulated_node

    nodes = []
    for given in configured:
        if given.simulated:
            kind, count = (given.gpus.type, given.gpus.count) if given.gpus else ("", 0)
            node = simulated_node(given.name, kind, count, given.cpus, given.memory_mb)
        else:
            found = detect_machine()
            wanted = found.gpus if given.gpu_indices is None else _of(found.gpus, given.gpu_indices)
            node = found.model_copy(update={"name": given.name, "gpus": wanted})
        nodes.append(marked(node, given.labels, given.taints, schedulable=given.schedulable))
    return nodes or [marked(detect_machine(), {}, (), schedulable=True)]


def _of(gpus: Sequence[Gpu], indices: Sequence[int]) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in gpus if gpu.index in indices)


class ReadyLine:
    """Tells the reader of a descriptor, once, that every role of this process answers.

    To a supervisor (``supervised``) it says later, on the same descriptor, that the process is leaving.
    """

    def __init__(self, roles: tuple[ProcessRole, ...], descriptor: int | None, *, supervised: bool = False) -> None:
        self._waiting = set(roles)
        self._facts: dict[str, object] = {"pid": os.getpid()}
        self._descriptor, self._supervised = descriptor, supervised

    def role_is_ready(self, role: ProcessRole, **facts: object) -> None:
        """Note that a role answers; after the last one the line is written."""
        self._waiting.discard(role)
        self._facts.update(facts)
        if not self._waiting:
            self._say(self._facts, more=self._supervised)

    def failed(self, reason: str) -> None:
        """Say instead why it never will."""
        self._say({"error": reason})

    def leaving(self) -> None:
        """Say to the supervisor that another process may take this one's place, while this one ends its logins."""
        if self._supervised:
            self._say({"leaving": True})

    def _say(self, facts: dict[str, object], *, more: bool = False) -> None:
        descriptor = self._descriptor
        if descriptor is None:
            return
        try:
            os.write(descriptor, json.dumps(facts).encode() + b"\n")
        except BrokenPipeError:
            log.debug("the reader of the ready line is gone")
        finally:
            if not more:
                self._descriptor = None
                os.close(descriptor)
