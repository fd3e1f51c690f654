"""Keeping the files of an attempt current in the pods of its tasks: job info, and hosts of peers."""

from __future__ import annotations

import hashlib

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.failures import ApiNotFound
from pai_backend.engine.kubernetes.objects import metadata
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.pods.job import attempt_files, info_file
from pai_backend.engine.kubernetes.pods.volumes import JOB_VOLUME
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.model.ids import TaskUid


async def refresh(calls: Calls, places: ApiPaths, uid: TaskUid, job_info: str) -> None:
    """Replace the job info where the task's pod has it from, and let the task's kubelet look at it at once.

    A task that has no pod, or whose pod is over, is left alone. Raises StartRefused when it is more than a ConfigMap
    can hold, and ClusterErrors.
    """
    path = places.one(ResourceKind.POD, naming.task_name(uid))
    pod = await find(calls, path)
    if pod is None or part(pod, "status").get("phase") in ("Failed", "Succeeded"):
        return
    shared = any(volume.get("name") == JOB_VOLUME for volume in part(pod, "spec").get("volumes") or ())
    owner = next((each for each in metadata(pod).get("ownerReferences") or () if each.get("kind") == "ConfigMap"), None)
    if shared and owner is None:
        return
    digest = hashlib.sha256(job_info.encode()).hexdigest()[:16]
    try:
        if shared and owner is not None:
            await calls.patch(
                places.one(ResourceKind.CONFIG_MAP, str(owner["name"])), attempt_files(job_info), Patch.MERGE
            )
        else:
            secret = places.one(ResourceKind.SECRET, naming.task_name(uid))
            await calls.patch(secret, {"data": info_file(job_info)}, Patch.MERGE)
        await calls.patch(path, {"metadata": {"annotations": {naming.REFRESHED: digest}}}, Patch.MERGE)
    except ApiNotFound:
        return  # it ended and was removed meanwhile
