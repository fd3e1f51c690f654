"""What the command of a task finds: variables as docs/environment.md has them, its directory, the job info file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jupyter_pai.wire_types import JobDetail, RoleWire, TaskWire
from tests.conformance.engines.documents import Document, commands, submitted, v1, v1_role, v2, v2_role
from tests.conformance.engines.room import Job, Room, facts

PAGE = Path(__file__).parents[3] / "docs" / "environment.md"
OURS = re.compile(r"PAI_|QIZHI_|FC_|(APP_ID|FRAMEWORK_NAME|HADOOP_USER_NAME)$")
PLACE = re.compile(r"<[a-z]+>")  # stands for a role, a label, an index or a number
TELL = """python3 -c '
import json, os
info = json.load(open(os.environ["PAI_JOB_INFO_FILE"]))
directories = {name: os.path.isdir(os.environ[name]) for name in ("PAI_WORK_DIR", "PAI_OUTPUT_DIR")}
told = {"variables": dict(os.environ), "directory": os.getcwd(), "there": directories, "info": info}
print(json.dumps(told), flush=True)'"""
ROLES = (
    v1_role(TELL, "main", 2, shmMB=32, minFailedTaskCount=2, minSucceededTaskCount=None,
            portList=[{"label": "web", "beginAt": 0, "portNumber": 2}]),
    v1_role(TELL, "side.car", 1, minSucceededTaskCount=None),
)  # fmt: skip
GIVEN = {"EPOCHS": 10, "TEXT": 'a b\n"c" $HOME 数', "LIST": [1, {"a": None}], "PAI_JOB_NAME": "mine"}
FIELDS: Document = {
    "dataDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/data",
    "outputDir": "$PAI_DEFAULT_FS_URI/$PAI_JOB_NAME/out",
    "virtualCluster": "your_virtual_cluster",
    "jobEnvs": GIVEN,
}


@submitted(v1(*ROLES, **FIELDS))
def test_a_task_has_the_variables_of_the_table_and_no_others(room: Room, job: Job) -> None:
    detail = job.ended("SUCCEEDED")
    for task in job.tasks:
        told = facts(job.log(task["role"], task["index"]))
        found = {name: value for name, value in told["variables"].items() if OURS.match(name)}
        expected = expected_variables(room, detail, task, told)
        extra = {} if room.local else {"PAI_POD_IP": found["PAI_POD_IP"], "PAI_NODE_NAME": task["node"]}
        assert found == expected | extra
        assert documented(expected) == set()


