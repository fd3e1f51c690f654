"""Writing any document as plain OpenPAI v1: QIZHI's and SCM's own words left out, v2 as far as v1 can say it.

Source: OpenPAI v1 as its server checked it (0.12), which refuses every field it does not know.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pai_backend.model import tags
from pai_backend.model.spec import Dialect, JobSpec, Scheduling, SshOptions, TaskRole
from pai_backend.model.text import Text
from pai_backend.protocol import extension
from pai_backend.protocol.convert import shell
from pai_backend.protocol.convert.counting import counting
from pai_backend.protocol.convert.result import Converted, Losses, finished, refused
from pai_backend.protocol.convert.source import command_of, directories_of, note_programs, note_source
from pai_backend.protocol.document import Document
from pai_backend.protocol.fields import Path
from pai_backend.protocol.own_fields import KEY, written_fields
from pai_backend.protocol.v1 import UNKNOWN_FIELDS

_V2: Final = (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)
_MIN_MEMORY_MB: Final = 100
_NO_SSH, _NO_SCHEDULING = SshOptions(), Scheduling()


def to_v1(document: Document) -> Converted:
    """``document`` as OpenPAI v1 JSON without comments.

    Raises DocumentError for a v2 document whose roles have different images or whose commands need secrets (v1 has
    one image and no secrets), and for one that would be beyond the reader's limits.
    """
    losses = Losses()
    if document.dialect in _V2:
        _check_v2(document.spec)
        _note_v2(document.spec, losses)
    else:
        note_source(document, losses)
        note_programs(document.spec, losses)
    return _Writer(document.spec, losses).written()


class _Writer:
    """One conversion."""

    def __init__(self, spec: JobSpec, losses: Losses) -> None:
        self.spec = spec
        self.losses = losses
        self.is_v2 = spec.dialect in _V2
        self.counting = counting(spec)
        self.job_name, self.role_names, self.labels = extension.original_names(spec)

    def written(self) -> Converted:
        """The text and what it loses."""
        spec = self.spec
        job: dict[str, Any] = {"jobName": self.job_name or spec.name, "image": _image(spec)}
        job |= {field: value for field, value in directories_of(spec, self.losses).items() if value}
        if spec.virtual_cluster != "default":
            job["virtualCluster"] = spec.virtual_cluster
        job["retryCount"] = spec.retry_count
        job["taskRoles"] = [self._role(number, role) for number, role in enumerate(spec.task_roles)]
        if spec.gpu_type:
            job["gpuType"] = spec.gpu_type
        if self.counting.kill_all is not None:
            job["killAllOnCompletedTaskNumber"] = self.counting.kill_all
            hint = Text("Say minFailedTaskCount and minSucceededTaskCount in the roles for these.")
            message = Text("obsolete in OpenPAI from 0.7.2 on, which may not follow it")
            self.losses.kept_aside(("killAllOnCompletedTaskNumber",), message, hint)
        if env := _env(spec):
            job["jobEnvs"] = env
        if extras := self._extras():
            job["extras"] = extras
        if UNKNOWN_FIELDS in extras:
            self.losses.kept_aside(("extras",), Text("fields that only SCM knows are kept in extras"))
        return finished(json.dumps(job, ensure_ascii=False, indent=2) + "\n", self.losses)

    def _extras(self) -> dict[str, Any]:
        """The extras; of v2's ``jupyterPai`` what v1 has no field for either, all else in it has become fields."""
        extras = dict(self.spec.extras)
        if not self.is_v2 and self.spec.address and isinstance(own := extras.get(KEY, {}), dict):
            extras[KEY] = {**own, "address": self.spec.address}  # OpenPAI refuses unknown fields of the job
        if self.is_v2:
            extras.pop(KEY, None)
            if own := written_fields(self.spec):
                extras[KEY] = own
        return extras

    def _role(self, number: int, role: TaskRole) -> dict[str, Any]:
        """One task role of v1, with all that has a default written out."""
        need = role.resources
        path: Path = ("taskRoles", role.name if self.is_v2 else number)
        self._note_role(role, path)
        memory = self._at_least(_MIN_MEMORY_MB, need.memory_mb, (*path, "memoryMB"))
        return {
            "name": self.role_names.get(role.name, role.name),
            "taskNumber": role.instances,
            "cpuNumber": self._at_least(1, need.cpus, (*path, "cpuNumber")),
            "memoryMB": memory,
            "shmMB": self._shared(memory, need.shm_mb, (*path, "shmMB")),
            "gpuNumber": need.gpus,
            "minFailedTaskCount": _reachable(role.completion.min_failed, role),
            "minSucceededTaskCount": _reachable(self.counting.succeeded or role.completion.min_succeeded, role),
            "command": self._command(role, path),
            "portList": [
                {"label": self.labels.get(port.label, port.label), "beginAt": port.begin_at, "portNumber": port.count}
                for port in role.ports
                if not port.implicit
            ],
        }

    def _note_role(self, role: TaskRole, path: Path) -> None:
        """List what v1 has no field for."""
        if role.resources.storage_gb is not None:
            self.losses.lost((*path, "storageGB"), Text("OpenPAI refuses documents with SCM's storageGB"))
        if role.task_retry_count:
            self.losses.lost((*path, "taskRetryCount"), Text("v1 runs a job again as a whole"))
        if role.image_auth is not None:
            hint = Text("Put registry, user and password into a file, and name it in authFile.")
            self.losses.lost((*path, "dockerImage"), Text("v1 has no auth for images"), hint)
        if role.min_instances is not None:
            self.losses.lost(path, Text("v1 knows no tasks that start before others"))
        if role.ssh != _NO_SSH:
            self.losses.lost(path, Text("v1 has no ssh plugin; its tasks can be entered anyway"))
        if role.sku_type or role.pinned_cell_id or role.affinity_group or role.within_one_cell:
            hint = Text("gpuType may say the first.")
            self.losses.lost(path, Text("v1 knows neither SKU types nor cells and affinity groups"), hint)

    def _command(self, role: TaskRole, path: Path) -> str:
        """The command in the mode that it was written for."""
        command = command_of(role.command, [port.label for port in role.ports], (*path, "command"), self.losses)
        needs_mode = role.strict and not command.startswith(shell.V1_MODE)
        return f"{shell.V2_MODE}\n{command}" if needs_mode else command

    def _at_least(self, least: int, value: int, path: Path) -> int:
        if value < least:
            self.losses.rewritten(
                path, Text("{value} becomes {least}, the least that v1 takes", value=value, least=least)
            )
        return max(least, value)

    def _shared(self, memory: int, value: int, path: Path) -> int:
        if value > memory:
            self.losses.rewritten(
                path,
                Text("{value} becomes {memory}: in v1 shared memory is part of the memory", value=value, memory=memory),
            )
        return min(memory, value)


