"""The main job on a real Kubernetes: the same notebook and the same summary as ``demo.py``; run from the checkout.

Usage: ``python -m examples.demo_kubernetes [NOTEBOOK]``. The cluster is the one that PAI_TEST_KUBECONFIG names, else
the one of ``make cluster``, which is started when it does not run, and stays. Its nodes get the runtime bundle and an
image with Jupyter, called as the documents call theirs. Of another cluster PAI_TEST_RUNTIME_IMAGE must name an image
that its nodes can fetch, and they must be able to fetch those of the documents. Exit code 0, or 1 with one line that
says what failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from examples.demo import EXAMPLES, DemoFailed, demo
from jupyter_pai.errors import ClientError
from pai_backend.engine.base import EngineError
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.removal import remove_all
from pai_backend.model.cluster_settings import NamespacePer
from tests.kubernetes import notebook_image, runtime_image
from tests.kubernetes.cluster import __main__ as to_play_with
from tests.kubernetes.cluster import images, programs, slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.cluster.commands import CommandFailed, NotInTime
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import GIVEN


@dataclass(frozen=True)
class Stage:
    """A cluster with all that the notebook needs."""

    kubectl: Kubectl
    runtime: str


@contextlib.asynccontextmanager
async def stage(given: Path | None) -> AsyncIterator[Stage]:
    """The cluster to use: that of a kubeconfig, or the one that stays here. Raises DemoFailed."""
    if given is not None and slots.ROOT not in given.parents:
        runtime = os.environ.get(runtime_image.GIVEN, "")
        if not runtime:
            raise DemoFailed(f"{runtime_image.GIVEN} must name the runtime image that the nodes of this cluster fetch")
        kubectl = await asyncio.to_thread(programs.build, "kubectl") / "kubectl"
        yield Stage(Kubectl(kubectl, given), runtime)
        return
    if given is None and not any(slot.kept for slot in slots.slots()):
        await _start()
    number = given.parent.name if given is not None else next(slot.number for slot in slots.slots() if slot.kept)
    async with joined(int(number)) as cluster:
        yield Stage(cluster.kubectl, await _prepared(cluster))


async def _start() -> None:
    lacks = programs.lacking()
    if lacks:
        raise DemoFailed(f"no Kubernetes cluster can run here; missing: {', '.join(lacks)}")
    with contextlib.redirect_stdout(sys.stderr):
        await to_play_with.start()


async def _prepared(cluster: Cluster) -> str:
    """Put both images on the nodes; the name of the runtime's."""
    runtime = await runtime_image.loaded(cluster)
    archive = await asyncio.to_thread(notebook_image.built, programs.images())
    first, *others = notebook_image.REFERENCES
    for node in cluster.nodes.values():
        if not await node.has_image(first):
            await node.load_image(archive)
        for other in others:
            await node.ctr("images", "tag", "--force", first, other)
    return runtime


def configuration(at: Stage, namespace: str) -> str:
    """The backend's, with the lab's word for GPUs that nothing else names."""
    return yaml.safe_dump(
        {
            "cluster_name": "lab",
            "engine": {"kind": "kubernetes"},
            "kubernetes": {
                "kubeconfig": str(at.kubectl.kubeconfig),
                "namespace": namespace,
                "pods": {"runtime_image": at.runtime},
                "nodes": {"gpu_types": {"GPU": "TITANX"}},
            },
        }
    )


async def run(place: Path, notebook: Path, given: Path | None) -> None:
    """Prepare the cluster, run the notebook, and leave nothing of it. Raises DemoFailed, ClientError."""
    began = time.monotonic()
    async with stage(given) as at:
        namespace = f"pai-demo-{uuid.uuid4().hex[:8]}"
        await at.kubectl("create", "namespace", namespace)
        try:
            config = place / "backend.yaml"
            config.write_text(configuration(at, namespace), encoding="utf-8")
            ready = (await at.kubectl("get", "nodes", "-o", "name")).split()
            print(f"  {time.monotonic() - began:5.1f} s  a cluster with {len(ready)} nodes, images on them", flush=True)
            await asyncio.to_thread(demo, place, notebook, config, "nodes of Kubernetes")
        finally:
            # Pods that the backend has not forgotten would keep the namespace.
            await remove_all(Access(at.kubectl.kubeconfig, None, namespace), NamespacePer.CLUSTER, "lab")
            await at.kubectl("delete", "namespace", namespace, "--wait=false")


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory(prefix="pai-demo-", ignore_cleanup_errors=True) as place:
        try:
            notebook = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES / "quickstart.ipynb"
            given = os.environ.get(GIVEN)
            asyncio.run(run(Path(place), notebook, Path(given).resolve() if given else None))
        except (DemoFailed, ClientError, EngineError, CommandFailed, NotInTime, images.ImageFailed) as error:
            print(f"The demo failed: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("The demo was interrupted.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
