"""Documents of tests, in both protocols; their image is put in by the room that they are run in."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

Document = dict[str, Any]

MEMORY_MB = 128


def submitted(document: Document) -> pytest.MarkDecorator:
    """Give a test the fixture ``job``: this document's, submitted when the first of its module is needed."""
    return pytest.mark.document(document)


def v2_role(*commands: str, instances: int = 1, ports: Mapping[str, int] | None = None, **fields: Any) -> Document:
    """A role of OpenPAI v2 that asks for no whole CPU, so that many run at once on a small machine."""
    resources: Document = {"cpu": 0, "memoryMB": MEMORY_MB, "gpu": 0}
    if ports:
        resources["ports"] = dict(ports)
    return {
        "instances": instances,
        "dockerImage": "image",
        "extraContainerOptions": {"shmMB": 64},
        "resourcePerInstance": resources,
        "commands": list(commands),
        **fields,
    }


def v2(roles: Mapping[str, Document] | None = None, /, *commands: str, **fields: Any) -> Document:
    """A document of OpenPAI v2, which has a role ``main`` with these commands unless ``roles`` are given."""
    return {
        "protocolVersion": 2,
        "name": "conformance",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "put-in-by-the-room"}],
        "taskRoles": dict(roles) if roles else {"main": v2_role(*commands)},
        **fields,
    }


def commands(*lines: str, **fields: Any) -> Document:
    """A document of OpenPAI v2 with one task that runs these lines."""
    return v2(None, *lines, **fields)


def v1_role(command: str, name: str = "main", count: int = 1, **fields: Any) -> Document:
    """A role of OpenPAI v1; it asks for one CPU, the least that v1 allows."""
    role = {"name": name, "taskNumber": count, "cpuNumber": 1, "memoryMB": MEMORY_MB, "gpuNumber": 0}
    return {**role, "command": command, **fields}


def v1(*roles: Document, **fields: Any) -> Document:
    """A document of OpenPAI v1."""
    return {"jobName": "conformance", "image": "put-in-by-the-room", "taskRoles": list(roles), **fields}


def with_image(document: Document, image: str) -> Document:
    """The document with all its images replaced."""
    made = copy.deepcopy(document)
    if "jobName" in made:
        made["image"] = image
    for each in made.get("prerequisites", ()):
        if each["type"] == "dockerimage":
            each["uri"] = image
            each.pop("auth", None)
    return made
