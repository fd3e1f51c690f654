"""The runtime bundle in pods of a real cluster: copied by its init container, run in images of every kind."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.engine.bundle.record import ExitRecord, record_of
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.engine.kubernetes.pods.secret import task_secret
from pai_backend.model.plan import SshPlan, TaskPlan
from pai_backend.model.pod_settings import PodSettings
from tests.kubernetes import pod_cases
from tests.kubernetes.cluster.commands import Ended, attempt, run, until
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import Kubernetes

pytestmark = pytest.mark.asyncio

PORT = 2200
RESTRICTED = {"restricted": True, "user": 23456, "fs_group": 23456}
READ_ONLY = {"readOnlyRootFilesystem": True}


class Login:
    """Real OpenSSH with a key of its own, and a task's host key."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def prepare(self) -> None:
        """Make the keys."""
        for name in ("key", "host"):
            await run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.directory / name)

    @property
    def server(self) -> SshPlan:
        """For the plan."""
        public = (self.directory / "key.pub").read_text().strip()
        return SshPlan(
            port=PORT,
            host_key=SecretStr((self.directory / "host").read_text()),
            authorized_keys=(public,),
        )

    def options(self, address: str) -> list[str]:
        """Of ssh and sftp; strict about the host."""
        known = self.directory / "known_hosts"
        known.write_text(f"[{address}]:{PORT} {(self.directory / 'host.pub').read_text()}")
        given: dict[str, object] = {
            "IdentityFile": self.directory / "key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": known,
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "Port": PORT,
            "ConnectTimeout": 5,
        }
        return ["-F", "none", *(word for name, value in given.items() for word in ("-o", f"{name}={value}"))]

    async def ssh(self, address: str, *words: str) -> Ended:
        """Run a command in the task."""
        return await attempt("ssh", *self.options(address), f"someone@{address}", *words)


@pytest_asyncio.fixture
async def login(tmp_path: Path) -> Login:
    made = Login(tmp_path)
    await made.prepare()
    return made


async def start(bench: pod_cases.Bench, settings: PodSettings, plan: TaskPlan, security: Json) -> str:
    """Start a task by the engine's own objects, with the bundle's own image; ``security`` is added to its container."""
    pod = build_pod(plan, bench.owner, settings)
    pod["spec"]["containers"][0]["securityContext"].update(security)
    await bench.kubectl.create(task_secret(plan, bench.owner, settings), pod)
    return str(pod["metadata"]["name"])


def record(pod: Json) -> ExitRecord:
    """What the launcher left, as the engine reads it."""
    ended = pod_cases.state_of(pod, "terminated")
    found = record_of(ended["message"], ended["exitCode"])
    assert found is not None, ended
    return found


@pytest.mark.parametrize("kind", ["busybox", "python"])
@pytest.mark.parametrize(
    ("security", "container"),
    [({}, {}), ({}, READ_ONLY), (RESTRICTED, READ_ONLY), ({"restricted": True}, {**READ_ONLY, "runAsUser": 23456})],
    ids=["root", "root-read-only", "nobody-known-read-only", "as-its-image-says-and-restricted"],
)
async def test_a_task_is_logged_in_to_and_ends_as_its_command(
    kubernetes: Kubernetes,
    namespace: Kubectl,
    runtime_image: str,
    login: Login,
    kind: str,
    security: dict[str, Any],
    container: Json,
) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    if security.get("restricted"):
        await namespace("label", "namespace", namespace.namespace, "pod-security.kubernetes.io/enforce=restricted")
    settings = PodSettings.model_validate({"runtime_image": runtime_image, "grace_s": 5, "security": security})
    command = "until test -e /pai/work/go; do sleep 0.1; done; echo well done; exit 7"
    fields = {"image": getattr(kubernetes, kind), "ssh": login.server}
    plan = bench.plan(command).model_copy(update=fields)
    name = await start(bench, settings, plan, container)
    address = (await bench.running(name))["status"]["podIP"]

    async def first_login() -> bool:
        return (await login.ssh(address, "true")).code == 0

    await until(first_login, "the first login", 60)
    told = await login.ssh(address, "echo $PAI_JOB_NAME $UID $PWD; exit 3")
    user = security.get("user", container.get("runAsUser", 0))
    assert (told.code, told.out) == (3, f"cases {user} /pai/work\n"), told.err
    await files_both_ways(login, address)
    assert (await login.ssh(address, "echo > /pai/work/go")).code == 0
    over = await bench.over(name)
    assert (record(over).code, record(over).reason) == (7, "exited")
    assert await namespace("logs", name, "-c", "task") == "well done\n"