def _env(spec: JobSpec) -> dict[str, Any]:
    """jobEnvs, with the settings that v1 has among them."""
    env = dict(spec.env)
    if spec.debug:
        env.setdefault("isDebug", True)
    if any(role.infiniband for role in spec.task_roles):
        env.setdefault("paiAzRDMA", True)
    return env


def _image(spec: JobSpec) -> str:
    return spec.image_of(spec.task_roles[0])


def _reachable(count: int | None, role: TaskRole) -> int | None:
    """A counter beyond the role's tasks is never reached, which v1 says by null."""
    return count if count is None or count <= role.instances else None


def _check_v2(spec: JobSpec) -> None:
    """Refuse what would be another job in v1."""
    first = _image(spec)
    for role in spec.task_roles:
        if spec.image_of(role) != first:
            hint = Text("Give all task roles one image, or make each a job of its own.")
            raise refused(("taskRoles", role.name, "dockerImage"), Text("v1 has one image for all task roles"), hint)
        if any(tag.scope == "secrets" for tag in tags.find(role.command)):
            hint = Text("Read the secret from a file instead; what a v1 document holds, others may see.")
            raise refused(
                ("taskRoles", role.name, "commands"), Text("v1 has no secrets, which this command needs"), hint
            )


def _note_v2(spec: JobSpec, losses: Losses) -> None:
    """List what is said for a v2 job as a whole and not in v1."""
    losses.rewritten(
        (), Text("parameters, deployments and plugins are written out in the commands; comments are left out")
    )
    if spec.secret_names:
        losses.lost(("secrets",), Text("v1 has no secrets"))
    if spec.scheduling != _NO_SCHEDULING:
        losses.lost(("extras",), Text("v1 knows neither priorities nor cells, nor tasks that start one by one"))
    if spec.storages:
        losses.lost(("extras", "storages"), Text("v1 mounts no storages"), Text("dataDir may name what is in them."))
    if spec.notify:
        losses.lost(("extras", "jobStatusChangeNotification"), Text("v1 sends no notifications"))
    if spec.submit_from:
        losses.lost(("extras", "submitFrom"), Text("v1 does not know where a job is submitted from"))
    if spec.description:
        losses.lost(("description",), Text("v1 has no description"))
    infiniband = {role.infiniband for role in spec.task_roles}
    if len(infiniband) > 1:
        losses.rewritten(("taskRoles",), Text("v1 gives InfiniBand to all task roles or to none: all have it"))
