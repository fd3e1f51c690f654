"""Reading job documents: what a user waits for, what a program submits, and what an enemy can cost.

Times are of the processor and the best of several runs: others on the machine make them longer, nothing makes them
shorter. "Render" is the plan of the first task, with its variables and the command as bash gets it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench.figures import Figure, percentile
from pai_backend.launch.plan import build_plan
from pai_backend.model.errors import DocumentError
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.protocol import Document, read_document
from tests.support import hostile_json, hostile_yaml

DOCUMENTS = Path(__file__).resolve().parent.parent / "tests" / "data" / "documents"
SEEDS = (
    "scm-helloworld.json",
    "scm-jupyter.json",
    "qizhi-tensorflow-distributed.json",
    "openpai-v2-tensorflow-cifar10.yaml",
)
ROLES = 1000
RUNS = 200
LARGE_RUNS = 7
HOSTILE_RUNS = 3


async def measure() -> list[Figure]:
    """All figures of the documents benchmark."""
    return await asyncio.to_thread(_measured)


def _measured() -> list[Figure]:
    seeds = {name: _p50_ms((DOCUMENTS / name).read_bytes()) for name in SEEDS}
    slowest = max(seeds, key=lambda name: seeds[name])
    json_ms = _best_ms(lambda: json.loads(hostile_json.THOUSAND_ROLES), LARGE_RUNS)
    times = {name: _best_ms(partial(_answered, text), HOSTILE_RUNS) for name, text in _hostile().items()}
    dearest = max(times, key=lambda name: times[name])
    memory = {name: _peak_mib(text) for name, text in _hostile().items()}
    largest = max(memory, key=lambda name: memory[name])
    return [
        Figure("seed_p50", seeds[slowest], f"the slowest, {slowest}"),
        Figure("v1_1000_roles", _large_ms(hostile_json.THOUSAND_ROLES), f"json.loads alone {json_ms:.0f} ms"),
        Figure("v2_1000_roles", _large_ms(thousand_roles_of_v2())),
        Figure("hostile", times[dearest], f"of {len(times)} texts: {dearest}"),
        Figure("hostile_memory", memory[largest], f"of {len(memory)} texts: {largest}"),
    ]


def thousand_roles_of_v2() -> str:
    """A v2 document with as many roles as the v1 one, each with all its fields."""
    role = """\
  r{number}:
    instances: 1
    completion: {{minFailedInstances: 1, minSucceededInstances: -1}}
    taskRetryCount: 0
    dockerImage: image
    extraContainerOptions: {{shmMB: 64}}
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0, ports: {{a: 1, b: 1}}}}
    commands: ["python train.py --index {number} --rate <% $parameters.rate %>"]
"""
    head = (
        "protocolVersion: 2\nname: large\ntype: job\nprerequisites: [{name: image, type: dockerimage, uri: python}]\n"
    )
    roles = "".join(role.format(number=number) for number in range(ROLES))
    return f"{head}parameters: {{rate: 0.1}}\ntaskRoles:\n{roles}"


def _hostile() -> Mapping[str, str]:
    """All texts that were made to be dear."""
    return hostile_json.TEXTS | {f"{name} (YAML)": text for name, text in hostile_yaml.TEXTS.items()}


def _p50_ms(source: bytes) -> float:
    """Milliseconds to read a document and plan its first task, in the middle of many runs."""
    job = _placed(read_document(source))
    assert job.spec.task_roles[0].command
    took = []
    for _ in range(RUNS):
        started = time.process_time()
        document = read_document(source)
        plan = build_plan(job, job.tasks[0], ssh=None, extra_env={}, secrets=document.secrets)
        took.append((time.process_time() - started) * 1000)
        assert plan.command
    return percentile(took, 0.5)


def _large_ms(text: str) -> float:
    assert len(read_document(text).spec.task_roles) == ROLES
    return _best_ms(lambda: _answered(text), LARGE_RUNS)


def _answered(text: str) -> None:
    with suppress(DocumentError):
        read_document(text)


def _best_ms(run: Callable[[], object], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        gc.collect()  # what an earlier run left is not this one's cost
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return best * 1000


def _peak_mib(text: str) -> float:
    """Memory that reading takes at its highest, as Python counts it."""
    tracemalloc.start()
    try:
        _answered(text)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _placed(document: Document) -> Job:
    """The job of a document as the controller has it when it starts its tasks."""
    uid, tasks = JobUid("j0123456789abcdef"), []
    for number, role in enumerate(document.spec.task_roles):
        for index in range(role.instances):
            ports = {port.label: tuple(range(20_000, 20_000 + port.count)) for port in role.ports}
            place = Placement(node=f"n{number}", address="127.0.0.1", machine="m", ports=ports)
            task = task_uid(uid, number, index, 0)
            tasks.append(Task(uid=task, role=role.name, index=index, attempt=0, placement=place))
    spec = document.spec
    submitted = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(uid=uid, name=spec.name, user="u", alias="a", spec=spec, tasks=tuple(tasks), submitted_at=submitted)
