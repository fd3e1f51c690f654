"""The directory of a task that runs in a container: the local engine's, with what the container is made of."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pai_backend
from pai_backend.engine.bundle import layout as task_layout
from pai_backend.engine.bundle.plan_files import compressed, plan_files, remote_outputs, stage_text
from pai_backend.engine.bundle.registry_login import docker_config
from pai_backend.engine.containers import podman
from pai_backend.engine.containers.podman import PythonPlaces, TaskAddress, TaskBounds, TaskPlaces
from pai_backend.engine.containers.programs import own_limits, podman_environment
from pai_backend.engine.local import layout
from pai_backend.engine.local.builder import Draft
from pai_backend.engine.local.shim import container_folder as folder
from pai_backend.engine.local.shim.command import Launch
from pai_backend.model.container_settings import ContainerSettings
from pai_backend.model.plan import TaskPlan

HOSTS_WAIT_S: Final = 30.0
"""How long a command waits for the addresses of its peers, all of which are started at about the same time."""
COMPLETE: Final = "# complete\n"
"""Last line of a hosts file that has all tasks which are placed: the launcher waits for it."""
SYSTEM: Final = (
    *("/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share"),
    *("/usr/local/bin", "/usr/local/lib", "/etc/ssl/certs"),
)
"""What programs of the machine are made of."""
OPEN, READABLE = 0o777, 0o444  # whatever user the image has; the task's directory itself is the backend's alone


def build_contained_task(
    directory: Path,
    plan: TaskPlan,
    log_bytes: int,
    settings: ContainerSettings,
    runtime: Path,
    address: TaskAddress,
    hosts: str,
    bounds: TaskBounds,
    *,
    pulls: bool,
) -> None:
    """Make the directory of a new task; no-op when it is there already.

    ``hosts`` are the lines of its peers; ``pulls``: whether its image is fetched first. Raises OSError when the disk
    refuses, ValueError or StartRefused when the plan can never be executed.
    """
    root = str(directory.parent.parent)
    places = TaskPlaces(str(runtime), str(directory / layout.WORK), str(directory / layout.CONTAINER))
    environment = {**podman_environment(os.environ), layout.MARK: plan.uid}
    launch = Launch(plan.uid, log_bytes, "", environment, keep=plan.keep_on_failure)
    files = plan_files(plan, HOSTS_WAIT_S if podman.has_peers(plan) else None)
    staged = bool(plan.inputs or remote_outputs(plan))
    if staged:
        files[task_layout.STAGE] = stage_text(plan.inputs, remote_outputs(plan), plan.user)
    with Draft(directory) as draft:
        draft.write_common(plan, launch, contained=True)
        draft.path.joinpath(layout.WORK).chmod(OPEN)
        inside = draft.path / layout.CONTAINER
        _directory(inside / folder.PLAN, {name: (data, READABLE) for name, data in files.items()})
        _directory(inside / folder.STATE, {task_layout.HOSTS_FILE: (b"", 0o666)}, OPEN)
        _file(inside / folder.RECORD, b"", 0o666)
        write_job(inside / folder.JOB, plan.job_info, hosts)
        lines = {}
        if staged:
            draft.write_stage(plan, remote_outputs(plan))
            limits = podman.limit_words(bounds.files, bounds.threads)
            lines[folder.STAGE] = podman.stage_words(plan, settings, root, places, address, limits, python_places())
            (inside / folder.STAGE_ROOT).mkdir()
            Path(root, podman.COMPILED).mkdir(mode=0o700, exist_ok=True)
        lines |= {
            folder.RUN: podman.run_words(plan, settings, root, places, address, bounds),
            folder.PULL: podman.pull_words(plan, settings, places) if pulls else [],
            folder.REMOVE: [settings.podman, *podman.remove_words(f"{places.folder}/{folder.ID}")],
        }
        for name, words in lines.items():
            _file(inside / name, folder.text_of(words), 0o600)
        if plan.image_login is not None:
            _file(inside / folder.LOGIN, docker_config(plan.image_login, plan.image), 0o600)
        draft.publish()


@cache
def python_places() -> PythonPlaces:
    """The Python that runs this backend. Read once: an installation that is replaced stays where it was.

    Of a prefix only what programs are made of: a configuration with tokens, or the data directory, may lie beside it.
    """
    prefixes = (Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1])
    wanted = [prefix / part for prefix in prefixes for part in ("bin", "lib", "lib64", "pyvenv.cfg")]
    wanted += [Path(pai_backend.__file__).parent, *map(Path, SYSTEM)]
    there = sorted({str(each) for each in wanted if each.exists()})
    outer = [each for each in there if not any(each.startswith(f"{other}/") for other in there)]
    return PythonPlaces(sys.executable, tuple(outer))


def bounds_of(plan: TaskPlan, most_processes: int, *, held: bool) -> TaskBounds:
    """What a task is held to on this machine."""
    files, threads = own_limits()
    if not held:
        return TaskBounds(0, 0, 0, files, threads)
    return TaskBounds(plan.memory_mb, plan.cpus, most_processes, files, threads)


def write_job(directory: Path, job_info: str, hosts: str) -> None:
    """Replace the job info and the hosts of a task as a whole: a link is exchanged, as kubelets do it.

    The files before stay until the next time: a launcher may just be reading them. Raises OSError.
    """
    made = f"..{secrets.token_hex(8)}"
    current = directory / "..data"
    before = os.readlink(current) if current.is_symlink() else ""
    info, names = compressed(job_info.encode()), hosts.encode()
    content = {task_layout.JOB_INFO: (info, READABLE), task_layout.HOSTS: (names, READABLE)}
    _directory(directory / made, content)
    link = directory / f"{made}.link"
    link.symlink_to(made)
    os.rename(link, current)
    for name in content:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    for old in directory.glob("..????????????????"):
        if old.name not in (made, before):
            shutil.rmtree(old, ignore_errors=True)


def hosts_text(addresses: Mapping[str, str], placed: int) -> str:
    """The lines of a hosts file: addresses of tasks by their names, of which so many have a place."""
    lines = [f"{address}\t{name}\n" for name, address in sorted(addresses.items())]
    return "".join(lines) + (COMPLETE if len(addresses) >= placed else "")


def _directory(path: Path, files: Mapping[str, tuple[bytes, int]], mode: int = 0o755) -> None:
    path.mkdir(parents=True)
    path.chmod(mode)
    for name, (data, file_mode) in files.items():
        _file(path / name, data, file_mode)


def _file(path: Path, data: bytes, mode: int) -> None:
    path.write_bytes(data)
    path.chmod(mode)
