"""The rows of lists are what their models, and so the API's description, say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic_core import from_json, to_json

from pai_backend.api import present, wire
from pai_backend.api.openpai import jobs as openpai_jobs
from pai_backend.api.openpai import wire as openpai
from pai_backend.model.ids import JobUid
from pai_backend.store.base import JobSummary
from pai_backend.testing.builders import T0

ENDED = JobSummary(
    uid=JobUid("j1"),
    name="job",
    user="alice",
    alias="job-1",
    state="STOPPING",
    phase="stopping",
    why="asked to",
    virtual_cluster="prod",
    submitted_at=T0,
    launched_at=T0,
    completed_at=T0,
    retries=6,
    task_count=4,
    gpu_count=5,
    exit_status=137,
    warnings=7,
    desired="STOP",
    priority="oppo",
    role_count=2,
    platform_retries=2,
    resource_retries=1,
    tags=("a", "ü"),
    gpu_types=("A100", "V100"),
)
WAITING = replace(ENDED, launched_at=None, completed_at=None, exit_status=None, priority=None, tags=(), gpu_types=())


@pytest.mark.parametrize("summary", [ENDED, WAITING])
@pytest.mark.parametrize("version", [1, 2])
def test_a_row_in_openpais_shape_is_its_model_to_the_byte(summary: JobSummary, version: int) -> None:
    written = to_json(openpai_jobs.row(summary, version))

    assert openpai.JobRow.model_validate_json(written).model_dump_json(by_alias=True).encode() == written
    assert from_json(written)["state"] == ("RUNNING" if version == 1 else "STOPPING")
    assert from_json(written)["retryDetails"] == {"user": 3, "platform": 2, "resource": 1}


@pytest.mark.parametrize("summary", [ENDED, WAITING])
def test_a_row_in_our_shape_is_its_model_to_the_byte(summary: JobSummary) -> None:
    written = to_json(present.summary(summary))

    assert wire.Summary.model_validate_json(written).model_dump_json(by_alias=True).encode() == written
