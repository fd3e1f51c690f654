"""The command lines that Podman is called with. Pure.

Source: podman-run(1), podman-pull(1), podman-network-create(1) of 4.3.1 and 5.4.2; the specification of CDI.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.engine.base import StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.bundle.registry_login import full_reference
from pai_backend.engine.local.shim import container_folder as folder
from pai_backend.model.container_settings import ContainerMount, ContainerSettings
from pai_backend.model.ids import TaskUid
from pai_backend.model.plan import TaskPlan

LABEL: Final = "jupyter-pai.root"
"""Of containers and networks: the directory of the engine that they belong to."""
_PLAIN_NAME = re.compile(r"[\w.@+-]+")
INFINIBAND: Final = "infiniband"
STAGING: Final = "pai_backend.engine.kubernetes.stage_inputs"
"""The program that fetches inputs in containers, of pods too."""
COMPILED: Final = "compiled"
"""Below the root: what Python compiles of that program, which may not write where it is installed."""
_COMPILED_AT: Final = "/pai/compiled"
NO_DEVICES: Final = "none"
"""Keeps hooks of container runtimes from giving a task the GPUs that its image asks for in a variable."""


@dataclass(frozen=True)
class TaskPlaces:
    """Where on the machine the things lie that a task's container has; absolute paths."""

    runtime: str
    work: str
    folder: str
    """``layout.CONTAINER`` of its directory."""


@dataclass(frozen=True)
class PythonPlaces:
    """A Python of the machine with the backend, and the directories that it needs."""

    executable: str
    directories: Sequence[str]


@dataclass(frozen=True)
class TaskAddress:
    """A task's place in the network of its job."""

    network: str
    address: str


@dataclass(frozen=True)
class TaskBounds:
    """What the container is held to; 0: no limit.

    ``files`` may be open in a process, ``threads`` is what its account may have: as setrlimit(2) takes them, -1 is any.
    """

    memory_mb: int
    cpus: int
    processes: int
    files: int
    threads: int


def prefix(root: str) -> str:
    """What names of the engine with this directory begin with, and those of no other on the machine."""
    return f"pai-{hashlib.sha256(root.encode()).hexdigest()[:8]}-"


def container_name(root: str, uid: TaskUid) -> str:
    """The name of a task's container."""
    return f"{prefix(root)}{uid}"


def network_name(root: str, number: int) -> str:
    """The name of one of its networks, which one job after the other has."""
    return f"{prefix(root)}{number}"


def run_words(
    plan: TaskPlan,
    settings: ContainerSettings,
    root: str,
    places: TaskPlaces,
    address: TaskAddress,
    bounds: TaskBounds,
) -> list[str]:
    """What starts a task's container and returns once it runs; it then has the caller's standard output and error.

    Nothing secret is among the words, since every user of the machine can read them. Raises StartRefused.
    """
    if plan.infiniband and not any(INFINIBAND in word for word in settings.arguments):
        raise StartRefused(
            "its role asks for InfiniBand, which no argument of containers gives; leave it out, or ask the "
            f"administrator to add --device=/dev/{INFINIBAND} to containers.arguments"
        )
    words = [settings.podman, "run", "--detach", "--log-driver=passthrough", "--pull=never"]
    words += [
        f"--name={container_name(root, plan.uid)}",
        f"--label={LABEL}={root}",
        f"--cidfile={places.folder}/{folder.ID}",
    ]
    words += [f"--conmon-pidfile={places.folder}/{folder.CONMON}", f"--pidfile={places.folder}/{folder.INIT}"]
    words += [f"--network={address.network}:ip={address.address}", f"--hostname={host_name(plan.role, plan.index)}"]
    words += [f"--workdir={layout.WORK}", f"--entrypoint={json.dumps([layout.LAUNCHER])}", "--stop-signal=TERM"]
    words += _bounds(plan, bounds)
    words += [f"--env={name}={value}" for name, value in _variables(plan, address).items()]
    words += [f"--device={name}" for name in devices(plan)]
    words += [f"--volume={volume}" for volume in _volumes(plan, settings, places)]
    return [*words, *settings.arguments, "--", full_reference(plan.image)]


def _bounds(plan: TaskPlan, bounds: TaskBounds) -> Iterator[str]:
    yield f"--shm-size={max(plan.shm_mb, 1)}m"
    if bounds.memory_mb:
        # Without swap: else a task would go on in it, beyond what it was given.
        yield from (f"--memory={bounds.memory_mb}m", f"--memory-swap={bounds.memory_mb}m")
    if bounds.cpus:
        yield f"--cpus={bounds.cpus}"
    yield f"--pids-limit={bounds.processes or -1}"
    yield from limit_words(bounds.files, bounds.threads)


def limit_words(files: int, threads: int) -> list[str]:
    """Both limits as this process may give them: Podman's own may be above, which needs CAP_SYS_RESOURCE."""
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={threads}:{threads}"]


