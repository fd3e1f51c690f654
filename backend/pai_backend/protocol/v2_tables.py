"""The field tables of OpenPAI v2.

Source: the protocol's own page (the seeds' v2 document) and the schema that upstream's server checks.
Optional fields may be left empty (null), as YAML is written; upstream refuses that.
"""

from __future__ import annotations

import re
from typing import Final

from pai_backend.model.text import Text
from pai_backend.protocol.field_table import Field, FieldKind, Table
from pai_backend.protocol.own_fields import MAX_NAME, MAX_PATH
from pai_backend.protocol.v1 import MAX_TASKS

IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Task roles and port labels, which become parts of names of environment variables."""

_NAME = Field(
    FieldKind.TEXT,
    required=True,
    pattern=re.compile(r"[A-Za-z0-9_-]+"),
    allowed=Text("letters, digits, '-' and '_'"),
    longest=MAX_NAME,
    empty=False,
)
"""Names of jobs, prerequisites and deployments. Source: the published schema, which has one rule for all three."""

_TEXT = Field(FieldKind.TEXT, nullable=True, lines=True)
_WORD = Field(FieldKind.TEXT, nullable=True, longest=MAX_NAME)
_FILLED_WORD = Field(FieldKind.TEXT, nullable=True, longest=MAX_NAME, empty=False)
_ANY = Field(FieldKind.ANY)
_OBJECT = Field(FieldKind.OBJECT, nullable=True)
_LIST = Field(FieldKind.LIST, nullable=True)
_COUNT = Field(FieldKind.INTEGER, low=-1, nullable=True)
_V1_COUNT = Field(FieldKind.INTEGER, low=1, nullable=True)
_RETRIES = Field(FieldKind.INTEGER, default=0, low=-2, nullable=True)
_NEEDED = Field(FieldKind.INTEGER, required=True, low=0)

_ABOUT = {"version": _ANY, "contributor": _TEXT, "description": _TEXT}
_CHOSEN = dict.fromkeys(("data", "output", "script"), _FILLED_WORD)

JOB: Final = Table(
    Text("the job"),
    {
        "protocolVersion": _ANY,
        "name": _NAME,
        "type": Field(FieldKind.TEXT),
        **_ABOUT,
        "prerequisites": _LIST,
        "parameters": _OBJECT,
        "secrets": _ANY,
        "jobRetryCount": _RETRIES,
        "taskRoles": Field(FieldKind.OBJECT, required=True),
        "deployments": _LIST,
        "defaults": _OBJECT,
        "extras": _OBJECT,
    },
    elsewhere={
        "jobName": Text('Did you mean "name"?'),
        "retryCount": Text('Did you mean "jobRetryCount"?'),
        "image": Text("Name it in a prerequisite of type dockerimage, and that one in the roles' dockerImage."),
        "virtualCluster": Text("Move it into defaults ($.defaults.virtualCluster)."),
        "deployment": Text("Move it into defaults ($.defaults.deployment)."),
        "jobEnvs": Text("v2 has no jobEnvs: write export lines into commands; parameters may hold the values."),
        "hivedScheduler": Text("Move it into extras ($.extras.hivedScheduler)."),
        "gpuType": Text("Move it to the role's entry in extras.hivedScheduler, as skuType."),
    },
)
ROLE: Final = Table(
    Text("a task role"),
    {
        "instances": Field(FieldKind.INTEGER, default=1, low=1, high=MAX_TASKS, nullable=True),
        "completion": _OBJECT,
        "taskRetryCount": _RETRIES,
        "prerequisites": _LIST,
        "dockerImage": Field(FieldKind.TEXT, required=True, empty=False),
        **_CHOSEN,
        "extraContainerOptions": _OBJECT,
        "resourcePerInstance": Field(FieldKind.OBJECT, required=True),
        "commands": Field(FieldKind.LIST, required=True),
    },
    elsewhere={
        "taskNumber": Text('Did you mean "instances"?'),
        "command": Text('Did you mean "commands"? It is a list of texts.'),
        "image": Text('Did you mean "dockerImage"? It names a prerequisite.'),
        "shmMB": Text("Move it into extraContainerOptions."),
        "infiniband": Text("Move it into extraContainerOptions."),
        "ports": Text("Move it into resourcePerInstance."),
        "cpu": Text("Move it into resourcePerInstance."),
        "gpu": Text("Move it into resourcePerInstance."),
        "memoryMB": Text("Move it into resourcePerInstance."),
        "minFailedInstances": Text("Move it into completion."),
        "minSucceededInstances": Text("Move it into completion."),
        "preCommands": Text("Move it into a deployment, and name that in defaults.deployment."),
        "postCommands": Text("Move it into a deployment, and name that in defaults.deployment."),
    },
)
COMPLETION: Final = Table(
    "completion",
    {
        "minFailedInstances": _COUNT,
        "minSucceededInstances": _COUNT,
        "minFailedTaskCount": _V1_COUNT,
        "minSucceededTaskCount": _V1_COUNT,
    },
)
CONTAINER: Final = Table(
    "extraContainerOptions",
    {"shmMB": Field(FieldKind.INTEGER, default=512, low=0, nullable=True), "infiniband": _ANY},
    open=True,
)
RESOURCES: Final = Table(
    "resourcePerInstance",
    {"cpu": _NEEDED, "memoryMB": Field(FieldKind.INTEGER, required=True, low=1), "gpu": _NEEDED, "ports": _OBJECT},
    elsewhere={
        "cpuNumber": Text('Did you mean "cpu"?'),
        "gpuNumber": Text('Did you mean "gpu"?'),
        "memory": Text('Did you mean "memoryMB"?'),
        "shmMB": Text("Move it into the role's extraContainerOptions."),
    },
)
IMAGE: Final = Table(
    Text("a dockerimage prerequisite"),
    {
        "protocolVersion": _ANY,
        "name": _NAME,
        "type": Field(FieldKind.TEXT, required=True),
        **_ABOUT,
        "auth": _OBJECT,
        "uri": Field(
            FieldKind.TEXT,
            required=True,
            empty=False,
            longest=MAX_PATH,
        ),
        "require": _LIST,
        "plugin": _WORD,
        "failurePolicy": _WORD,
        "callbacks": _LIST,
    },
)
OPEN: Final = Table(
    Text("a prerequisite"),
    {
        "name": _NAME,
        "type": Field(FieldKind.TEXT, required=True),
        **_ABOUT,
        "uri": _ANY,
        "require": _LIST,
        "plugin": Field(FieldKind.TEXT, nullable=True),
        "failurePolicy": Field(FieldKind.TEXT, nullable=True),
    },
)
"""Prerequisites that are no images may have any further fields: tags may name them, plugins read them."""
AUTH: Final = Table("auth", {"username": _TEXT, "password": _TEXT, "registryuri": _TEXT})
DEPLOYMENT: Final = Table(
    Text("a deployment"),
    {
        "protocolVersion": _ANY,
        "name": _NAME,
        **_ABOUT,
        "taskRoles": Field(FieldKind.OBJECT, required=True),
    },
    open=True,
)
DEPLOYED: Final = Table(Text("a deployment's task role"), {"preCommands": _LIST, "postCommands": _LIST})
DEFAULTS: Final = Table("defaults", {"virtualCluster": _WORD, "deployment": _FILLED_WORD}, open=True)
HIVED: Final = Table(
    "hivedScheduler",
    {
        "jobPriorityClass": Field(FieldKind.TEXT, longest=MAX_NAME, empty=False),
        "taskRoles": Field(FieldKind.OBJECT),
        "gangReleaseEnable": _ANY,
        "lazyPreemptionEnable": _ANY,
        "ignoreK8sSuggestedNodes": _ANY,
        "withinOneCell": _WORD,
    },
    elsewhere={
        "priority": Text('Did you mean "jobPriorityClass"?'),
        "skuType": Text("Move it into the role's entry in taskRoles."),
        "gangAllocation": Text("Move it into extras ($.extras.gangAllocation)."),
    },
    open=True,
)
HIVED_ROLE: Final = Table(
    Text("a hivedScheduler task role"),
    {
        "skuType": _FILLED_WORD,
        "gpuType": _FILLED_WORD,
        "pinnedCellId": _FILLED_WORD,
        "reservationId": _FILLED_WORD,
        "affinityGroupName": _WORD,
        "withinOneCell": _WORD,
        "skuNum": _ANY,
    },
)
STORAGE: Final = Table(
    Text("a storage"),
    {
        "name": Field(FieldKind.TEXT, required=True, empty=False, longest=MAX_NAME),
        "mountPath": Field(FieldKind.TEXT, nullable=True, longest=MAX_PATH),
    },
    open=True,
)
PLUGIN: Final = Table(
    Text("a plugin"),
    {
        "plugin": Field(FieldKind.TEXT, required=True, empty=False),
        "parameters": _OBJECT,
        "failurePolicy": _WORD,
        "taskroles": _LIST,
    },
    elsewhere={"taskRoles": Text('Did you mean "taskroles"?'), "name": Text('Did you mean "plugin"?')},
    open=True,
)
SSH: Final = Table(
    Text("the parameters of the ssh plugin"),
    {
        "jobssh": _ANY,
        "userssh": _ANY,
        "sshbarrier": _ANY,
        "sshbarriertaskroles": _LIST,
        "sshbarrierTimeout": Field(FieldKind.INTEGER, default=30, low=1, nullable=True),
    },
    open=True,
)
USER_SSH: Final = Table("userssh", {"type": _WORD, "value": _TEXT}, open=True)
CMD: Final = Table(
    Text("the parameters of the cmd plugin"),
    {"preCommands": _LIST, "postCommands": _LIST, "callbacks": _LIST},
    open=True,
)
CALLBACK: Final = Table(
    Text("a callback"),
    {"event": Field(FieldKind.TEXT, required=True), "commands": Field(FieldKind.LIST, required=True)},
    open=True,
)
STORAGE_PLUGIN: Final = Table(
    Text("the parameters of the teamwise_storage plugin"), {"storageConfigNames": _LIST}, open=True
)
TENSORBOARD: Final = Table(
    Text("the parameters of the tensorboard plugin"),
    {"port": Field(FieldKind.INTEGER, nullable=True), "logdir": Field(FieldKind.OBJECT, required=True)},
    open=True,
)
GIT: Final = Table(
    Text("the parameters of the git plugin"),
    {"repo_uri": _TEXT, "repo": _TEXT, "options": _LIST, "clone_dir": Field(FieldKind.TEXT, nullable=True)},
    open=True,
)
