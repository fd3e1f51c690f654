"""Documents to fuzz with: bytes, pieces of documents, real ones with damage, and wrong values under right names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from pai_backend.protocol import extension, own_fields, v1, v1_ports, v2_tables

DATA = Path(__file__).parents[1] / "data" / "documents"
DOCUMENTS = [path for path in sorted(DATA.rglob("*")) if path.suffix in (".json", ".yaml")]
REAL = [path.read_bytes() for path in DOCUMENTS]

TOKENS = [
    *"{}[],:\"'\\#&*!|>%@`?-<~ \t\n\r",
    *(
        "//",
        "/*",
        "*/",
        "---\n",
        "...\n",
        "\r\n",
        "\n  ",
        "<<: ",
        "&a ",
        "*a",
        "!!str ",
        "? ",
        "- ",
        "\ufeff",
        "\u00a0",
    ),
    *("null", "true", "~", "-1", "0", "1e3", "0o7", "0x1F", ".inf", "NaN", "9" * 30, "1.5", '""', "''", "|\n", ">-\n"),
    *("<% $secrets.a %>", "<% $parameters.a[0] %>", "<% $data.uri[0] %>", "<%", "%>", "$QIZHI_JOB_NAME", "'$QIZHI_A'"),
    *("<<E\n", "\\u0000", "\\ud800", "训练", "😀", "\x07", "\x85", "\u2028", '"\n', ': "', "protocolVersion: 2\n"),
]
TABLES = (
    v1.JOB, v1.ROLE, v1_ports.PORT, v2_tables.JOB, v2_tables.ROLE, v2_tables.COMPLETION, v2_tables.CONTAINER,
    v2_tables.RESOURCES, v2_tables.IMAGE, v2_tables.AUTH, v2_tables.DEPLOYMENT, v2_tables.DEPLOYED, v2_tables.DEFAULTS,
    v2_tables.HIVED, v2_tables.HIVED_ROLE, v2_tables.STORAGE, v2_tables.PLUGIN, v2_tables.SSH, v2_tables.CMD,
    v2_tables.TENSORBOARD, v2_tables.GIT, extension.JOB, extension.ROLE, extension.NAMES,
)  # fmt: skip
FIELDS = sorted({name for table in TABLES for name in table.fields} | {own_fields.KEY, "worker", "a", "isDebug"})
WORDS = st.sampled_from([*FIELDS, "dockerimage", "data", "script", "output", "job", "default", "image", "python", "x"])
LEAVES = WORDS | st.sampled_from(TOKENS) | st.none() | st.booleans() | st.integers(-2, 3) | st.integers() | st.floats()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)
V1 = {"jobName": "j", "image": "i", "taskRoles": [{"name": "worker", "command": "x", "portList": [{"label": "a"}]}]}
V2 = {
    "protocolVersion": 2,
    "name": "j",
    "type": "job",
    "prerequisites": [
        {"name": "image", "type": "dockerimage", "uri": "x", "auth": {"password": "p"}},
        {"name": "data", "type": "data", "uri": ["x"]},
    ],
    "parameters": {"a": [1]},
    "secrets": {"a": "hunter2"},
    "taskRoles": {
        "worker": {
            "dockerImage": "image",
            "data": "data",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0, "ports": {"a": 1}},
            "commands": ["echo <% $parameters.a[0] %>"],
        }
    },
    "deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": ["x"]}}}],
    "defaults": {"deployment": "d"},
    "extras": {"hivedScheduler": {"taskRoles": {"worker": {}}}, own_fields.KEY: {"taskRoles": {"worker": {}}}},
}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real document with pieces put in, taken out, doubled or replaced."""
    text = draw(st.sampled_from(REAL))
    for _ in range(draw(st.integers(1, 8))):
        at, size = draw(st.integers(0, len(text))), draw(st.integers(0, 40))
        piece = draw(st.sampled_from(TOKENS).map(str.encode) | st.binary(max_size=3) | st.just(text[at : at + size]))
        text = text[:at] + piece + text[at + draw(st.sampled_from([0, size])) :]
    return text


