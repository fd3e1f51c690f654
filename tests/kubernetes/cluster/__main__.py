"""A cluster to play with: ``python -m tests.kubernetes.cluster start`` (or ``stop``, ``prepare [nodes]``)."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.kubernetes.cluster import images, programs, slots
from tests.kubernetes.cluster.cluster import Cluster, joined, started, sweep

NODES = ("carol", "dan")

_TOLD = """\
Kubernetes runs in slot {slot}: nodes carol and dan, each with one GPU that does not exist.

  export KUBECONFIG={kubeconfig}
  export PATH={programs}:$PATH
  kubectl get nodes
  kubectl run hello --image={busybox} --restart=Never -- echo hello
  kubectl logs hello

Images on the nodes: {busybox} and {python}; nothing is pulled from outside.
Logs are in {directory}. It stays until `make cluster-stop`, also when this shell ends."""


async def start() -> None:
    """Start a cluster that stays; one that stays already is shown again."""
    for slot in slots.slots():
        if slot.kept:
            async with joined(slot.number) as there:
                _tell(there)
            return
    async with started(NODES) as cluster:
        for name in NODES:
            await cluster.give_gpus(name, 1)
        cluster.slot.keep()
        _tell(cluster)


async def stop() -> None:
    """Stop every cluster that was told to stay, and remove what killed test runs have left."""
    for slot in slots.slots():
        slot.forget()
    ended = await slots.sweep_unused(sweep)
    print(f"{ended} stopped and removed" if ended else "none was running")


def prepare(*, nodes_alone: bool) -> None:
    """Build what nodes are made of and run, and all else that tests need, in the order in which they need it."""
    programs.build(*programs.CONTROL_PLANE, *programs.NODE)
    images.ensure(programs.images())
    if not nodes_alone:
        programs.build()


def _tell(cluster: Cluster) -> None:
    told = _TOLD.format(
        slot=cluster.slot.number,
        kubeconfig=cluster.kubeconfig,
        programs=cluster.programs,
        directory=cluster.directory,
        busybox=images.BUSYBOX,
        python=images.PYTHON,
    )
    print(told)


def main() -> int:
    """Do what is asked, where this machine can."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.cluster", description=__doc__)
    parser.add_argument("what", choices=["start", "stop", "prepare"])
    parser.add_argument("part", nargs="?", choices=["nodes"], help="of what is prepared: what nodes are made of, alone")
    asked = parser.parse_args()
    if lacks := programs.lacking():
        print(f"No cluster can run here; missing: {', '.join(lacks)}.", file=sys.stderr)
        print("`tools/system-packages kubernetes` installs programs, or says how to.", file=sys.stderr)
        return 1
    if asked.what == "prepare":
        prepare(nodes_alone=asked.part == "nodes")
    else:
        asyncio.run(start() if asked.what == "start" else stop())
    return 0


if __name__ == "__main__":
    sys.exit(main())
