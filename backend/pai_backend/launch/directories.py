"""The four directory fields of a document with the variables in them replaced, as OpenPAI v1 does it.

Only these fields are rewritten; a command sees the same names as ordinary shell variables.
Source: OpenPAI v1 (the bare job name is put in, not ``user~job``); the seeds for the default outputDir.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.model.job import Job
from pai_backend.model.plan import StagedInput
from pai_backend.model.spec import Dialect, JobSpec

CODE_BYTES = 200_000_000
"""The most that a codeDir may hold. Source: OpenPAI v1; the seeds say "less than 200MB"."""

_VARIABLE = re.compile(r"\$(?:PAI|QIZHI)_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)")
_WITHOUT_FIELDS = (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)  # v2 has prerequisites in their place


@dataclass(frozen=True)
class Directories:
    """Where a job's inputs and outputs are, as URIs or paths; empty means none was named."""

    auth_file: str
    data_dir: str
    output_dir: str
    code_dir: str

    @property
    def inputs(self) -> tuple[StagedInput, ...]:
        """What is copied into a task's working directory: the codeDir, under its own base name."""
        if not self.code_dir:
            return ()
        return (StagedInput(uri=self.code_dir, name=_base_name(self.code_dir), max_bytes=CODE_BYTES),)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is made before a task's command runs: the outputDir."""
        return (self.output_dir,) if self.output_dir else ()


def directories(job: Job, default_fs_uri: str = "") -> Directories:
    """The directories of ``job``.

    Without an outputDir it is ``<default_fs_uri>/Output/<user>/<job uid>``: the seeds' ``Output/<jobName>`` is one
    directory for all users with a job of that name. It is empty when there is no default file system, because a path
    at the root of the task's machine is nobody's output directory. v2 knows no outputDir, so that a job of v2 has one
    where a command of it names the variable: empty, it would be that root.
    """
    spec = job.spec
    output = spec.output_dir
    if not output and default_fs_uri and (spec.dialect not in _WITHOUT_FIELDS or _counts_on_one(spec)):
        output = f"{default_fs_uri.rstrip('/')}/Output/$PAI_USER_NAME/{job.uid}"
    values = {
        "DEFAULT_FS_URI": default_fs_uri,
        "JOB_NAME": job.name,
        "USER_NAME": job.user,
        "USERNAME": job.user,
    }

    def substituted(text: str) -> str:
        # One pass: what is put in is not looked at again.
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    return Directories(
        auth_file=substituted(spec.auth_file),
        data_dir=substituted(spec.data_dir),
        output_dir=substituted(output),
        code_dir=substituted(spec.code_dir),
    )


def _counts_on_one(spec: JobSpec) -> bool:
    """Whether a command writes to its output directory."""
    return any(name in role.command for role in spec.task_roles for name in ("PAI_OUTPUT_DIR", "QIZHI_OUTPUT_DIR"))


def _base_name(uri: str) -> str:
    """The last part of the path; ``code`` for the root of a file system, which has none."""
    _, scheme, rest = uri.rpartition("://")
    path = rest.partition("/")[2] if scheme else rest  # what stands before the first "/" is a host
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    return parts[-1] if parts else "code"
