"""The Secrets of a task."""

from __future__ import annotations

import base64
import gzip
import json
import secrets

import kubernetes_validate
import pytest
from pydantic import SecretStr

from pai_backend.engine import debugger
from pai_backend.engine.base import SshPlan, StartRefused
from pai_backend.engine.bundle.registry_login import registry_of
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.secret import SECRET_BYTES, login_secret, task_secret
from pai_backend.model.plan import PeerAccess, RegistryLogin, StagedInput
from pai_backend.model.pod_settings import PodSettings

from .conftest import MakePlan


def files(secret: Object) -> dict[str, bytes]:
    """What the task's container reads, unpacked."""
    raw = {name: base64.b64decode(text) for name, text in secret["data"].items()}
    return {name.removesuffix(".gz"): gzip.decompress(data) if ".gz" in name else data for name, data in raw.items()}


def entries(data: bytes) -> list[str]:
    assert data.endswith(b"\0")
    return data.decode().split("\0")[:-1]


def test_a_task_finds_its_command_and_variables(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    plan = make_plan(command='echo "作业"\n', env={"A": "x=y\n", "PAI_HOST_IP_a.b_0": "n"}, job_info='{"作业": 1}')
    secret = task_secret(plan, owner, settings)
    found = files(secret)
    assert found["command"].decode() == 'echo "作业"\n'
    assert sorted(entries(found["environ"])) == [
        "A=x=y\n",
        "PAI_HOST_IP_a.b_0=n",
        "PAI_JOB_INFO_FILE=/pai/state/job-info.json",
        "PAI_TASK_UID=j0123456789abcdef-0-3-1",
        "PAI_WORK_DIR=/pai/work",
        "PWD=/pai/work",
    ]
    assert (secret["metadata"]["name"], secret["type"]) == ("j0123456789abcdef-0-3-1", "jupyter-pai/plan")
    assert set(found) == {"command", "environ", "options", "job-info.json"}
    assert found["job-info.json"].decode() == '{"作业": 1}'
    with_peers = files(task_secret(plan.model_copy(update={"job_tasks": 2}), owner, settings))
    assert set(with_peers) == {"command", "environ", "options"}  # they share the job info


def test_a_task_of_qizhi_has_its_paths_under_that_prefix_too(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    found = files(task_secret(make_plan(env={"QIZHI_JOB_NAME": "train"}), owner, settings))
    assert "QIZHI_WORK_DIR=/pai/work" in entries(found["environ"])


def test_debuggers_are_let_in_by_a_file_beside_the_plan(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    assert debugger.PROGRAM not in files(task_secret(make_plan(), owner, settings))
    found = files(task_secret(make_plan(debugger=True, env={"PYTHONPATH": "/own"}), owner, settings))
    assert found[debugger.PROGRAM] == debugger.program()
    told = entries(found["environ"])
    assert {"PYTHONPATH=/pai/plan:/own", "PAI_DEBUG_DIR=/pai/state/debugger"} <= set(told)


def test_the_launcher_is_told_what_is_no_variable(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, ssh: SshPlan
) -> None:
    """Ports without the one of the SSH server; directories of the container, which the task's own user makes."""
    plan = make_plan(ssh=ssh, keep_on_failure=True, job_tasks=2, outputs=("/mnt/out", "s3://out"))
    place = plan.placement.model_copy(update={"ports": {"ssh": (20101,), "http": (20100, 20102)}})
    found = files(task_secret(plan.model_copy(update={"placement": place}), owner, settings))
    assert entries(found["options"]) == [
        "uid=j0123456789abcdef-0-3-1",
        "keep=1",
        "directory=/mnt/out",
        "ssh_port=20101",
        "port=20100 http",
        "port=20102 http",
        "hosts_wait_s=60",
    ]
    assert (found["host_key"], found["authorized_keys"]) == (b"PRIVATE KEY", b"ssh-ed25519 A\nssh-rsa B\n")


def test_ssh_in_the_task_has_what_it_enters_and_recognises_peers_by(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, ssh: SshPlan
) -> None:
    peers = PeerAccess(key=SecretStr("PEERS"), host_ca="ssh-ed25519 CA")
    whole = ssh.model_copy(update={"host_certificate": "ssh-ed25519-cert C", "peers": peers})
    found = files(task_secret(make_plan(ssh=whole), owner, settings))
    assert found["host_certificate"] == b"ssh-ed25519-cert C\n"
    assert (found["peer_key"], found["known_hosts"]) == (b"PEERS", b"@cert-authority * ssh-ed25519 CA\n")
    without = files(task_secret(make_plan(ssh=ssh), owner, settings))
    assert not {"host_certificate", "peer_key", "known_hosts"} & without.keys()


@pytest.mark.parametrize(("names", "network", "tasks"), [("dns", "pod", 2), ("hosts", "host", 2), ("hosts", "pod", 1)])
def test_hosts_are_kept_only_where_nothing_else_gives_peers_names(
    make_plan: MakePlan, owner: PodOwner, names: str, network: str, tasks: int
) -> None:
    settings = PodSettings.model_validate({"runtime_image": "r", "names": names, "network": network})
    found = files(task_secret(make_plan(job_tasks=tasks), owner, settings))
    assert not [entry for entry in entries(found["options"]) if entry.startswith("hosts_wait_s")]


def test_the_staging_program_is_told_what_only_it_can_do(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    inputs = (StagedInput(uri="hdfs://fs/code", name="code", max_bytes=7),)
    found = files(task_secret(make_plan(inputs=inputs, outputs=("/o", "s3://o")), owner, settings))
    assert json.loads(found["stage.json"]) == {
        "inputs": [{"uri": "hdfs://fs/code", "name": "code", "max_bytes": 7}],
        "outputs": ["s3://o"],
        "work_dir": "/pai/work",
        "user": "alice",
    }


def test_a_large_job_fits(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    """3,000 tasks with two ports each: as much as the platform's variables ever take (launch/room.py)."""
    env = {f"PAI_PORT_LIST_worker_{index}_{label}": f"1{index}" for index in range(3000) for label in ("ssh", "http")}
    env |= {f"PAI_HOST_IP_worker_{index}": f"worker-{index}.j0123456789abcdef-a1.team" for index in range(3000)}
    secret = task_secret(make_plan(env=env), owner, settings)
    assert sum(len(base64.b64decode(text)) for text in secret["data"].values()) < SECRET_BYTES // 8
    assert len(entries(files(secret)["environ"])) == 9004


def test_the_same_plan_is_the_same_secret(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    """Byte for byte, so that a repeated start changes nothing."""
    assert task_secret(make_plan(), owner, settings) == task_secret(make_plan(), owner, settings)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"env": {"HUGE": "hush" * 40_000}}, "HUGE has 160,006 bytes"),
        ({"env": {"A=": "hush"}}, "'A='"),
        ({"env": {"": "hush"}}, "cannot be given"),
        ({"env": {"A": "hush\0"}}, "NUL"),
        ({"command": secrets.token_hex(2**21)}, "Secret holds at most 1,048,576"),
    ],
)
def test_what_no_process_or_secret_can_hold_is_refused_without_its_value(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, fields: dict[str, object], words: str
) -> None:
    with pytest.raises(StartRefused, match=words) as refused:
        task_secret(make_plan(**fields), owner, settings)
    assert "hush" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("uri", "image", "expected"),
    [
        ("https://registry.example:5000/", "anything", "registry.example:5000"),
        ("", "registry.example/team/image:1", "registry.example"),
        ("", "localhost/image", "localhost"),
        ("", "host:5000/image", "host:5000"),
        ("", "team/image:1", "https://index.docker.io/v1/"),
        ("", "image", "https://index.docker.io/v1/"),
        ("docker.io", "registry.example/image", "https://index.docker.io/v1/"),
        ("https://index.docker.io/v1/", "image", "https://index.docker.io/v1/"),
    ],
)
def test_credentials_are_found_by_the_registrys_name(uri: str, image: str, expected: str) -> None:
    assert registry_of(uri, image) == expected


def test_credentials_are_kept_as_docker_login_does(make_plan: MakePlan, owner: PodOwner) -> None:
    login = RegistryLogin(username="alice", password=SecretStr("pass:word"))
    secret = login_secret(make_plan(image_login=login), owner)
    assert secret is not None
    assert secret["metadata"]["name"] == "j0123456789abcdef-0-3-1-login"
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    entry = config["auths"]["registry.example"]
    assert (entry["username"], entry["password"]) == ("alice", "pass:word")
    assert base64.b64decode(entry["auth"]) == b"alice:pass:word"
    assert login_secret(make_plan(), owner) is None


def test_kubernetes_knows_every_field(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, ssh: SshPlan
) -> None:
    login = RegistryLogin(username="alice", password=SecretStr("p"))
    plan = make_plan(ssh=ssh, image_login=login)
    for secret in (task_secret(plan, owner, settings), login_secret(plan, owner)):
        assert secret is not None
        kubernetes_validate.validate(secret, "1.34.0", strict=True)
