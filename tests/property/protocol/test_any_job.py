"""Laws of meaning: a job written down reads as that job, however it is laid out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.protocol import read_document

NAMES = st.from_regex(r"[A-Za-z0-9._~]{1,12}", fullmatch=True)
SPACES = st.lists(st.sampled_from([" ", "\t", "\n", "\r\n", "// x\n", "/* { */", "/**/"]), max_size=3).map("".join)


@st.composite
def roles(draw: st.DrawFn, name: str) -> dict[str, Any]:
    tasks = draw(st.integers(1, 50))
    memory = draw(st.integers(100, 10**6))
    labels = draw(st.lists(NAMES, unique=True, max_size=4))
    return {
        "name": name,
        "taskNumber": tasks,
        "cpuNumber": draw(st.integers(1, 512)),
        "memoryMB": memory,
        "gpuNumber": draw(st.integers(0, 16)),
        "shmMB": draw(st.integers(0, memory)),
        "command": draw(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
        ),
        "minFailedTaskCount": draw(st.none() | st.integers(1, tasks)),
        "minSucceededTaskCount": draw(st.none() | st.integers(1, tasks)),
        "portList": [
            {"label": label, "beginAt": draw(st.sampled_from([0, 1000 * (number + 1)])), "portNumber": number + 1}
            for number, label in enumerate(labels)
        ],
    }


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    return {
        "jobName": "job-" + draw(NAMES),
        "image": draw(st.from_regex(r"[a-z0-9./:-]{1,30}", fullmatch=True)),
        "retryCount": draw(st.integers(-2, 100)),
        "jobEnvs": draw(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.none() | st.integers(0, 9))),
        "taskRoles": [draw(roles(name)) for name in names],
    }


@settings(deadline=None)
@given(jobs(), st.data())
def test_a_job_reads_as_it_was_written_in_any_layout(job: dict[str, Any], data: st.DataObject) -> None:
    spec = read_document(laid_out(job, data.draw)).spec
    assert (spec.name, spec.image, spec.retry_count, spec.env) == (
        job["jobName"],
        job["image"],
        job["retryCount"],
        job["jobEnvs"],
    )
    for role, written in zip(spec.task_roles, job["taskRoles"], strict=True):
        need = role.resources
        assert (role.name, role.command) == (written["name"], written["command"])
        assert (role.instances, need.cpus, need.memory_mb, need.gpus, need.shm_mb) == tuple(
            written[name] for name in ("taskNumber", "cpuNumber", "memoryMB", "gpuNumber", "shmMB")
        )
        assert role.completion.min_failed == written["minFailedTaskCount"]
        assert role.completion.min_succeeded == written["minSucceededTaskCount"]
        declared = [(port["label"], port["beginAt"], port["portNumber"]) for port in written["portList"]]
        labels = [label for label, _, _ in declared]
        implied = [(label, 0, 1) for label in ("http", "ssh") if label not in labels]
        assert [(port.label, port.begin_at, port.count) for port in role.ports] == declared + implied


def laid_out(value: object, draw: Any) -> str:
    """``value`` as JSON with any white space and comments between its pieces."""

    def between() -> str:
        return str(draw(SPACES))

    if isinstance(value, dict):
        inner = ",".join(
            f"{between()}{json.dumps(key)}{between()}:{between()}{laid_out(item, draw)}{between()}"
            for key, item in value.items()
        )
        return "{" + (inner or between()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{between()}{laid_out(item, draw)}{between()}" for item in value) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))
