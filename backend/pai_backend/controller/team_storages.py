"""The team storages that a document names, as a task finds them."""

from __future__ import annotations

import re

from pai_backend.engine.base import StartRefused, TaskPlan
from pai_backend.model.job import Job
from pai_backend.model.plan import TeamStorage
from pai_backend.storage.reach import Mount, Reach

FOLDER = "mnt"
"""Where a local task has links to them, in its working directory; v2 documents say ``/mnt/<name>``."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")


def with_storages(plan: TaskPlan, job: Job, reach: Reach) -> TaskPlan:
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


def variable(mount: Mount) -> str:
    """The environment variable that names a storage; a shell can read it."""
    return f"PAI_STORAGE_{_NOT_A_NAME.sub('_', mount.name)}"
