"""The job info file, its description, and the readers that the description shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_backend.launch.job_info import JobInfo, job_info
from pai_backend.launch.plan import environment
from pai_backend.model.job import Job
from pai_backend.model.spec import Scheduling

PAGE = Path(__file__).parents[3] / "docs" / "job-info.md"
MakeJob = Callable[..., Job]


@pytest.fixture
def job(make_job: MakeJob) -> Job:
    """Two roles; one task of three waits."""
    ports = [{"label": "http"}, {"label": "tb", "portNumber": 2}]
    worker = {"name": "worker", "taskNumber": 2, "gpuNumber": 1, "portList": ports}
    made = make_job({"name": "ps_server", "minFailedTaskCount": None}, worker, jobEnvs={"TOKEN": "hush"})
    waiting = made.tasks[2].model_copy(update={"placement": None})
    spec = made.spec.model_copy(update={"scheduling": Scheduling(gang_allocation=False)})
    return made.model_copy(update={"spec": spec, "tasks": (waiting, *made.tasks[:2]), "attempt": 2})


def test_it_has_the_whole_job(job: Job) -> None:
    assert json.loads(job_info(job)) == {
        "schemaVersion": 1,
        "job": {
            "name": "demo",
            "id": "alice~demo",
            "alias": "a",
            "attempt": 2,
            "virtualCluster": "default",
            "gang": False,
        },
        "user": "alice",
        "roles": [
            {
                "name": "ps_server",
                "count": 1,
                "resources": {"cpus": 1, "memoryMB": 100, "gpus": 0, "shmMB": 64},
                "completion": {"minFailed": None, "minSucceeded": None},
            },
            {
                "name": "worker",
                "count": 2,
                "resources": {"cpus": 1, "memoryMB": 100, "gpus": 1, "shmMB": 64},
                "completion": {"minFailed": 1, "minSucceeded": None},
            },
        ],
        "tasks": [
            {
                "name": "ps_server-0",
                "role": "ps_server",
                "index": 0,
                "state": "placed",
                "host": "10.0.0.1",
                "ports": {"http": [20100], "ssh": [20101]},
                "sshName": "a--ps-server-0",
            },
            {
                "name": "worker-0",
                "role": "worker",
                "index": 0,
                "state": "placed",
                "host": "10.0.0.2",
                "ports": {"http": [20200], "tb": [20201, 20202], "ssh": [20203]},
                "sshName": "a--worker-0",
            },
            {
                "name": "worker-1",
                "role": "worker",
                "index": 1,
                "state": "waiting",
                "host": None,
                "ports": {},
                "sshName": "a--worker-1",
            },
        ],
    }


def test_it_changes_with_placements_alone(job: Job) -> None:
    later = job.model_copy(update={"version": 9, "tasks": tuple(reversed(job.tasks))})
    assert job_info(later) == job_info(job)
    assert "hush" not in job_info(job)


def fence(language: str) -> str:
    """The one code block of that language on the page."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(found)


def test_the_page_has_the_schema(job: Job) -> None:
    assert json.loads(fence("json")) == JobInfo.model_json_schema(by_alias=True)


@pytest.mark.parametrize("language", ["python", "bash"])
def test_the_readers_on_the_page_read_it(job: Job, language: str, tmp_path: Path) -> None:
    path = tmp_path / "job-info.json"
    path.write_text(job_info(job), "utf-8")
    env = environment(job, job.tasks[2]) | {"PAI_JOB_INFO_FILE": str(path)}
    program = sys.executable if language == "python" else "bash"
    done = subprocess.run(
        [program, "-c", fence(language)],
        env=env | {"PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "I am worker-0, my peers are 10.0.0.2:20200\n"