def _variables(plan: TaskPlan, address: TaskAddress) -> Mapping[str, str]:
    found = {"PAI_POD_IP": address.address, "PAI_NODE_NAME": plan.placement.node, layout.MARK: plan.uid}
    # By its devices a container has the GPUs of CDI; some images name all in this variable, for other runtimes.
    return {**found, "NVIDIA_VISIBLE_DEVICES": NO_DEVICES}


def devices(plan: TaskPlan) -> list[str]:
    """The CDI names of a task's GPUs, as ``nvidia-ctk cdi generate`` gives them; simulated GPUs have no name."""
    real = plan.placement.gpus if not plan.placement.simulated_gpu else ()
    return [f"nvidia.com/gpu={index}" for index in real]


def _volumes(plan: TaskPlan, settings: ContainerSettings, places: TaskPlaces) -> Iterator[str]:
    yield f"{places.runtime}:{layout.RUNTIME}:ro"
    yield f"{places.folder}/{folder.PLAN}:{layout.PLAN}:ro"
    yield f"{places.folder}/{folder.JOB}:{layout.JOB}:ro"
    yield f"{places.folder}/{folder.STATE}:{layout.STATE}"
    yield f"{places.work}:{layout.WORK}"
    yield f"{places.folder}/{folder.RECORD}:{layout.TERMINATION_LOG}"
    if has_peers(plan):
        yield f"{places.folder}/{folder.STATE}/{layout.HOSTS_FILE}:/etc/hosts"
    yield from _given(plan, settings)


def _given(plan: TaskPlan, settings: ContainerSettings) -> Iterator[str]:
    """Directories of the machine that a task has."""
    for mount in settings.mounts:
        yield f"{_source(mount, plan.user)}:{mount.place}{':ro' if mount.read_only else ''}"
    for storage in plan.storages:
        if storage.uri.startswith("/"):
            yield f"{storage.uri}:{storage.mount_path}"


def _source(mount: ContainerMount, user: str) -> str:
    if "{user}" not in mount.source:
        return mount.source
    if not _PLAIN_NAME.fullmatch(user) or user.strip(".") == "":
        raise StartRefused(f"{mount.source} has no place for the user {user!r}: a directory cannot have that name")
    return mount.source.replace("{user}", user)


def has_peers(plan: TaskPlan) -> bool:
    """Whether its job has other tasks, which its launcher keeps in /etc/hosts."""
    return plan.job_tasks > 1


def pull_words(plan: TaskPlan, settings: ContainerSettings, places: TaskPlaces) -> list[str]:
    """What fetches a task's image."""
    login = [f"--authfile={places.folder}/{folder.LOGIN}"] if plan.image_login is not None else []
    # With its transport: a document must not name a file of the machine, as "docker-archive:/srv/others.tar" would.
    return [settings.podman, "pull", *login, "--", f"docker://{full_reference(plan.image)}"]


def is_here_words(plan: TaskPlan) -> list[str]:
    """What succeeds where a task's image need not be fetched. Without the program."""
    return ["image", "exists", "--", full_reference(plan.image)]


def stage_words(
    plan: TaskPlan,
    settings: ContainerSettings,
    root: str,
    places: TaskPlaces,
    address: TaskAddress,
    limits: Sequence[str],
    python: PythonPlaces,
) -> list[str]:
    """What fetches a task's inputs, with the rights of the task: it sees the directories that the task will see.

    Its root is an empty directory, with the programs of the machine that run it, read-only.
    """
    name = f"{container_name(root, plan.uid)}-inputs"
    words = [settings.podman, "run", "--rm", "--replace", "--log-driver=passthrough", f"--name={name}"]
    words += [f"--label={LABEL}={root}", f"--network={address.network}:ip={address.address}", *limits]
    words += [f"--workdir={layout.WORK}", "--env=HOME=/", f"--env={layout.MARK}={plan.uid}"]
    own = [f"{places.folder}/{folder.PLAN}:{layout.PLAN}:ro", f"{places.work}:{layout.WORK}"]
    own.append(f"{root}/{COMPILED}:{_COMPILED_AT}")
    programs = [f"{directory}:{directory}:ro" for directory in python.directories]
    words += [f"--volume={volume}" for volume in (*own, *_given(plan, settings), *programs)]
    program = [python.executable, "-X", f"pycache_prefix={_COMPILED_AT}", "-E", "-P", "-m", STAGING, layout.PLAN]
    return [*words, "--rootfs", "--", f"{places.folder}/{folder.STAGE_ROOT}", *program]


def remove_words(container: str) -> list[str]:
    """What removes a task's container, whatever it does; no-op when there is none. Without the program.

    ``container`` is the file with its identity, since another backend on the machine may have one of the same name.
    """
    return ["rm", "--force", "--ignore", "--time=0", f"--cidfile={container}"]


def network_words(root: str, number: int, subnet: str) -> list[str]:
    """What makes a network; isolated ones reach no other isolated one. Without the program."""
    own = [f"--label={LABEL}={root}", f"--subnet={subnet}", network_name(root, number)]
    return ["network", "create", "--opt=isolate=true", "--disable-dns", *own]
