"""Names of the protocol's drafts from before 2019, and misspellings in its own examples, as names of today.

Each stands for one field only, at the one place where it is looked for, so what was meant is certain; a
document that has both the old and the new name is left as it is, and the reader says which is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import Node
from pai_backend.protocol.position import shown

_JOB: Final = {
    "protocol_version": "protocolVersion",
    "default": "defaults",
    "job_retry_count": "jobRetryCount",
    "task_roles": "taskRoles",
}
_ROLE: Final = {
    "instance": "instances",
    "resourcePerInstanec": "resourcePerInstance",
    "resource_per_instance": "resourcePerInstance",
    "task_retry_count": "taskRetryCount",
    "docker_image": "dockerImage",
    "extra_container_options": "extraContainerOptions",
}
_IN_ROLE: Final = {
    "completion": {
        "min_failed_instances": "minFailedInstances",
        "min_succeeded_instances": "minSucceededInstances",
    },
    "resourcePerInstance": {"memory_mb": "memoryMB"},
    "extraContainerOptions": {"shm_mb": "shmMB"},
}
_PREREQUISITE: Final = {"protocol_version": "protocolVersion"}
_AUTH: Final = {"passward": "password", "registry_uri": "registryuri"}
PASSWORDS: Final = ("password", *(old for old, new in _AUTH.items() if new == "password"))
"""The names under which the password of an ``auth`` is read."""
_DEFAULTS: Final = {"virtual_cluster": "virtualCluster"}
_DEPLOYMENT: Final = {"task_roles": "taskRoles"}
_DEPLOYED: Final = {"pre_commands": "preCommands", "post_commands": "postCommands"}


def modernised(root: Node, reader: Reader) -> tuple[Node, bool]:
    """``root`` with today's names, and whether it had others; warns of each. ``root`` itself is not changed."""
    names = _Names(reader)
    job = names.renamed(root, (), _JOB)
    for name, change in (
        ("taskRoles", names.role),
        ("prerequisites", names.prerequisite),
        ("deployments", names.deployment),
    ):
        job = names.within(job, (), name, partial(names.each, change=change))
    job = names.within(job, (), "defaults", partial(names.renamed, names=_DEFAULTS))
    return job, names.found


_Change = Callable[[Node, Path], Node]


class _Names:
    """Renames members; each method gives back the node it was given when there is nothing to rename."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.found = False

    def renamed(self, node: Node, path: Path, names: Mapping[str, str]) -> Node:
        """``node`` with the members in ``names`` under their new names."""
        if not isinstance(node.value, dict) or names.keys().isdisjoint(node.value):
            return node
        members = {}
        for key, member in node.value.items():
            new = names.get(key, key)
            if new != key and new not in node.value:
                self.found = True
                if self.reader.room_for_warning():
                    message = f"{shown(key)} is read as {new}"
                    self.reader.warn("draft-name", (*path, key), message, f"Write {new}.")
                members[new] = member
            else:
                members[key] = member
        return Node(members, node.at, node.key_at)

    def within(self, node: Node, path: Path, name: str, change: _Change) -> Node:
        """``node`` with its member ``name`` changed."""
        if not isinstance(node.value, dict) or name not in node.value:
            return node
        old = node.value[name]
        new = change(old, (*path, name))
        return node if new is old else Node({**node.value, name: new}, node.at, node.key_at)

    def each(self, node: Node, path: Path, change: _Change) -> Node:
        """``node`` with every member or item changed."""
        if isinstance(node.value, dict):
            members = {key: change(member, (*path, key)) for key, member in node.value.items()}
            same = all(member is node.value[key] for key, member in members.items())
            return node if same else Node(members, node.at, node.key_at)
        if isinstance(node.value, list):
            items = [change(item, (*path, number)) for number, item in enumerate(node.value)]
            same = all(item is old for item, old in zip(items, node.value, strict=True))
            return node if same else Node(items, node.at, node.key_at)
        return node

    def role(self, node: Node, path: Path) -> Node:
        """A task role."""
        node = self.renamed(node, path, _ROLE)
        for name, names in _IN_ROLE.items():
            node = self._inside(node, path, name, names)
        return node

    def prerequisite(self, node: Node, path: Path) -> Node:
        """A prerequisite."""
        return self._inside(self.renamed(node, path, _PREREQUISITE), path, "auth", _AUTH)

    def deployment(self, node: Node, path: Path) -> Node:
        """A deployment and its roles."""
        node = self.renamed(node, path, _DEPLOYMENT)
        return self.within(node, path, "taskRoles", partial(self.each, change=self._deployed))

    def _deployed(self, node: Node, path: Path) -> Node:
        return self.renamed(node, path, _DEPLOYED)

    def _inside(self, node: Node, path: Path, name: str, names: Mapping[str, str]) -> Node:
        """``node`` with the members of its member ``name`` renamed."""
        if not isinstance(node.value, dict):
            return node
        inner = node.value.get(name)
        if inner is None or not isinstance(inner.value, dict) or names.keys().isdisjoint(inner.value):
            return node
        return Node({**node.value, name: self.renamed(inner, (*path, name), names)}, node.at, node.key_at)
