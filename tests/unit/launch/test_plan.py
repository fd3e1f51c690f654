"""Directories and the plan that an engine gets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.launch.directories import Directories, directories, output_path
from pai_backend.launch.job_info import job_info
from pai_backend.launch.plan import build_plan, environment
from pai_backend.launch.room import TOTAL_BYTES, entry_bytes
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job
from pai_backend.model.plan import RegistryLogin, StagedInput
from pai_backend.model.spec import Dialect
from pai_backend.model.tags import UnresolvedTag
from pai_backend.model.user_secret import LONGEST

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


def test_a_task_starts_by_itself_where_the_job_is_no_gang(make_job: MakeJob) -> None:
    job = make_job({"name": "ps"}, {"name": "worker", "taskNumber": 2})
    alone = job.spec.scheduling.model_copy(update={"gang_allocation": False})
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"scheduling": alone})})
    assert build_plan(job, job.tasks[0], ssh=SSH, extra_env={}).gang == 1


@pytest.mark.parametrize(
    ("uri", "output"),
    [("hdfs://fs:9000", "hdfs://fs:9000/Output/alice/{uid}"), ("file:///d/", "file:///d/Output/alice/{uid}"), ("", "")],
)
def test_an_output_directory_is_made_up_when_there_is_a_file_system(make_job: MakeJob, uri: str, output: str) -> None:
    job = make_job({"name": "r"})
    assert directories(job, uri).output_dir == output.format(uid=job.uid)


@pytest.mark.parametrize(
    ("uri", "output", "path"),
    [
        ("/srv/fs", "", "/Output/alice/{uid}"),
        ("hdfs://fs:9000/", "", "/Output/alice/{uid}"),
        ("/srv/fs", "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME//out/", "/alice/out"),
        ("/srv/fs", "/srv/fs/alice/out", "/alice/out"),
        ("/srv/fs", "/srv/fs-of-others/out", ""),
        ("/srv/fs", "$PAI_DEFAULT_FS_URI/../elsewhere", ""),
        ("", "/alice/out", ""),
        ("", "", ""),
    ],
)
def test_an_output_has_a_path_in_the_default_file_system_where_it_is_there(
    make_job: MakeJob, uri: str, output: str, path: str
) -> None:
    job = make_job({"name": "r"}, outputDir=output)
    assert output_path(job, uri) == path.format(uid=job.uid)


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
    assert (plan.job_attempt, plan.job_tasks, plan.virtual_cluster) == (0, 3, "default")
    assert plan.gang == 3
    assert (plan.image, plan.command) == ("repo/image:tag", r"echo \"a\" $X")
    assert (plan.cpus, plan.memory_mb, plan.shm_mb) == (3, 2048, 256)
    assert plan.placement == task.placement
    assert plan.ssh == SSH
    assert plan.env == {"JUPYTER_TOKEN": "t"} | environment(job, task, default_fs_uri="file:///d")


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("hdfs://fs:9000/path/code", "code"),
        ("hdfs://fs:9000/path/my-train/", "my-train"),
        ("/home/alice/project", "project"),
        ("file:///home/alice/project", "project"),
        ("/home/alice/..", "alice"),
        ("hdfs://fs:9000", "code"),
        ("hdfs://fs:9000/", "code"),
        ("/", "code"),
    ],
)
def test_the_code_directory_is_staged_under_its_base_name(make_job: MakeJob, uri: str, name: str) -> None:
    """OpenPAI v1: at most 200,000,000 bytes, copied into the working directory."""
    plan = plan_of(make_job({"name": "r"}, codeDir=uri))
    assert plan.inputs == (StagedInput(uri=uri, name=name, max_bytes=200_000_000),)


def plan_of(job: Job, **arguments: Any) -> TaskPlan:
    """The plan of a job's first task."""
    return build_plan(job, job.tasks[0], ssh=None, extra_env={}, **arguments)


def as_v2(job: Job, *, strict: bool = False, **role: Any) -> Job:
    """The job as if it had been read from an OpenPAI v2 document."""
    roles = tuple(old.model_copy(update={"strict": strict, **role}) for old in job.spec.task_roles)
    spec = job.spec.model_copy(update={"dialect": Dialect.OPENPAI_V2, "task_roles": roles})
    return job.model_copy(update={"spec": spec})


def test_the_output_directory_is_made_for_a_task_and_v2_has_one_where_it_is_named(make_job: MakeJob) -> None:
    job = make_job({"name": "r"}, outputDir="$PAI_DEFAULT_FS_URI/out")
    assert plan_of(job, default_fs_uri="/fs").outputs == ("/fs/out",)
    unnamed = make_job({"name": "r"})
    assert plan_of(unnamed, default_fs_uri="/fs").outputs == (f"/fs/Output/alice/{unnamed.uid}",)
    assert plan_of(make_job({"name": "r"})).outputs == ()
    v2 = plan_of(as_v2(make_job({"name": "r"})), default_fs_uri="/fs")
    assert (v2.outputs, v2.env["PAI_OUTPUT_DIR"], v2.inputs) == ((), "", ())
    for name in ("PAI_OUTPUT_DIR", "QIZHI_OUTPUT_DIR"):
        named = as_v2(make_job({"name": "r", "command": f"cp x ${{{name}}}"}))
        plan = plan_of(named, default_fs_uri="/fs")
        assert plan.outputs == (plan.env["PAI_OUTPUT_DIR"],) == (f"/fs/Output/alice/{named.uid}",)
        assert plan_of(named).outputs == ()