def expected_variables(room: Room, job: JobDetail, own: TaskWire, told: dict[str, Any]) -> dict[str, str]:
    """The tables of the page for the job above, from what the REST interface says of it."""
    files, user, name = str(room.files), job["username"], job["name"]
    first = own["role"] == "main"
    http, ssh = own["ports"]["http"][0], own["ports"]["ssh"][0]
    groups = {**({"web": own["ports"]["web"]} if first else {}), "http": [http], "ssh": [ssh]}
    table = {
        "PAI_JOB_NAME": name,
        **dict.fromkeys(("PAI_FRAMEWORK_NAME", "FRAMEWORK_NAME", "FC_FRAMEWORK_NAME"), f"{user}~{name}"),
        "APP_ID": job["uid"],
        **dict.fromkeys(("PAI_USER_NAME", "PAI_USERNAME", "HADOOP_USER_NAME"), user),
        **dict.fromkeys(("PAI_JOB_VC_NAME", "PAI_VIRTUAL_CLUSTER"), "your_virtual_cluster"),
        "PAI_DEFAULT_FS_URI": files,
        "PAI_DATA_DIR": f"{files}/{user}/data",
        "PAI_CODE_DIR": "",
        "PAI_OUTPUT_DIR": f"{files}/{name}/out",
        **dict.fromkeys(("PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"), "2"),
        **dict.fromkeys(("PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"), "main,side.car"),
        **dict.fromkeys(("PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"), "3"),
        "FC_FRAMEWORK_ATTEMPT_ID": str(job["attempt"]),
        "PAI_WORK_DIR": told["directory"],
        "PAI_JOB_INFO_FILE": told["variables"]["PAI_JOB_INFO_FILE"],
        **dict.fromkeys(("PAI_CURRENT_TASK_ROLE_NAME", "PAI_TASK_ROLE_NAME", "FC_TASKROLE_NAME"), own["role"]),
        **dict.fromkeys(
            ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX", "PAI_TASK_ROLE_INDEX", "FC_TASK_INDEX"),
            str(own["index"]),
        ),
        "PAI_TASK_ROLE_NO": "0" if first else "1",
        **dict.fromkeys(("PAI_CONTAINER_ID", "PAI_TASK_UID"), own["uid"]),
        "FC_TASK_ATTEMPT_ID": own["uid"].rpartition("-")[2],
        **dict.fromkeys(("PAI_CURRENT_TASK_ROLE_TASK_COUNT", "PAI_TASK_ROLE_NUM"), "2" if first else "1"),
        **dict.fromkeys(("PAI_CURRENT_TASK_ROLE_CPU_COUNT", "PAI_TASK_CPU_NUM"), "1"),
        **dict.fromkeys(("PAI_CURRENT_TASK_ROLE_MEM_MB", "PAI_TASK_MEM_MB"), "128"),
        **dict.fromkeys(("PAI_CURRENT_TASK_ROLE_GPU_COUNT", "PAI_TASK_GPU_NUM"), "0"),
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "32" if first else "64",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "2" if first else "1",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "",
        "PAI_RESOURCE": "0,1,128,32" if first else "0,1,128,64",
        **dict.fromkeys(("PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP"), str(own["address"])),
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{listed(ports)};" for label, ports in groups.items()),
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": listed(ports) for label, ports in groups.items()},
        **dict.fromkeys(("PAI_CONTAINER_HOST_PORT", "PAI_CURRENT_CONTAINER_PORT"), str(http)),
        "PAI_CONTAINER_SSH_PORT": str(ssh),
        "PAI_TASK_ROLE_INSTANCES": "main:0,main:1,side.car:0",
    }
    for service in job["services"]:
        if (service["role"], service["index"]) == (own["role"], own["index"]):
            table[f"PAI_SERVICE_BASE_PATH_{service['label']}"] = service["pathUrl"]
            table[f"PAI_SERVICE_URL_{service['label']}"] = service["url"]
    for number, role in enumerate(job["taskRoles"]):
        table |= of_role(number, role)
    return table


def of_role(number: int, role: RoleWire) -> dict[str, str]:
    """What all tasks are told of a role and its tasks; the second spelling too, where a shell needs one."""
    name, tasks = role["name"], role["taskStatuses"]
    hosts = ",".join(f"{task['address']}:{task['ports']['http'][0]}" for task in tasks)
    table = {
        f"PAI_TASK_ROLE_TASK_COUNT_{name}": str(len(tasks)),
        f"PAI_RESOURCE_{name}": "0,1,128,32" if name == "main" else "0,1,128,64",
        f"PAI_MIN_FAILED_TASK_COUNT_{name}": "2" if name == "main" else "1",
        f"PAI_MIN_SUCCEEDED_TASK_COUNT_{name}": "",
        f"PAI_TASK_ROLE_{name}_HOST_LIST": hosts,
    }
    for task in tasks:
        table[f"PAI_HOST_IP_{name}_{task['index']}"] = str(task["address"])
        for label, ports in task["ports"].items():
            table[f"PAI_PORT_LIST_{name}_{task['index']}_{label}"] = listed(ports)
            table[f"PAI_{name}_{task['index']}_{label}_PORT"] = listed(ports)
    return {**{key.replace(".", "_"): value for key, value in table.items()}, **table} | {
        f"PAI_TASK_ROLE_{number}_HOST_LIST": hosts
    }


def listed(ports: list[int]) -> str:
    """Ports as variables have them."""
    return ",".join(map(str, ports))


def documented(expected: dict[str, str]) -> set[str]:
    """What of the page's tables the expectation lacks, and the other way round; only what is conditional may."""
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    patterns = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    conditional = {"PAI_ENV_TRUNCATED", "PAI_KILL_ALL_ON_COMPLETED_TASK_NUM"}
    conditional |= {"PAI_SERVICE_BASE_PATH_<label>", "PAI_SERVICE_URL_<label>"}  # not where no port is asked for
    regexes = {name: re.compile(PLACE.sub("[a-z0-9._]+", name)) for name in patterns}
    lacking = {name for name, regex in regexes.items() if not any(regex.fullmatch(key) for key in expected)}
    unknown = {key for key in expected if not any(regex.fullmatch(key) for regex in regexes.values())}
    return (lacking - conditional) | unknown


