"""The environment table, name by name: each with its value and with where it is from."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_backend.launch.plan import TRUNCATED, environment, path_variables
from pai_backend.launch.room import LEFT_OUT_FIRST
from pai_backend.launch.service_addresses import ServiceSite, service_variables
from pai_backend.model.job import Job

MakeJob = Callable[..., Job]
DocumentJob = Callable[[str], Job]

SCM = "SCM guide, section 4.1"
QIZHI = "QIZHI guide, list of environment variables"
V1 = "OpenPAI v1"
V1_OLD = "OpenPAI v1, names before 0.5"
V2 = "OpenPAI v2"
FC = "FrameworkController, predefined environment variables"

ONE_TASK = [
    (SCM, "PAI_JOB_NAME", "jupyter_16be8b71"),
    (SCM, "PAI_USER_NAME", "alice"),
    (SCM, "PAI_DEFAULT_FS_URI", "/fs"),
    (SCM, "PAI_TASK_ROLE_COUNT", "1"),
    (SCM, "PAI_TASK_ROLE_LIST", "task_1"),
    (SCM, "PAI_TASK_ROLE_TASK_COUNT_task_1", "1"),
    (SCM, "PAI_HOST_IP_task_1_0", "10.0.0.1"),
    (SCM, "PAI_PORT_LIST_task_1_0_jupyter", "20100"),
    (SCM, "PAI_PORT_LIST_task_1_0_http", "20101"),
    (SCM, "PAI_PORT_LIST_task_1_0_ssh", "20102"),
    (SCM, "PAI_RESOURCE_task_1", "1,1,8192,64"),
    (SCM, "PAI_MIN_FAILED_TASK_COUNT_task_1", ""),
    (SCM, "PAI_MIN_SUCCEEDED_TASK_COUNT_task_1", ""),
    (SCM, "PAI_CURRENT_TASK_ROLE_NAME", "task_1"),
    (SCM, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "0"),
    (V1, "PAI_JOB_VC_NAME", "default"),
    (V1, "PAI_DATA_DIR", ""),
    (V1, "PAI_OUTPUT_DIR", "/fs/Output/alice/j0123456789abcdef"),
    (V1, "PAI_CODE_DIR", ""),
    (V1, "PAI_JOB_TASK_COUNT", "1"),
    (V1, "PAI_JOB_TASK_ROLE_COUNT", "1"),
    (V1, "PAI_JOB_TASK_ROLE_LIST", "task_1"),
    (V1, "PAI_RESOURCE", "1,1,8192,64"),
    (V1, "PAI_CURRENT_TASK_ROLE_TASK_COUNT", "1"),
    (V1, "PAI_CURRENT_TASK_ROLE_CPU_COUNT", "1"),
    (V1, "PAI_CURRENT_TASK_ROLE_MEM_MB", "8192"),
    (V1, "PAI_CURRENT_TASK_ROLE_SHM_MB", "64"),
    (V1, "PAI_CURRENT_TASK_ROLE_GPU_COUNT", "1"),
    (V1, "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT", ""),
    (V1, "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT", ""),
    (V1, "PAI_CONTAINER_HOST_IP", "10.0.0.1"),
    (V1, "PAI_CONTAINER_HOST_PORT_LIST", "jupyter:20100;http:20101;ssh:20102;"),
    (V1, "PAI_CONTAINER_HOST_jupyter_PORT_LIST", "20100"),
    (V1, "PAI_CONTAINER_HOST_http_PORT_LIST", "20101"),
    (V1, "PAI_CONTAINER_HOST_ssh_PORT_LIST", "20102"),
    (V1, "PAI_CONTAINER_HOST_PORT", "20101"),
    (V1, "PAI_CONTAINER_SSH_PORT", "20102"),
    (V1, "PAI_TASK_ROLE_task_1_HOST_LIST", "10.0.0.1:20101"),
    (V1, "PAI_CONTAINER_ID", "j0123456789abcdef-0-0-0"),
    (V1, "APP_ID", "j0123456789abcdef"),
    (V1, "FRAMEWORK_NAME", "alice~jupyter_16be8b71"),
    (V1, "HADOOP_USER_NAME", "alice"),
    (V1_OLD, "PAI_USERNAME", "alice"),
    (V1_OLD, "PAI_TASK_ROLES_NUM", "1"),
    (V1_OLD, "PAI_TASKS_NUM", "1"),
    (V1_OLD, "PAI_TASK_ROLE_NAME", "task_1"),
    (V1_OLD, "PAI_TASK_ROLE_NO", "0"),
    (V1_OLD, "PAI_TASK_ROLE_NUM", "1"),
    (V1_OLD, "PAI_TASK_CPU_NUM", "1"),
    (V1_OLD, "PAI_TASK_MEM_MB", "8192"),
    (V1_OLD, "PAI_TASK_GPU_NUM", "1"),
    (V1_OLD, "PAI_TASK_ROLE_INDEX", "0"),
    (V1_OLD, "PAI_TASK_INDEX", "0"),
    (V1_OLD, "PAI_CURRENT_CONTAINER_IP", "10.0.0.1"),
    (V1_OLD, "PAI_CURRENT_CONTAINER_PORT", "20101"),
    (V1_OLD, "PAI_task_1_0_jupyter_PORT", "20100"),
    (V1_OLD, "PAI_task_1_0_http_PORT", "20101"),
    (V1_OLD, "PAI_task_1_0_ssh_PORT", "20102"),
    (V1_OLD, "PAI_TASK_ROLE_0_HOST_LIST", "10.0.0.1:20101"),
    (V2, "PAI_VIRTUAL_CLUSTER", "default"),
    (V2, "PAI_FRAMEWORK_NAME", "alice~jupyter_16be8b71"),
    (V2, "PAI_TASK_ROLE_INSTANCES", "task_1:0"),
    (FC, "FC_FRAMEWORK_NAME", "alice~jupyter_16be8b71"),
    (FC, "FC_FRAMEWORK_ATTEMPT_ID", "0"),
    (FC, "FC_TASKROLE_NAME", "task_1"),
    (FC, "FC_TASK_INDEX", "0"),
    (FC, "FC_TASK_ATTEMPT_ID", "0"),
]


@pytest.mark.parametrize(("source", "name", "value"), ONE_TASK)
def test_each_variable_of_the_sources(document_job: DocumentJob, source: str, name: str, value: str) -> None:
    job = document_job("scm-jupyter.json")
    assert environment(job, job.tasks[0], default_fs_uri="/fs").get(name) == value, source


def test_the_sources_name_every_variable_there_is(document_job: DocumentJob) -> None:
    job = document_job("scm-jupyter.json")
    assert environment(job, job.tasks[0], default_fs_uri="/fs").keys() == {name for _, name, _ in ONE_TASK}


QIZHI_WORKER = [
    (QIZHI, "QIZHI_DEFAULT_FS_URI", "hdfs://fs:9000"),
    (QIZHI, "QIZHI_JOB_NAME", "tensorflow-distributed-jobguid"),
    (QIZHI, "QIZHI_JOB_VC_NAME", "your_virtual_cluster"),
    (QIZHI, "QIZHI_USER_NAME", "alice"),
    (QIZHI, "QIZHI_DATA_DIR", "hdfs://fs:9000/path/tensorflow-distributed-jobguid/data"),
    (QIZHI, "QIZHI_OUTPUT_DIR", "hdfs://fs:9000/path/tensorflow-distributed-jobguid/output"),
    (QIZHI, "QIZHI_CODE_DIR", "hdfs://fs:9000/path/tensorflow-distributed-jobguid/code"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_NAME", "worker"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_TASK_COUNT", "2"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_CPU_COUNT", "2"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_MEM_MB", "16384"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_GPU_COUNT", "4"),
    (QIZHI, "QIZHI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "0"),
    (QIZHI, "QIZHI_JOB_TASK_COUNT", "4"),
    (QIZHI, "QIZHI_JOB_TASK_ROLE_COUNT", "2"),
    (QIZHI, "QIZHI_JOB_TASK_ROLE_LIST", "ps_server,worker"),
    (QIZHI, "QIZHI_KILL_ALL_ON_COMPLETED_TASK_NUM", "2"),
    (QIZHI, "QIZHI_CONTAINER_HOST_IP", "10.0.0.3"),
    (QIZHI, "QIZHI_CONTAINER_HOST_PORT_LIST", "http:20300;ssh:20301"),
    (QIZHI, "QIZHI_CONTAINER_HOST__http_PORT_LIST", "20300"),
    (QIZHI, "QIZHI_TASK_ROLE_ps_server_HOST_LIST", "10.0.0.1:20100,10.0.0.2:20200"),
    (QIZHI, "QIZHI_TASK_ROLE_worker_HOST_LIST", "10.0.0.3:20300,10.0.0.4:20400"),
    (V1, "QIZHI_CONTAINER_HOST_http_PORT_LIST", "20300"),
]


@pytest.mark.parametrize(("source", "name", "value"), QIZHI_WORKER)
def test_each_variable_of_the_qizhi_guide(document_job: DocumentJob, source: str, name: str, value: str) -> None:
    """All but QIZHI_WORK_DIR, which the engine knows."""
    job = document_job("qizhi-tensorflow-distributed.json")
    assert environment(job, job.tasks[2], default_fs_uri="hdfs://fs:9000").get(name) == value, source


def test_qizhi_documents_get_each_variable_under_both_prefixes(document_job: DocumentJob) -> None:
    job = document_job("qizhi-tensorflow-distributed.json")
    table = environment(job, job.tasks[2])
    other = "PAI_CONTAINER_HOST_PORT_LIST"  # whose formats differ, see the table above
    ours = {name: value for name, value in table.items() if name.startswith("PAI_") and name != other}
    assert all(table["QIZHI_" + name[4:]] == value for name, value in ours.items())


def test_an_engine_names_its_paths_under_the_prefixes_of_the_task() -> None:
    paths = {"PAI_WORK_DIR": "/w", "PAI_JOB_INFO_FILE": "/i"}
    assert path_variables({"PAI_JOB_NAME": "j"}, work_dir="/w", job_info_file="/i") == paths
    both = paths | {"QIZHI_WORK_DIR": "/w", "QIZHI_JOB_INFO_FILE": "/i"}
    assert path_variables({"QIZHI_JOB_NAME": "j"}, work_dir="/w", job_info_file="/i") == both


def test_several_roles_and_tasks_see_each_other(make_job: MakeJob) -> None:
    ports = [{"label": "http", "beginAt": 0, "portNumber": 2}, {"label": "tb", "beginAt": 0, "portNumber": 3}]
    job = make_job(
        {"name": "ps", "taskNumber": 2, "cpuNumber": 4, "minFailedTaskCount": 2, "minSucceededTaskCount": None},
        {"name": "worker", "taskNumber": 3, "gpuNumber": 2, "memoryMB": 4096, "shmMB": 128, "portList": ports},
    )
    table = environment(job, job.tasks[3])
    expected = {
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_TASK_ROLE_NO": "1",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLE_LIST": "ps,worker",
        "PAI_JOB_TASK_COUNT": "5",
        "PAI_TASK_ROLE_TASK_COUNT_ps": "2",
        "PAI_TASK_ROLE_TASK_COUNT_worker": "3",
        "PAI_RESOURCE": "2,1,4096,128",
        "PAI_RESOURCE_ps": "0,4,100,64",
        "PAI_RESOURCE_worker": "2,1,4096,128",
        "PAI_MIN_FAILED_TASK_COUNT_ps": "2",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps": "",
        "PAI_MIN_FAILED_TASK_COUNT_worker": "1",
        "PAI_CONTAINER_HOST_IP": "10.0.0.4",
        "PAI_CONTAINER_HOST_PORT_LIST": "http:20400,20401;tb:20402,20403,20404;ssh:20405;",
        "PAI_CONTAINER_HOST_tb_PORT_LIST": "20402,20403,20404",
        "PAI_CONTAINER_HOST_PORT": "20400",
        "PAI_TASK_ROLE_ps_HOST_LIST": "10.0.0.1:20100,10.0.0.2:20200",
        "PAI_TASK_ROLE_worker_HOST_LIST": "10.0.0.3:20300,10.0.0.4:20400,10.0.0.5:20500",
        "PAI_TASK_ROLE_0_HOST_LIST": "10.0.0.1:20100,10.0.0.2:20200",
        "PAI_HOST_IP_ps_0": "10.0.0.1",
        "PAI_HOST_IP_worker_2": "10.0.0.5",
        "PAI_PORT_LIST_ps_1_ssh": "20201",
        "PAI_PORT_LIST_worker_2_tb": "20502,20503,20504",
        "PAI_worker_2_tb_PORT": "20502,20503,20504",
    }
    assert {name: table.get(name) for name in expected} == expected


def test_other_dialects_get_no_qizhi_variable(document_job: DocumentJob) -> None:
    job = document_job("scm-helloworld.json")
    assert not [name for name in environment(job, job.tasks[0]) if name.startswith("QIZHI_")]


def test_bash_expands_the_commands_of_the_documents(document_job: DocumentJob) -> None:
    job = document_job("qizhi-tensorflow-distributed.json")
    line = job.spec.task_roles[1].command
    hosts = line[line.index("--ps_hosts") :]
    done = subprocess.run(
        ["bash", "-c", f"echo {hosts}"], env=environment(job, job.tasks[3]), capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "--ps_hosts=10.0.0.1:20100,10.0.0.2:20200 --worker_hosts=10.0.0.3:20300,10.0.0.4:20400 "
        "--job_name=worker --task_index=1\n"
    )


def test_names_that_a_shell_cannot_read_are_given_twice(make_job: MakeJob) -> None:
    job = make_job({"name": "a.b~c", "portList": [{"label": "x.y"}]})
    table = environment(job, job.tasks[0])
    assert table["PAI_TASK_ROLE_LIST"] == "a.b~c"
    assert table["PAI_HOST_IP_a.b~c_0"] == table["PAI_HOST_IP_a_b_c_0"] == "10.0.0.1"
    assert table["PAI_CONTAINER_HOST_x.y_PORT_LIST"] == table["PAI_CONTAINER_HOST_x_y_PORT_LIST"] == "20100"


def test_the_name_as_written_wins_over_the_second_name_of_another_role(make_job: MakeJob) -> None:
    job = make_job({"name": "a.b"}, {"name": "a_b"})
    table = environment(job, job.tasks[0])
    assert (table["PAI_HOST_IP_a.b_0"], table["PAI_HOST_IP_a_b_0"]) == ("10.0.0.1", "10.0.0.2")


def test_a_role_called_by_a_number_keeps_its_own_host_list(make_job: MakeJob) -> None:
    job = make_job({"name": "x"}, {"name": "0"})
    assert environment(job, job.tasks[0])["PAI_TASK_ROLE_0_HOST_LIST"] == "10.0.0.2:20200"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("$HOME 'x' \"y\"\n", "$HOME 'x' \"y\"\n"),
        ("", ""),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([1, "作业"], '[1,"作业"]'),
        ({"a": {"b": None}}, '{"a":{"b":null}}'),
    ],
)
def test_variables_of_the_document_come_as_written(make_job: MakeJob, value: object, text: str) -> None:
    job = make_job({"name": "r"}, jobEnvs={"MINE": value})
    table = environment(job, job.tasks[0])
    assert table["MINE"] == text
    assert list(table)[-1] == "MINE"


def test_variables_of_the_document_replace_none_of_the_platform(make_job: MakeJob) -> None:
    job = make_job({"name": "r"}, jobEnvs={"PAI_HOST_IP_r_0": "6.6.6.6", "PAI_MINE": "1", "PATH": "/x"})
    table = environment(job, job.tasks[0])
    assert (table["PAI_HOST_IP_r_0"], table["PAI_MINE"], table["PATH"]) == ("10.0.0.1", "1", "/x")


def test_a_task_that_is_not_placed_is_left_out_of_addresses(make_job: MakeJob) -> None:
    job = make_job({"name": "r", "taskNumber": 3})
    waiting = job.tasks[1].model_copy(update={"placement": None})
    job = job.model_copy(update={"tasks": (job.tasks[0], waiting, job.tasks[2])})
    table = environment(job, job.tasks[0])
    assert table["PAI_TASK_ROLE_r_HOST_LIST"] == "10.0.0.1:20100,10.0.0.3:20300"
    assert table["PAI_TASK_ROLE_TASK_COUNT_r"] == "3"
    assert not [name for name in table if "_r_1" in name]
    assert "PAI_CONTAINER_HOST_IP" not in environment(job, waiting)


def test_the_given_task_counts_over_the_jobs_older_copy(make_job: MakeJob) -> None:
    job = make_job({"name": "r", "taskNumber": 2})
    own = job.tasks[1]
    stale = job.model_copy(update={"tasks": (job.tasks[0], own.model_copy(update={"placement": None}))})
    assert environment(stale, own) == environment(job, own)


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({}, None),
        ({"killAllOnCompletedTaskNumber": 0}, "0"),
        ({"killAllOnCompletedTaskNumber": 1}, "1"),
    ],
)
def test_the_number_of_completions_is_given_when_asked_for(
    make_job: MakeJob, fields: dict[str, Any], value: str | None
) -> None:
    job = make_job({"name": "r"}, **fields)
    assert environment(job, job.tasks[0]).get("PAI_KILL_ALL_ON_COMPLETED_TASK_NUM") == value


PAGE = (Path(__file__).parents[3] / "docs" / "environment.md").read_text("utf-8")


def documented() -> list[str]:
    """The names in the tables of the page."""
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_page_has_each_variable_and_no_other(document_job: DocumentJob) -> None:
    job = document_job("scm-jupyter.json")
    spec = job.spec.model_copy(update={"kill_all_on_completed": 1})
    table = environment(job.model_copy(update={"spec": spec}), job.tasks[0])
    by_engines = {"PAI_TASK_UID"}
    services = service_variables(job, job.tasks[0], ServiceSite("localhost", lambda: "http://localhost:1"))
    given = {
        *table,
        *(services or ()),
        *path_variables(table, work_dir="/w", job_info_file="/i"),
        TRUNCATED,
        *by_engines,
    }
    parts = {"role": "task_1", "index": "0", "label": "(jupyter|http|ssh)", "number": "0"}
    patterns = {name: re.sub(r"<(\w+)>", lambda part: parts[part[1]], name) for name in documented()}
    assert [name for name, pattern in patterns.items() if not any(re.fullmatch(pattern, real) for real in given)] == []
    assert {real for real in given if not any(re.fullmatch(pattern, real) for pattern in patterns.values())} == set()


def test_the_page_has_the_order_in_which_variables_are_left_out() -> None:
    assert tuple(re.findall(r"^\d+\. `(.+)`$", PAGE, re.MULTILINE)) == LEFT_OUT_FIRST
