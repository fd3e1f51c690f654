"""The environment table, value by value."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from pai_backend.launch.environment import environment
from pai_backend.model.job import Job

MakeJob = Callable[..., Job]
DocumentJob = Callable[[str], Job]

ONE_TASK = {
    # the list of the SCM guide, section 4.1
    "PAI_JOB_NAME": "jupyter_16be8b71",
    "PAI_USER_NAME": "alice",
    "PAI_DEFAULT_FS_URI": "",
    "PAI_TASK_ROLE_COUNT": "1",
    "PAI_TASK_ROLE_LIST": "task_1",
    "PAI_TASK_ROLE_TASK_COUNT_task_1": "1",
    "PAI_HOST_IP_task_1_0": "10.0.0.1",
    "PAI_PORT_LIST_task_1_0_jupyter": "20100",
    "PAI_PORT_LIST_task_1_0_http": "20101",
    "PAI_PORT_LIST_task_1_0_ssh": "20102",
    "PAI_RESOURCE_task_1": "1,1,8192,64",
    "PAI_MIN_FAILED_TASK_COUNT_task_1": "",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_task_1": "",
    "PAI_CURRENT_TASK_ROLE_NAME": "task_1",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
    # its kin of OpenPAI v1
    "PAI_WORK_DIR": "/w",
    "PAI_JOB_VC_NAME": "default",
    "PAI_VIRTUAL_CLUSTER": "default",
    "PAI_DATA_DIR": "",
    "PAI_OUTPUT_DIR": "",
    "PAI_CODE_DIR": "",
    "PAI_JOB_TASK_COUNT": "1",
    "PAI_JOB_TASK_ROLE_COUNT": "1",
    "PAI_JOB_TASK_ROLE_LIST": "task_1",
    "PAI_RESOURCE": "1,1,8192,64",
    "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "1",
    "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "1",
    "PAI_CURRENT_TASK_ROLE_MEM_MB": "8192",
    "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
    "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "1",
    "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "",
    "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "",
    "PAI_CONTAINER_HOST_IP": "10.0.0.1",
    "PAI_CONTAINER_HOST_PORT_LIST": "jupyter:20100;http:20101;ssh:20102;",
    "PAI_CONTAINER_HOST_jupyter_PORT_LIST": "20100",
    "PAI_CONTAINER_HOST_http_PORT_LIST": "20101",
    "PAI_CONTAINER_HOST_ssh_PORT_LIST": "20102",
    "PAI_CONTAINER_HOST_PORT": "20101",
    "PAI_CONTAINER_SSH_PORT": "20102",
    "PAI_TASK_ROLE_task_1_HOST_LIST": "10.0.0.1:20101",
    "FRAMEWORK_NAME": "alice~jupyter_16be8b71",
    "HADOOP_USER_NAME": "alice",
    # names of earlier versions
    "PAI_USERNAME": "alice",
    "PAI_TASK_ROLES_NUM": "1",
    "PAI_TASKS_NUM": "1",
    "PAI_TASK_ROLE_NAME": "task_1",
    "PAI_TASK_ROLE_NO": "0",
    "PAI_TASK_ROLE_NUM": "1",
    "PAI_TASK_CPU_NUM": "1",
    "PAI_TASK_MEM_MB": "8192",
    "PAI_TASK_GPU_NUM": "1",
    "PAI_TASK_ROLE_INDEX": "0",
    "PAI_TASK_INDEX": "0",
    "PAI_CURRENT_CONTAINER_IP": "10.0.0.1",
    "PAI_CURRENT_CONTAINER_PORT": "20101",
    "PAI_task_1_0_jupyter_PORT": "20100",
    "PAI_task_1_0_http_PORT": "20101",
    "PAI_task_1_0_ssh_PORT": "20102",
    "PAI_TASK_ROLE_0_HOST_LIST": "10.0.0.1:20101",
}


def test_the_whole_environment_of_the_jupyter_document(document_job: DocumentJob) -> None:
    job = document_job("scm-jupyter.json")
    assert environment(job, job.tasks[0], work_dir="/w") == ONE_TASK


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


def test_qizhi_documents_get_each_variable_under_both_prefixes(document_job: DocumentJob) -> None:
    job = document_job("qizhi-tensorflow-distributed.json")
    table = environment(job, job.tasks[2], default_fs_uri="hdfs://fs:9000", work_dir="/root")
    where = "hdfs://fs:9000/path/tensorflow-distributed-jobguid"
    expected = {
        "QIZHI_WORK_DIR": "/root",
        "QIZHI_DEFAULT_FS_URI": "hdfs://fs:9000",
        "QIZHI_JOB_NAME": "tensorflow-distributed-jobguid",
        "QIZHI_JOB_VC_NAME": "your_virtual_cluster",
        "QIZHI_USER_NAME": "alice",
        "QIZHI_DATA_DIR": f"{where}/data",
        "QIZHI_OUTPUT_DIR": f"{where}/output",
        "QIZHI_CODE_DIR": f"{where}/code",
        "QIZHI_CURRENT_TASK_ROLE_NAME": "worker",
        "QIZHI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
        "QIZHI_CURRENT_TASK_ROLE_CPU_COUNT": "2",
        "QIZHI_CURRENT_TASK_ROLE_MEM_MB": "16384",
        "QIZHI_CURRENT_TASK_ROLE_GPU_COUNT": "4",
        "QIZHI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
        "QIZHI_JOB_TASK_COUNT": "4",
        "QIZHI_JOB_TASK_ROLE_COUNT": "2",
        "QIZHI_JOB_TASK_ROLE_LIST": "ps_server,worker",
        "QIZHI_KILL_ALL_ON_COMPLETED_TASK_NUM": "2",
        "QIZHI_CONTAINER_HOST_IP": "10.0.0.3",
        "QIZHI_CONTAINER_HOST_PORT_LIST": "http:20300;ssh:20301;",
        "QIZHI_CONTAINER_HOST_http_PORT_LIST": "20300",
        "QIZHI_CONTAINER_HOST__http_PORT_LIST": "20300",
        "QIZHI_TASK_ROLE_ps_server_HOST_LIST": "10.0.0.1:20100,10.0.0.2:20200",
        "QIZHI_TASK_ROLE_worker_HOST_LIST": "10.0.0.3:20300,10.0.0.4:20400",
    }
    assert {name: table.get(name) for name in expected} == expected
    assert all(table["QIZHI_" + name[4:]] == value for name, value in table.items() if name.startswith("PAI_"))


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
