"""OpenPAI's ``services-configuration.yaml``, in which HiveD's configuration is a text: ``hivedscheduler: config: |``.

Source: the seeds' scheduling lab, whose two configurations are written so.
"""

from __future__ import annotations

import re

import yaml

from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path

KEY = "hivedscheduler"
_BLOCK = "|"
_LINE = re.compile(r"[^\n\r\x85\u2028\u2029]*+(?:\r\n|[\n\r\x85\u2028\u2029]|\Z)")  # as YAML counts them


def unwrapped(root: yaml.MappingNode, text: str, faults: Faults) -> yaml.MappingNode | None:
    """HiveD's own configuration within ``root``, the root of ``text``; ``root`` itself where nothing is around it.

    Places stay those of ``text``: its other lines are emptied and the block is read where it stands. None with the
    fault recorded.
    """
    if not any(isinstance(key, yaml.ScalarNode) and key.value == KEY for key, _ in root.value):
        return root
    outer = document.mapping(root, (), faults)
    path: Path = (KEY, "config")
    if "physicalCluster" in outer:
        faults.error((KEY,), outer[KEY], f"{KEY} stands beside physicalCluster", "Keep one of the two.")
        return None
    for name in outer:
        if name != KEY:
            faults.warn((name,), outer[name], f"{name} means nothing here", f"Only {KEY} is read of such a file.")
    inner = document.mapping(outer[KEY], (KEY,), faults, ("config",)).get("config")
    if isinstance(inner, yaml.MappingNode):
        return inner
    if not isinstance(inner, yaml.ScalarNode) or inner.style != _BLOCK:
        hint = "Write `config: |` and the configuration below it, further to the right."
        faults.error(path, inner or outer[KEY], f"{KEY} has no config", hint)
        return None
    lines = _LINE.findall(text)
    first, end = inner.start_mark.line + 1, inner.end_mark.line
    return document.compose("\n" * first + "".join(lines[first : max(end, first)]), faults)
