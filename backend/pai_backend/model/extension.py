"""The field table of ``extras.jupyterPai``: what a job document can say here and OpenPAI has no field for.

A row is an attribute of a specification with its :class:`DocumentField`. From the rows come reading, writing, hints at
unknown names (``protocol.own_fields``) and the table in ``docs/documents-v2.md``; a test reads, converts and compares
each example. So a new field is one row here, what uses the attribute, and the test of that use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.labels import Labels
from pai_backend.model.pod_choice import PodChoice
from pai_backend.model.text import NO_TEXT, Text


class FieldType(StrEnum):
    """What a field holds; the value is how the documentation calls it."""

    NAME = "text"
    PATH = "path"
    INTEGER = "whole number"
    FLAG = "true or false"
    DURATION = "time"
    LABELS = "labels"
    SECRETS = "variable -> secret"
    POD = "pod settings"
    ADDRESS = "workspace name"
    OBJECT = "object"


@dataclass(frozen=True)
class DocumentField:
    """How a document says an attribute: under which name, which values, and what they mean."""

    name: str
    type: FieldType
    doc: str
    """One sentence or two for the documentation, in Markdown."""
    example: str
    """A value as YAML."""
    low: int | None = None
    """The least whole number, or the least number of seconds."""
    remedy: Text = NO_TEXT
    """What to do about a time that is too short or too long."""
    v1_name: str = ""
    """The field of a v1 document that says the same. Without one, ``extras.jupyterPai`` is followed in v1, too."""
    in_extras: bool = False
    """It may stand in ``extras`` itself instead, and null counts as left out."""


class JobFields(Model):
    """What ``extras.jupyterPai`` says of the job."""

    auth_file: Annotated[
        str, DocumentField("authFile", FieldType.PATH, "As in v1.", "auth.txt", v1_name="authFile")
    ] = ""
    data_dir: Annotated[
        str, DocumentField("dataDir", FieldType.PATH, "As in v1.", "$PAI_DEFAULT_FS_URI/data", v1_name="dataDir")
    ] = ""
    output_dir: Annotated[
        str, DocumentField("outputDir", FieldType.PATH, "As in v1.", "$PAI_DEFAULT_FS_URI/out", v1_name="outputDir")
    ] = ""
    code_dir: Annotated[
        str, DocumentField("codeDir", FieldType.PATH, "As in v1.", "$PAI_DEFAULT_FS_URI/code", v1_name="codeDir")
    ] = ""
    gpu_type: Annotated[
        str | None, DocumentField("gpuType", FieldType.NAME, "As in v1.", "TITANX", v1_name="gpuType")
    ] = None
    retry_count: Annotated[
        int,
        DocumentField(
            "retryCount",
            FieldType.INTEGER,
            "As in v1: -2 reruns always, -1 without limit. It goes before `jobRetryCount`.",
            "-1",
            low=-2,
            v1_name="retryCount",
        ),
    ] = Field(default=0, description="-2 always rerun, -1 unlimited, else the maximum")
    kill_all_on_completed: Annotated[
        int | None,
        DocumentField(
            "killAllOnCompletedTaskNumber",
            FieldType.INTEGER,
            "As in v1: so many completed tasks end the job; 0 is off.",
            "1",
            low=0,
            v1_name="killAllOnCompletedTaskNumber",
        ),
    ] = Field(default=None, description="QIZHI: end the job when this many tasks have completed.")
    debug: Annotated[
        bool,
        DocumentField(
            "isDebug",
            FieldType.FLAG,
            "As in v1's `jobEnvs`: failed tasks are [kept](debugging.md).",
            "true",
            v1_name="jobEnvs.isDebug",
        ),
    ] = Field(default=False, description="jobEnvs.isDebug: keep failed tasks for inspection.")
    debugger: Annotated[
        bool,
        DocumentField(
            "debug",
            FieldType.FLAG,
            "[Debuggers](connect/debug.md) attach to the Python programs of its tasks by `pai debug`.",
            "true",
        ),
    ] = Field(default=False, description="debug: debuggers can attach to the Python programs of the tasks.")
    expected_run_s: Annotated[
        int | None,
        DocumentField(
            "expectedRunTime",
            FieldType.DURATION,
            "How long an attempt of the job is expected to run, or each of its tasks without gang allocation. It ends "
            "nothing. Jobs that wait behind it get an [estimate](scheduling.md#why-is-it-waiting) of their start.",
            "2h30m",
            low=1,
            remedy=Text("Leave it out when it is not known."),
        ),
    ] = Field(
        default=None,
        ge=1,
        description="expectedRunTime, in seconds: how long an attempt is expected to run. It ends nothing.",
    )
    idle_timeout_s: Annotated[
        int | None,
        DocumentField(
            "idleTimeout",
            FieldType.DURATION,
            "Stops a job that has not been used for so long, with a warning before: [idle.md](idle.md) says what "
            "counts as use. `extras` itself may hold it instead.",
            "8h",
            low=10,  # a shorter one ends before a user can read the warning
            remedy=Text("Leave it out for a job that is never stopped for being idle."),
            in_extras=True,
        ),
    ] = Field(
        default=None,
        ge=1,
        description="idleTimeout, in seconds: how long nothing may use the job before it is stopped; null for ever.",
    )
    max_duration_s: Annotated[
        int | None,
        DocumentField(
            "maxDuration",
            FieldType.DURATION,
            "Stops the job when an attempt of it has run for so long; a virtual cluster may have a "
            "[longest run](scheduling.md#longest-runs) of its own. `extras` itself may hold it instead.",
            "12h",
            low=1,
            remedy=Text("Leave it out for a job that may run until it is done."),
            in_extras=True,
        ),
    ] = Field(
        default=None,
        ge=1,
        description="maxDuration, in seconds: how long an attempt may run before the job is stopped; null for ever.",
    )
    address: Annotated[
        str,
        DocumentField(
            "address",
            FieldType.ADDRESS,
            "A name of the user's that the job [answers at](connect/addresses.md) by SSH and HTTP, as the jobs "
            "before it did. A v1 document says it in `address` of the job as well.",
            "lab",
        ),
    ] = Field(default="", description="address: the workspace name that the job takes over.")
    start_on_login: Annotated[
        bool,
        DocumentField(
            "startOnLogin",
            FieldType.FLAG,
            "An SSH login of its owner [runs it again](connect/addresses.md#start-a-stopped-workspace-by-logging-in) "
            "when it has ended, and waits for it.",
            "true",
        ),
    ] = Field(default=False, description="startOnLogin: a login of the owner runs the job again when it has ended.")
    sweep: Annotated[
        str,
        DocumentField(
            "sweep",
            FieldType.NAME,
            "The [sweep](run.md#a-sweep) of the user's that the job belongs to; `pai submit --sweep` gives it.",
            "rates",
        ),
    ] = Field(default="", description="sweep: the user's jobs of this name belong together.")
    sweep_parallel: Annotated[
        int | None,
        DocumentField(
            "sweepParallel",
            FieldType.INTEGER,
            "So many jobs of the sweep run at once; the others wait for their turn.",
            "4",
            low=1,
        ),
    ] = Field(default=None, ge=1, description="sweepParallel: so many jobs of the sweep run at once; null: no limit.")
    notebook: Annotated[
        str,
        DocumentField(
            "notebook",
            FieldType.PATH,
            "The [notebook](run.md#a-notebook) that the job runs; the panel shows its cells. "
            "`pai run-notebook` gives it.",
            "work/train.ipynb",
        ),
    ] = Field(default="", description="notebook: the notebook that the job runs.")
    node_selector: Annotated[
        Labels,
        DocumentField(
            "nodeSelector",
            FieldType.LABELS,
            "Labels that a node must have to run any task of the job; see below.",
            "{zone: a, kubernetes.io/hostname: carol}",
        ),
    ] = Field(
        default={}, description="nodeSelector of extras.jupyterPai: labels that a node must have to run its tasks."
    )
    secret_env: Annotated[
        Mapping[str, str],
        DocumentField(
            "secretEnv",
            FieldType.SECRETS,
            "Variable -> name of a [secret that you keep](secrets.md#secrets-of-your-own): all tasks have its value as "
            "that variable.",
            "{HF_TOKEN: hf-token}",
        ),
    ] = Field(
        default={},
        description="secretEnv of extras.jupyterPai: variable -> name of the user's secret that its value is.",
    )
    kubernetes: Annotated[
        PodChoice,
        DocumentField(
            "kubernetes",
            FieldType.POD,
            "On Kubernetes, of the pods of all tasks: `priorityClass`, `runtimeClass`, `serviceAccount` and "
            "`imagePullSecrets`, as far as the [administrator allows](engine-kubernetes.md#choices-of-documents); "
            "elsewhere it has no effect, which a warning says.",
            "{priorityClass: batch, imagePullSecrets: [team-registry]}",
        ),
    ] = Field(default=PodChoice(), description="kubernetes of extras.jupyterPai: what is chosen of its pods.")


class RoleFields(Model):
    """What ``extras.jupyterPai.taskRoles`` says of a role."""

    min_instances: Annotated[
        int | None,
        DocumentField(
            "minInstances",
            FieldType.INTEGER,
            "Without gang allocation: so many of its tasks start together, before the others; see below.",
            "2",
            low=1,
        ),
    ] = Field(
        default=None,
        ge=1,
        description="minInstances: without gang allocation, so many of its tasks start together, before the others.",
    )


class ResourceFields(Model):
    """What ``extras.jupyterPai.taskRoles`` says of the resources of a role's tasks."""

    storage_gb: Annotated[
        int | None,
        DocumentField(
            "storageGB", FieldType.INTEGER, "As in SCM: recorded, not enforced.", "5", low=0, v1_name="storageGB"
        ),
    ] = Field(default=None, description="SCM only; recorded, not enforced")


JOB_PARTS: Final = (
    DocumentField("taskRoles", FieldType.OBJECT, "Name of a task role -> its fields.", "{worker: {storageGB: 5}}"),
    DocumentField("extras", FieldType.OBJECT, "Extras of the v1 document that v2 would follow.", "{submitFrom: web}"),
    DocumentField(
        "names",
        FieldType.OBJECT,
        "The names before a conversion (`jobName`, `taskRoles`, `portList`), for the way back.",
        "{jobName: a.b}",
    ),
)
"""Members of ``extras.jupyterPai`` that are no attribute of their own."""
ROLE_PARTS: Final = (
    DocumentField(
        "beginAt",
        FieldType.OBJECT,
        "Port label -> first port of a fixed range; 0 chooses at random.",
        "{board: 6006}",
        v1_name="portList",
    ),
)
"""Members of a role of ``extras.jupyterPai`` that are no attribute of their own."""


def document_fields(model: type[Model]) -> dict[str, DocumentField]:
    """The rows of a model, by attribute."""
    return {
        attribute: field
        for attribute, info in model.model_fields.items()
        for field in info.metadata
        if isinstance(field, DocumentField)
    }
