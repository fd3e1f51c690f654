"""``python -m pai_backend cluster init``: a cluster configuration to start from, made of the engine's nodes."""

from __future__ import annotations

import asyncio
import sys

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.parts import Parts
from pai_backend.scheduling.config.closed import notes
from pai_backend.scheduling.config.derive import derive, to_yaml

_HEAD = """\
# Made from the nodes of {name}. Every node belongs to the virtual cluster `default`; divide them as you like, add
# switches and racks as levels above or below the nodes, and name this file in `cluster.config`.
"""


def main(arguments: list[str], version: str) -> int:
    """Print the configuration; exit code 2, and one line a fault, when our own configuration is wrong."""
    try:
        settings = load(arguments).settings
    except ConfigError as error:
        for line in error.lines:
            sys.stderr.write(f"pai_backend: {line}\n")
        return 2
    sys.stdout.write(asyncio.run(_written(Parts(settings, (), version, asyncio.Event()))))
    return 0


async def _written(parts: Parts) -> str:
    parts.engine()
    try:
        said = "".join(f"#\n# {note}\n" for note in notes(parts.configured_nodes))
        return _HEAD.format(name=parts.settings.cluster_name) + said + to_yaml(derive(parts.configured_nodes))
    finally:
        await parts.aclose()