def test_a_strict_command_is_one_line_behind_what_the_user_wrote(make_job: MakeJob) -> None:
    lines = ["echo one", "echo $LINENO", "false | true", "echo unreached"]
    plan = plan_of(as_v2(make_job({"name": "r", "command": "\n".join(lines)}), strict=True))
    done = subprocess.run(["bash", "-c", plan.command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "one\n3\n")
    unset = plan_of(as_v2(make_job({"name": "r", "command": "echo $NOT_THERE"}), strict=True))
    assert subprocess.run(["bash", "-c", unset.command], capture_output=True, check=False).returncode != 0


def test_secrets_are_put_into_the_commands_of_v2_as_they_are(make_job: MakeJob) -> None:
    command = "login <% $secrets.user[0] %> '<% $secrets.password %>'; echo <%= x %>"
    job = as_v2(make_job({"name": "r", "command": command}, jobEnvs={"TOKEN": "<% $secrets.password %>"}))
    values = {"user": ["bob"], "password": 'a&b<"<% $secrets.user %>'}
    plan = plan_of(job, secrets=values)
    assert plan.command == "login bob 'a&b<\"<% $secrets.user %>'; echo <%= x %>"
    assert plan.env["TOKEN"] == values["password"]
    assert "a&b" not in repr(plan) + plan.job_info


def test_variables_hold_the_secrets_that_the_user_keeps_and_replace_none_of_the_platforms(make_job: MakeJob) -> None:
    own = {"secretEnv": {"HF_TOKEN": "hf-token", "PAI_JOB_NAME": "hf-token", "JUPYTER_TOKEN": "hf-token"}}
    job = make_job({"name": "r"}, jobEnvs={"MODE": "fast"}, extras={"jupyterPai": own})
    env = plan_of(job, secrets={"hf-token": "a 'b'\n$c <% $secrets.x %>"}).env
    assert env["HF_TOKEN"] == env["JUPYTER_TOKEN"] == "a 'b'\n$c <% $secrets.x %>"
    assert (env["PAI_JOB_NAME"], env["MODE"]) == ("demo", "fast")
    assert "HF_TOKEN" not in environment(job, job.tasks[0])
    with pytest.raises(UnresolvedTag, match="HF_TOKEN: the job has no secret hf-token"):
        plan_of(job)


def test_secrets_of_the_user_have_room_beside_the_variables_of_the_platform(make_job: MakeJob) -> None:
    role = {"name": "r", "taskNumber": 3500, "portList": [{"label": "a", "beginAt": 0, "portNumber": 4}]}
    own = {"secretEnv": {"HF_TOKEN": "hf-token"}}
    env = plan_of(make_job(role, extras={"jupyterPai": own}), secrets={"hf-token": "x" * LONGEST}).env
    pointer = 8
    assert sum(entry_bytes(*item) + pointer for item in env.items()) <= TOTAL_BYTES


def test_a_secret_that_is_not_there_is_named(make_job: MakeJob) -> None:
    with pytest.raises(UnresolvedTag, match=r"secrets\.token"):
        plan_of(as_v2(make_job({"name": "r", "command": "<% $secrets.token %>"})))


def test_a_command_of_v1_is_never_scanned_for_tags(make_job: MakeJob) -> None:
    job = make_job({"name": "r", "command": "echo '<% $secrets.x %>'"}, jobEnvs={"X": "<% $secrets.x %>"})
    plan = plan_of(job, secrets={"x": "wrong"})
    assert (plan.command, plan.env["X"]) == ("echo '<% $secrets.x %>'", "<% $secrets.x %>")


def test_a_role_may_have_its_own_image_and_devices(make_job: MakeJob) -> None:
    login = RegistryLogin(username="u", password=SecretStr("hush"))
    job = as_v2(make_job({"name": "r"}, image="job/image"), image="role/image", infiniband=True)
    plan = plan_of(job, image_login=login)
    assert (plan.image, plan.infiniband, plan.image_login) == ("role/image", True, login)
    assert plan_of(make_job({"name": "r"}, image="job/image")).image == "job/image"


def test_a_job_that_is_debugged_keeps_its_failed_tasks(make_job: MakeJob) -> None:
    assert plan_of(make_job({"name": "r"}, jobEnvs={"isDebug": True})).keep_on_failure
    assert not plan_of(make_job({"name": "r"})).keep_on_failure


def test_every_task_gets_the_info_of_the_whole_job(make_job: MakeJob) -> None:
    job = make_job({"name": "r", "taskNumber": 2})
    assert plan_of(job).job_info == job_info(job)


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
