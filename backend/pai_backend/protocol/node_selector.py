"""``nodeSelector``: labels that a node must have to run the job's tasks, as a pod of Kubernetes asks for them.

It narrows the choice among the nodes that the administrator lets such tasks use, and opens none. It holds for all tasks
of the job: a gang is placed together, so that its tasks cannot ask for different nodes.
"""

from __future__ import annotations

from typing import Final

from pai_backend.model.labels import KEY_RULE, VALUE_RULE, is_label_key, is_label_value
from pai_backend.protocol.fields import Members, Reader, kind_of
from pai_backend.protocol.locate import Node, Unreadable
from pai_backend.protocol.position import shown

NAME: Final = "nodeSelector"
"""The field, in ``extras.jupyterPai`` of v1 and v2."""
MOST_LABELS: Final = 32
"""Labels of one selector: each node is compared with all of them."""


def read_node_selector(own: Members, reader: Reader) -> dict[str, str]:
    """The labels that ``own``, the members of ``extras.jupyterPai``, ask for; what is no label is a fault."""
    entries, path = own.entries(NAME), (*own.path, NAME)
    if len(entries) > MOST_LABELS:
        message = f"{NAME} has {len(entries)} labels"
        reader.fault(path, own.at(NAME), message, f"Ask for at most {MOST_LABELS}.")
        return {}
    found = {}
    for key, node in entries.items():
        if not is_label_key(key):
            reader.fault((*path, key), node.key_at, f"{shown(key)} is not a valid label key", f"It {KEY_RULE}.")
        elif isinstance(node.value, str) and is_label_value(node.value):
            found[key] = node.value
        elif isinstance(node.value, str):
            reader.fault((*path, key), node.at, f"the value of {key} is not a valid label value", f"It {VALUE_RULE}.")
        elif not isinstance(node.value, Unreadable):
            _not_text(key, node, own, reader)
    return found


def _not_text(key: str, node: Node, own: Members, reader: Reader) -> None:
    message = f"the value of {key} must be text, not {kind_of(node)}"
    reader.fault((*own.path, NAME, key), node.at, message, "Put it in double quotes.")
