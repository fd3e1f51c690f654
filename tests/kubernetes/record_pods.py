"""Record what a real cluster says of pods and nodes: ``python -m tests.kubernetes.record_pods [CASE …]``.

It starts a cluster of its own, makes each case of ``pod_cases`` happen, and writes the pods as a mirror would keep them
into ``tests/data/kubernetes/pods``, without what is this machine's own. Run it after an update of Kubernetes; the
tests of readings then say what has changed.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pai_backend.engine.kubernetes.objects import slim_pod
from tests.kubernetes import pod_cases
from tests.kubernetes.cluster import images
from tests.kubernetes.cluster.cluster import started
from tests.kubernetes.cluster.kubectl import Json
from tests.kubernetes.fixtures import Kubernetes

DATA = Path(__file__).resolve().parents[1] / "data" / "kubernetes"
AT_ONCE = 4
OF_THIS_MACHINE = (
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "containerID",
    "imageID",
    "bootID",
    "machineID",
    "systemUUID",
    "resourceVersion",
    "uid",
    "images",
    "addresses",
)


def scrubbed(found: Any) -> Any:
    """The same without addresses and identities of this machine."""
    if isinstance(found, dict):
        return {key: scrubbed(value) for key, value in found.items() if key not in OF_THIS_MACHINE}
    return [scrubbed(each) for each in found] if isinstance(found, list) else found


def write(path: Path, found: Json) -> None:
    """Write an object so that a change of it is a small difference."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(scrubbed(found), indent=1, sort_keys=True) + "\n")


async def record(wanted: list[str]) -> int:
    """Record the cases of these names, all when there are none; the number of those that did not come about."""
    async with started() as cluster:
        for node in await cluster.add_nodes(("carol", "dan")):
            await cluster.give_gpus(node.name, 1)
        for name in ("carol", "dan"):
            found = await cluster.kubectl.get("node", name)
            found["metadata"].pop("managedFields", None)
            write(DATA / "nodes" / f"{name}.json", found)
        kubernetes = Kubernetes(cluster.kubectl.within("cases"), images.BUSYBOX, images.PYTHON)
        await kubernetes.kubectl("create", "namespace", "cases")
        await kubernetes.kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default")
        bench = await pod_cases.bench_in(kubernetes, kubernetes.kubectl)
        few = asyncio.Semaphore(AT_ONCE)
        gentle = [_one(few, name, functools.partial(case, bench), wanted) for name, case in pod_cases.CASES.items()]
        failures = sum(await asyncio.gather(*gentle))
        for name, case in pod_cases.ROUGH.items():
            failures += await _one(few, name, functools.partial(case, bench), wanted)
        for name, harsh in pod_cases.HARSH.items():
            failures += await _one(few, name, functools.partial(harsh, bench, cluster), wanted)
        return failures


async def _one(few: asyncio.Semaphore, name: str, case: Callable[[], Awaitable[Json]], wanted: list[str]) -> int:
    if wanted and name not in wanted:
        return 0
    async with few:
        try:
            pod = await case()
        except Exception as error:  # noqa: BLE001 - one case that does not come about is no reason to lose the others
            sys.stderr.write(f"{name}: {error}\n")
            return 1
    write(DATA / "pods" / f"{name}.json", slim_pod(pod))
    sys.stderr.write(f"{name}: recorded\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(record(sys.argv[1:])))
