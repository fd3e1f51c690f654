"""Directories and the plan that an engine gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import SshPlan
from pai_backend.launch.directories import Directories, directories
from pai_backend.launch.environment import environment
from pai_backend.launch.plan import build_plan
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job

MakeJob = Callable[..., Job]
SSH = SshPlan(port=20102, host_key=SecretStr("private"), authorized_keys=("ssh-ed25519 AAAA",))


def test_the_variables_of_v1_are_replaced_in_directories(make_job: MakeJob) -> None:
    job = make_job(
        {"name": "r"},
        authFile="$PAI_DEFAULT_FS_URI/auth",
        dataDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
        outputDir="/out/$PAI_USERNAME/$HOME/$PAI_TASK_INDEX",
        codeDir="$QIZHI_DEFAULT_FS_URI/code",
    )
    assert directories(job, "hdfs://fs") == Directories(
        auth_file="hdfs://fs/auth",
        data_dir="hdfs://fs/alice/demo",
        output_dir="/out/alice/$HOME/$PAI_TASK_INDEX",
        code_dir="hdfs://fs/code",
    )


@pytest.mark.parametrize(
    ("uri", "output"),
    [("hdfs://fs:9000", "hdfs://fs:9000/Output/demo"), ("file:///d/", "file:///d/Output/demo"), ("", "")],
)
def test_an_output_directory_is_made_up_when_there_is_a_file_system(make_job: MakeJob, uri: str, output: str) -> None:
    assert directories(make_job({"name": "r"}), uri).output_dir == output


def test_what_is_put_in_is_not_replaced_again(make_job: MakeJob) -> None:
    job = make_job({"name": "r"}, dataDir="$PAI_USER_NAME").model_copy(update={"user": "$PAI_JOB_NAME"})
    assert directories(job).data_dir == "$PAI_JOB_NAME"


def test_a_plan_has_all_that_an_engine_needs(make_job: MakeJob) -> None:
    role = {
        "name": "worker",
        "taskNumber": 2,
        "cpuNumber": 3,
        "memoryMB": 2048,
        "shmMB": 256,
        "command": r"echo \"a\" $X",
    }
    job = make_job({"name": "ps"}, role, image="repo/image:tag")
    task = job.tasks[2]
    plan = build_plan(job, task, ssh=SSH, extra_env={"JUPYTER_TOKEN": "t"}, default_fs_uri="file:///d")
    assert plan.uid == "j0123456789abcdef-1-1-0"
    assert (plan.job_name, plan.user, plan.role, plan.index) == ("demo", "alice", "worker", 1)
    assert (plan.image, plan.command) == ("repo/image:tag", r"echo \"a\" $X")
    assert (plan.cpus, plan.memory_mb, plan.shm_mb) == (3, 2048, 256)
    assert plan.placement == task.placement
    assert plan.ssh == SSH
    assert plan.env == {"JUPYTER_TOKEN": "t"} | environment(job, task, default_fs_uri="file:///d")


def test_what_the_platform_adds_gives_way_to_the_document(make_job: MakeJob) -> None:
    job = make_job({"name": "r"}, jobEnvs={"JUPYTER_TOKEN": "mine"})
    extra = {"JUPYTER_TOKEN": "made", "PAI_JOB_NAME": "other", "MORE": "1"}
    plan = build_plan(job, job.tasks[0], ssh=None, extra_env=extra)
    assert (plan.env["JUPYTER_TOKEN"], plan.env["PAI_JOB_NAME"], plan.env["MORE"]) == ("mine", "demo", "1")


def test_a_plan_for_a_task_without_a_place_is_a_bug(make_job: MakeJob) -> None:
    job = make_job({"name": "r"})
    task = job.tasks[0].model_copy(update={"placement": None})
    with pytest.raises(Bug, match=task.uid):
        build_plan(job, task, ssh=None, extra_env={})


def test_the_same_job_gives_the_same_plan(make_job: MakeJob) -> None:
    job = make_job({"name": "a", "taskNumber": 3}, {"name": "b"})
    plans = [build_plan(job, job.tasks[1], ssh=SSH, extra_env={}) for _ in range(2)]
    assert plans[0] == plans[1]
    assert list(plans[0].env) == list(plans[1].env)
