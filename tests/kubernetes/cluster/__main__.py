"""A cluster to play with: ``python -m tests.kubernetes.cluster start`` (or ``stop``, ``prepare``, ``able``)."""

from __future__ import annotations

import argparse
import asyncio
import os
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


def prepare() -> None:
    """Build all that tests need, in the order in which they need it."""
    programs.build(*programs.CONTROL_PLANE, *programs.NODE)
    images.ensure(programs.images())
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
    parser.add_argument("what", choices=["start", "stop", "prepare", "able"])
    what = parser.parse_args().what
    lacks = programs.lacking()
    if what == "able":
        if given := os.environ.get("PAI_TEST_KUBECONFIG"):
            print(f"Tests on Kubernetes: conformance, on the cluster that PAI_TEST_KUBECONFIG={given} names.")
            return 0
        if lacks:
            print(f"Tests on Kubernetes are left out: none can run here; missing: {', '.join(lacks)}.")
        else:
            print("Tests on Kubernetes: conformance. `make test-kubernetes` runs all of them.")
        return 1 if lacks else 0
    if lacks:
        print(f"No cluster can run here; missing: {', '.join(lacks)}.", file=sys.stderr)
        print("`tools/system-packages kubernetes` installs programs, or says how to.", file=sys.stderr)
        return 1
    if what == "prepare":
        prepare()
    else:
        asyncio.run(start() if what == "start" else stop())
    return 0


if __name__ == "__main__":
    sys.exit(main())