@submitted(v1(v1_role(TELL), **FIELDS))
def test_variables_of_the_document_are_given_as_written_and_replace_none_of_ours(job: Job) -> None:
    job.ended("SUCCEEDED")
    found = facts(job.log())["variables"]
    assert {name: found[name] for name in ("EPOCHS", "TEXT", "LIST")} == {
        "EPOCHS": "10",
        "TEXT": GIVEN["TEXT"],
        "LIST": '[1,{"a":null}]',
    }
    assert found["PAI_JOB_NAME"] == job.detail["name"]


@submitted(
    v1(
        v1_role(f"test -n $QIZHI_JOB_NAME && {TELL}", "worker", 2),
        killAllOnCompletedTaskNumber=2,
        outputDir="$QIZHI_DEFAULT_FS_URI/$QIZHI_JOB_NAME",
    )
)
def test_a_qizhi_document_has_each_variable_under_both_prefixes(job: Job) -> None:
    assert job.ended("SUCCEEDED")["dialect"] == "qizhi"
    found = facts(job.log("worker", 1))["variables"]
    ours = {name for name in found if name.startswith("PAI_")} - {"PAI_TASK_UID", "PAI_POD_IP", "PAI_NODE_NAME"}
    ours.remove("PAI_CONTAINER_HOST_PORT_LIST")  # QIZHI's guide has no ";" behind the last label
    assert {name: found.get(f"QIZHI_{name[4:]}") for name in ours} == {name: found[name] for name in ours}
    assert found["QIZHI_CONTAINER_HOST_PORT_LIST"] + ";" == found["PAI_CONTAINER_HOST_PORT_LIST"]
    assert found["QIZHI_KILL_ALL_ON_COMPLETED_TASK_NUM"] == "2"
    assert found["QIZHI_CONTAINER_HOST__http_PORT_LIST"] == found["PAI_CONTAINER_HOST_http_PORT_LIST"]


@submitted(
    v2(
        {"main": v2_role(TELL.replace("os.path.isdir(os.environ[name])", "True"), instances=2, ports={"board": 2})},
        parameters={"rate": "1e-3"},
        secrets={"word": "x"},
    )
)
def test_a_task_begins_in_its_own_directory_and_knows_its_job(job: Job) -> None:
    detail = job.ended("SUCCEEDED")
    told = [facts(job.log("main", index)) for index in (0, 1)]
    variables = told[0]["variables"]
    assert variables["PWD"] == variables["PAI_WORK_DIR"] == told[0]["directory"]
    assert (variables["PAI_CURRENT_TASK_ROLE_CPU_COUNT"], variables["PAI_CURRENT_TASK_ROLE_SHM_MB"]) == ("0", "64")
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "none"
    assert told[0]["info"] == told[1]["info"]
    info = told[0]["info"]
    assert info["job"]["id"] == detail["id"]
    for task, listed_task in zip(job.tasks, info["tasks"], strict=True):
        assert (listed_task["host"], listed_task["ports"]) == (task["address"], task["ports"])
        assert listed_task["state"] == "placed"
    assert [len(task["ports"]["board"]) for task in info["tasks"]] == [2, 2]


@submitted(v1(v1_role(TELL), outputDir="$PAI_DEFAULT_FS_URI/results/$PAI_JOB_NAME"))
def test_the_output_directory_is_there_before_the_command_runs(room: Room, job: Job) -> None:
    job.ended("SUCCEEDED")
    assert facts(job.log())["there"] == {"PAI_WORK_DIR": True, "PAI_OUTPUT_DIR": True}
    assert (room.files / "results" / job.detail["name"]).is_dir()


@submitted(commands("echo kept > file; ls; rm file; ls -A | wc -l"))
def test_the_working_directory_is_empty_and_can_be_written(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log().split() == ["file", "0"]
