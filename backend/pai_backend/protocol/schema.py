"""The fields of job documents as JSON Schema, made from the tables that reading goes by; forms are made of it.

Besides the standard keywords: ``x-section`` is the page of a form a field belongs to, ``x-widget`` how it is filled in
where its type does not say, ``x-words`` title and description in other languages, ``x-fallback`` what stands for the
field when it is left out (no ``default``: forms would write it into the document). Rules
between fields are not here; reading the document tells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final

from pai_backend.model import address, user_secret
from pai_backend.model.extension import DocumentField, FieldType, document_fields
from pai_backend.model.spec import PriorityClass, Resources, TaskRole
from pai_backend.protocol import own_fields, plugins, v1, v1_ports, v2_extras, v2_prerequisites
from pai_backend.protocol import v2_tables as v2
from pai_backend.protocol.field_table import Field, FieldKind, Table
from pai_backend.protocol.schema_words import FIELDS, SECTIONS, Words

Schema = dict[str, Any]
NO_LIMIT: Final = frozenset({-(2**31), 2**31 - 1})


class FormDialect(StrEnum):
    """The dialects that a form is offered for."""

    V1 = "v1"
    QIZHI = "qizhi"
    SCM = "scm"
    V2 = "v2"


_TYPES: Final = {
    FieldKind.TEXT: "string",
    FieldKind.INTEGER: "integer",
    FieldKind.BOOLEAN: "boolean",
    FieldKind.LIST: "array",
    FieldKind.OBJECT: "object",
}
_FLAG: Final[Schema] = {"type": "boolean"}
_TEXT: Final[Schema] = {"type": "string"}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean"], "x-widget": "scalar"}
_VERSION: Final[Schema] = {"type": ["string", "number", "null"], "x-widget": "scalar"}
_LINES: Final[Schema] = {"type": "array", "items": _TEXT, "x-widget": "lines"}
_HIDDEN: Final[Schema] = {"x-widget": "hidden"}


def _map(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _field(rule: Field) -> Schema:
    """What the row of a table says of a field."""
    found: Schema = {}
    kind = _TYPES.get(rule.kind)
    if kind is not None:
        found["type"] = [kind, "null"] if rule.nullable else kind
    if rule.kind is FieldKind.INTEGER:
        found |= {key: n for key, n in (("minimum", rule.low), ("maximum", rule.high)) if n not in NO_LIMIT}
    if rule.pattern is not None:
        found["pattern"] = f"^(?:{rule.pattern.pattern})$"
    if rule.kind is FieldKind.TEXT and not rule.empty:
        found["minLength"] = 1
    if rule.longest is not None:
        found["maxLength"] = rule.longest
    if rule.default not in (None, ""):
        found["x-fallback"] = rule.default
    return found


def _worded(found: Schema, words: Words) -> Schema:
    about: Schema = {"title": words.title}
    chinese = {"title": words.title_zh}
    if words.text:
        about["description"] = words.text
        chinese["description"] = words.text_zh
    return {**about, **found, "x-words": {"zh_CN": chinese}}


def _object(name: str, rules: Mapping[str, Field], shapes: Mapping[str, Schema] | None = None, /) -> Schema:
    """An object with the fields of a table; ``shapes`` says more of some, and leaves out those that are empty there."""
    shapes = shapes or {}
    left_out = {key for key, shape in shapes.items() if "x-left-out" in shape}
    properties = {
        key: _worded({**_field(rule), **shapes.get(key, {})}, FIELDS.get(f"{name}/{key}") or FIELDS[key])
        for key, rule in rules.items()
        if key not in left_out
    }
    needed = [key for key, rule in rules.items() if rule.required and key not in left_out]
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


_LEFT_OUT: Final[Schema] = {"x-left-out": True}


def _of(name: str, table: Table, shapes: Mapping[str, Schema] | None = None, /) -> Schema:
    return _object(name, table.fields, shapes)


def _placed(section: str, *names: str) -> dict[str, Schema]:
    return {name: {"x-section": section} for name in names}


def _merged(*shapes: Mapping[str, Schema]) -> dict[str, Schema]:
    """Shapes of fields put together; each field has what all say of it."""
    found: dict[str, Schema] = {}
    for each in shapes:
        for key, shape in each.items():
            found[key] = {**found.get(key, {}), **shape}
    return found


def _own(rows: Mapping[str, DocumentField]) -> Schema:
    """The rows of ``extras.jupyterPai``."""
    table = own_fields.table("jupyterPai", list(rows.values()))
    shapes = {row.name: _OWN_SHAPES[row.type] for row in rows.values() if row.type in _OWN_SHAPES}
    shapes |= {row.name: _PLACES[row.name] for row in rows.values() if row.name in _PLACES}
    return _of("jupyterPai", table, shapes)


_PLACES: Final[Mapping[str, Schema]] = {
    **{name: {"x-widget": "path"} for name in ("authFile", "dataDir", "outputDir")},
    "codeDir": {"x-widget": "code"},
}
_ADDRESS: Final[Schema] = {"type": "string", "pattern": f"^(?:{address.PATTERN.pattern})?$"}
_OWN_SHAPES: Final[Mapping[FieldType, Schema]] = {
    FieldType.ADDRESS: _ADDRESS,
    FieldType.FLAG: _FLAG,
    FieldType.DURATION: {"type": "string"},
    FieldType.LABELS: _map(_TEXT),
    FieldType.POD: _of("kubernetes", own_fields.KUBERNETES, {"imagePullSecrets": _LINES}),
    FieldType.SECRETS: _map({"type": "string", "pattern": f"^(?:{user_secret.PATTERN.pattern})$"}),
}


def _v1(dialect: FormDialect) -> Schema:
    scm, qizhi = dialect is FormDialect.SCM, dialect is FormDialect.QIZHI
    port = _of("port", v1_ports.PORT)
    counters = ("minFailedTaskCount", "minSucceededTaskCount")
    role = _of(
        "role",
        v1.ROLE,
        _merged(
            {"portList": _list(port), "command": {"x-widget": "textarea"}},
            {"gpuNumber": {"x-widget": "gpus"}, "cpuNumber": {"x-widget": "cpus"}, "memoryMB": {"x-widget": "memory"}},
            {} if scm else {"storageGB": _LEFT_OUT},
            dict.fromkeys(counters, _LEFT_OUT if qizhi else {"x-widget": "count"}),
        ),
    )
    variables = _map(_SCALAR) | {"properties": {"isDebug": _worded(_FLAG, FIELDS["isDebug"])}}
    own = _worded(_own(own_fields.COMMON) | {"x-section": "more"}, FIELDS["jupyterPai"])
    return _of(
        "job",
        v1.JOB,
        _merged(
            {"taskRoles": _list(role), "jobEnvs": variables, "tmp": _LEFT_OUT},
            {"extras": {"type": "object", "properties": {own_fields.KEY: own}, "x-section": "more"}},
            _PLACES,
            {"virtualCluster": {"x-widget": "virtual-cluster"}, "gpuType": {"x-widget": "gpu-type"}},
            {"image": {"x-widget": "image"}, "address": _ADDRESS},
            _placed("basics", "jobName", "address", "retryCount"),
            _placed("cluster", "virtualCluster", "gpuType"),
            _placed("environment", "image", "authFile", "dataDir", "codeDir", "outputDir", "jobEnvs"),
            _placed("roles", "taskRoles"),
            _placed("basics" if qizhi else "more", "killAllOnCompletedTaskNumber"),
        ),
    )


def _v2_role() -> Schema:
    resources = {
        "ports": _map({"type": "integer", "minimum": 1}),
        "gpu": {"x-widget": "gpus"},
        "cpu": {"x-widget": "cpus"},
        "memoryMB": {"x-widget": "memory"},
    }
    left_out = dict.fromkeys(("minFailedTaskCount", "minSucceededTaskCount"), _LEFT_OUT)
    return _of(
        "role",
        v2.ROLE,
        {
            "completion": _of("completion", v2.COMPLETION, left_out),
            "prerequisites": _LINES,
            "extraContainerOptions": _of("container", v2.CONTAINER, {"infiniband": _FLAG}),
            "resourcePerInstance": _of("resources", v2.RESOURCES, resources),
            "commands": _LINES,
        },
    )


def _prerequisite() -> Schema:
    auth = _of("auth", v2.AUTH, {"password": {"x-widget": "secret"}})
    policy = {"enum": ["fail", "ignore"]}
    shapes = {
        "type": {"enum": list(v2_prerequisites.KINDS)},
        "protocolVersion": _LEFT_OUT,
        "version": _VERSION,
        "auth": auth,
        "require": _LINES,
        "failurePolicy": policy,
        "callbacks": _LEFT_OUT,
        "plugin": _LEFT_OUT,
        "uri": {"type": ["string", "array"], "items": _TEXT, "x-widget": "text-or-lines"},
    }
    return _of("prerequisite", v2.IMAGE, shapes)


def _plugin() -> Schema:
    """An entry of the plugins; its settings depend on which plugin it is."""
    callback = _of("callback", v2.CALLBACK, {"event": {"enum": ["taskStarts", "taskSucceeds"]}, "commands": _LINES})
    user = _of("userssh", v2.USER_SSH, {"value": {"x-widget": "textarea"}})
    ssh = {"jobssh": _FLAG, "userssh": user, "sshbarrier": _FLAG, "sshbarriertaskroles": _LINES}
    shapes: dict[str, dict[str, Schema]] = {
        "ssh": ssh,
        "cmd": {"preCommands": _LINES, "postCommands": _LINES, "callbacks": _list(callback)},
        "teamwise_storage": {"storageConfigNames": _LINES},
        "tensorboard": {"logdir": _map(_TEXT)},
        "git": {"options": _LINES, "repo": _LEFT_OUT},
    }
    about: dict[str, Schema] = {
        "plugin": {"enum": list(plugins.PARAMETERS)},
        "parameters": _LEFT_OUT,
        "failurePolicy": {"enum": ["fail", "ignore"]},
        "taskroles": _LINES,
    }
    entry = _of("plugin", v2.PLUGIN, about)
    entry["allOf"] = [
        {
            "if": {"properties": {"plugin": {"const": kind}}, "required": ["plugin"]},
            "then": {"properties": {"parameters": _worded(_of(kind, table, shapes[kind]), _SETTINGS)}},
        }
        for kind, table in plugins.PARAMETERS.items()
    ]
    return entry


_SETTINGS: Final = FIELDS["plugin/parameters"]


def _hived() -> Schema:
    role = _of("hived role", v2.HIVED_ROLE, {"gpuType": _LEFT_OUT, "reservationId": _LEFT_OUT, "skuNum": _LEFT_OUT})
    role["properties"]["skuType"]["x-widget"] = "gpu-type"
    flags = dict.fromkeys(("gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes"), _FLAG)
    shapes = {"jobPriorityClass": {"enum": list(PriorityClass)}, "taskRoles": _map(role)}
    return _of("hived", v2.HIVED, {**flags, **shapes, "gangReleaseEnable": _LEFT_OUT})


def _extras() -> Schema:
    """What v2 gives a meaning in ``extras``."""
    own = _own(own_fields.JOB)
    role = _own({**document_fields(TaskRole), **document_fields(Resources)})
    role["properties"]["beginAt"] = _worded(_map({"type": "integer", "minimum": 0}), FIELDS["beginAt"])
    own["properties"]["taskRoles"] = _worded(_map(role), FIELDS["taskRoles"])
    notify = _object(
        "notify", dict.fromkeys(v2_extras.NOTIFICATIONS, _ANY), dict.fromkeys(v2_extras.NOTIFICATIONS, _FLAG)
    )
    parts: dict[str, tuple[str, Words, Schema]] = {
        "hivedScheduler": ("cluster", FIELDS["hivedScheduler"], _hived()),
        "gangAllocation": ("cluster", FIELDS["gangAllocation"], {**_FLAG, "x-fallback": True}),
        "storages": ("environment", FIELDS["storages"], _list(_of("storage", v2.STORAGE))),
        plugins.KEY: ("plugins", FIELDS["plugins"], _list(_plugin())),
        "jobStatusChangeNotification": ("more", FIELDS["jobStatusChangeNotification"], notify),
        own_fields.KEY: ("more", FIELDS["jupyterPai"], own),
    }
    properties = {name: _worded({**shape, "x-section": at}, words) for name, (at, words, shape) in parts.items()}
    return {"type": "object", "properties": properties}


_ANY: Final = Field(FieldKind.ANY)


def _v2() -> Schema:
    deployed = _of("deployed", v2.DEPLOYED, {"preCommands": _LINES, "postCommands": _LINES})
    deployment = _of(
        "deployment", v2.DEPLOYMENT, {"protocolVersion": _LEFT_OUT, "version": _VERSION, "taskRoles": _map(deployed)}
    )
    defaults = _of(
        "defaults",
        v2.DEFAULTS,
        {
            "virtualCluster": {"x-widget": "virtual-cluster", "x-section": "cluster"},
            "deployment": {"x-section": "deployments"},
        },
    )
    return _of(
        "job",
        v2.JOB,
        _merged(
            {"protocolVersion": {"const": 2, **_HIDDEN}, "type": {"const": "job", **_HIDDEN}},
            {"version": _VERSION, "description": {"x-widget": "textarea"}},
            {"prerequisites": _list(_prerequisite()), "parameters": _map(_SCALAR)},
            {"secrets": _map({"type": "string", "x-widget": "secret"})},
            {"taskRoles": _map(_v2_role()), "deployments": _list(deployment), "defaults": defaults},
            {"extras": _extras()},
            _placed("basics", "protocolVersion", "type", "name", "version", "contributor", "description"),
            _placed("basics", "jobRetryCount"),
            _placed("environment", "prerequisites", "parameters", "secrets"),
            _placed("roles", "taskRoles"),
            _placed("deployments", "deployments"),
        ),
    )


@cache
def job_schema(dialect: FormDialect) -> Schema:
    """The JSON Schema of the documents of a dialect; not to be changed."""
    found = _v2() if dialect is FormDialect.V2 else _v1(dialect)
    used = _sections(found)
    sections = [
        {"id": each, "title": words.title, "x-words": {"zh_CN": {"title": words.title_zh}}}
        for each, words in SECTIONS.items()
        if each in used
    ]
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "x-dialect": dialect.value}
    return {**about, **found, "x-sections": sections}


def _sections(schema: Schema) -> set[str]:
    found = {schema["x-section"]} if "x-section" in schema else set()
    return found.union(*(_sections(each) for each in schema.get("properties", {}).values()))