def _places(value: Any) -> list[Any]:
    """The objects and lists within a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict | list) else []) + [place for item in inner for place in _places(item)]


@st.composite
def changed(draw: st.DrawFn) -> Any:
    """A good document of v1 or v2 with any values under names that mean something."""
    whole = json.loads(json.dumps(draw(st.sampled_from([V1, V2]))))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.sampled_from(_places(whole)))
        if isinstance(place, dict):
            place[draw(st.sampled_from([*place, *FIELDS]))] = draw(VALUES)
        else:
            place.insert(draw(st.integers(0, len(place))), draw(VALUES))
    return whole


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SHELL = st.lists(st.sampled_from(TOKENS) | TEXTS, min_size=1, max_size=12).map("".join)
NAMES = st.from_regex(r"[A-Za-z0-9._~]{1,8}", fullmatch=True)
TAGS = ["<% $secrets.a %>", "<% $parameters.a[0] %>", "<% $parameters.a %>", "% $secrets.a %>", "", " ", "hunter2"]
PIECES = st.lists(st.sampled_from(TAGS), max_size=3).map("".join)
PASSWORDS = SHELL | PIECES | VALUES
"""What may stand for a password, tags and texts of all kinds in it."""
OBJECTS = st.dictionaries(WORDS | TEXTS, VALUES, max_size=4)


@st.composite
def good(draw: st.DrawFn) -> Any:
    """A document that is most likely accepted: anything where anything may stand."""
    if draw(st.booleans()):
        role = {"name": draw(NAMES), "command": draw(SHELL), "storageGB": 1, "taskNumber": draw(st.integers(1, 9))}
        role["portList"] = [{"label": draw(NAMES), "beginAt": draw(st.sampled_from([0, 8000]))}]
        role |= draw(st.fixed_dictionaries({}, optional={"minFailedTaskCount": st.none(), "shmMB": st.integers(0, 99)}))
        job = {"jobName": "j" + draw(NAMES), "image": "i", "taskRoles": [role], "jobEnvs": draw(OBJECTS)}
        optional = {"extras": OBJECTS, "tmp": VALUES, "dataDir": SHELL, "retryCount": st.integers(-2, 9)}
        return job | draw(st.fixed_dictionaries({}, optional=optional))
    job = json.loads(json.dumps(V2))
    job["secrets"] |= draw(OBJECTS)
    job["parameters"] |= draw(OBJECTS)
    job["description"] = draw(TEXTS)
    job["extras"] |= {
        "own": draw(VALUES),
        own_fields.KEY: draw(st.dictionaries(st.sampled_from([*extension.JOB.fields]), VALUES, max_size=2)),
    }
    job["taskRoles"]["worker"]["commands"] = draw(st.lists(SHELL, min_size=1, max_size=3))
    for number, one in enumerate(job["prerequisites"]):
        if number == 0 or draw(st.booleans()):
            one["auth"] = {draw(st.sampled_from(["password", "passward"])): draw(PASSWORDS)}
    job["parameters"]["a"] = draw(st.lists(PIECES | VALUES, min_size=1, max_size=3))
    if draw(st.booleans()):
        job["taskRoles"]["worker"]["commands"].append("<% $data.auth.password %>")
    return job


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A value as JSON or as YAML in one of its styles."""
    value = draw(good() | changed() | VALUES)
    if draw(st.booleans()) or (isinstance(value, dict) and "jobName" in value):
        return json.dumps(value, indent=draw(st.sampled_from([None, 1]))).encode(errors="replace")
    style = {
        "default_style": draw(st.sampled_from([None, '"', "'", "|", ">"])),
        "default_flow_style": draw(st.booleans()),
        "width": draw(st.sampled_from([10, 80])),
    }
    dump: Callable[..., str] = yaml.safe_dump
    return dump(value, sort_keys=False, **style).encode(errors="replace")


SOURCES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(TOKENS) | WORDS, max_size=60).map("".join).map(lambda text: text.encode(errors="replace")),
    damaged(),
    written(),
    written(),
)