async def files_both_ways(login: Login, address: str) -> None:
    """20 MB by SFTP, there and back."""
    there, back = login.directory / "there", login.directory / "back"
    there.write_bytes(os.urandom(20_000_000))
    batch = f"put {there} large\nget large {back}\n"
    done = await attempt("sftp", *login.options(address), "-b", "-", f"x@{address}", given=batch)
    assert done.code == 0, done.err
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (there, back)]
    assert digests[0] == digests[1]


async def test_tasks_end_as_their_commands_do(kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    settings = PodSettings.model_validate({"runtime_image": runtime_image, "grace_s": 5})
    expected: Sequence[tuple[str, int | None, int | None, str]] = [
        ("exit 0", 0, None, "exited"),
        ("exit 3", 3, None, "exited"),
        ("kill -SEGV $$", None, signal.SIGSEGV, "signalled"),
        ("exec tail /dev/zero", None, signal.SIGKILL, "out-of-memory"),
    ]
    names = []
    for command, *_ in expected:
        pod = build_pod(plan := bench.plan(command), bench.owner, settings)
        for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            for asked in container["resources"].values():
                asked["cpu"] = "10m"
        await namespace.create(task_secret(plan, bench.owner, settings), pod)
        names.append(pod["metadata"]["name"])
    for name, (_, code, number, reason) in zip(names, expected, strict=True):
        found = record(await bench.over(name))
        assert (found.code, found.signal, found.reason) == (code, number, reason)


async def test_a_pod_that_is_deleted_ends_its_command_first(
    kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str
) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    settings = PodSettings.model_validate({"runtime_image": runtime_image, "grace_s": 20})
    plan = bench.plan("trap 'echo saved; exit 4' TERM; echo up; while :; do sleep 0.1; done")
    name = await start(bench, settings, plan, {})
    await bench.running(name)
    # Followed: a kubelet removes the container of a pod that is deleted soon after its end, and its log with it.
    said = asyncio.create_task(namespace("logs", name, "-c", "task", "--follow"))

    async def up() -> bool:
        return "up" in await namespace("logs", name, "-c", "task")

    await until(up, "the command", 60)
    await bench.delete(name)
    found = record(await bench.over(name))
    assert (found.code, found.reason) == (4, "stopped")
    assert "saved" in (await said).splitlines()  # and bash may say of its sleep that it was terminated


async def test_a_key_that_is_taken_out_of_the_secret_is_refused(
    kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, login: Login
) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    settings = PodSettings.model_validate({"runtime_image": runtime_image, "grace_s": 1})
    plan = bench.plan("sleep 600").model_copy(update={"ssh": login.server})
    name = await start(bench, settings, plan, {})
    address = (await bench.running(name))["status"]["podIP"]

    async def accepted() -> bool:
        return (await login.ssh(address, "true")).code == 0

    async def refused() -> bool:
        return "Permission denied (publickey)" in (await login.ssh(address, "true")).err

    await until(accepted, "the first login", 60)
    nothing = json.dumps({"data": {"authorized_keys": ""}})
    await namespace("patch", "secret", name, "--type=merge", "-p", nothing)
    await namespace("annotate", "pod", name, "jupyter-pai/refreshed=1")
    await until(refused, "the key to be refused", 60)
