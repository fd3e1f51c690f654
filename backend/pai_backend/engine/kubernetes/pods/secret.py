"""The Secrets of a task: what it runs, and what its image is fetched with.

A Secret holds 1 MiB at most. Variables and command of a job with thousands of tasks are more in clear, and say the
same things over and over: both are compressed (3,000 tasks: see docs/engine-kubernetes.md).
Source: Kubernetes documentation, "Secrets" (size limit, kubernetes.io/dockerconfigjson).
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pai_backend.engine import debugger
from pai_backend.engine.base import StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods import layout
from pai_backend.engine.kubernetes.pods.owner import PodOwner, metadata
from pai_backend.launch.peers import known_hosts_line
from pai_backend.launch.plan import path_variables
from pai_backend.launch.room import VARIABLE_BYTES, entry_bytes
from pai_backend.model.plan import RegistryLogin, SshPlan, StagedInput, TaskPlan
from pai_backend.model.pod_settings import Network, PeerNames, PodSettings

SECRET_BYTES: Final = 1_048_576
"""All values of a Secret or ConfigMap together."""
RECORD_MAX: Final = 196_608  # characters of the record of a job, in an annotation
TASK_RECORD_MAX: Final = 32_768  # of that of a task beside it
DOCKER_HUB: Final = "https://index.docker.io/v1/"
"""The name that credentials of the registry without a name are kept under."""

LEVEL: Final = 4  # of gzip: at 3,000 tasks 7 ms for each and 74 KB; 9 takes 60 ms for 72 KB (measured 2026-11-21)

_TEXT: Final = ("utf-8", "surrogateescape")


def task_secret(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> Object:
    """The Secret with a task's plan.

    Raises StartRefused when no process can be given its variables, or when it is more than a Secret can hold; the
    message repeats no value.
    """
    files = {
        layout.COMMAND: compressed(plan.command.encode(*_TEXT)),
        layout.ENVIRON: compressed(entries(task_environment(plan).items())),
        layout.OPTIONS: entries(launcher_options(plan, settings)),
    }
    if plan.debugger:
        files[debugger.PROGRAM] = debugger.program()
    if is_alone(plan):
        files[layout.JOB_INFO] = compressed(plan.job_info.encode())
    inputs, remote = plan.inputs, remote_outputs(plan)
    if inputs or remote:
        files[layout.STAGE] = _stage_text(inputs, remote, plan.user)
    if plan.ssh is not None:
        files |= {name: text.encode() for name, text in _ssh_files(plan.ssh)}
    size = sum(map(len, files.values()))
    if size > SECRET_BYTES:
        raise StartRefused(
            f"command and variables of the task are {size:,} bytes compressed, and a Secret holds at most "
            f"{SECRET_BYTES:,}; put what is large into a file"
        )
    return {**mark_secret(plan, owner), "data": {name: _base64(content) for name, content in files.items()}}


def mark_secret(plan: TaskPlan, owner: PodOwner) -> Object:
    """That Secret without a plan: what the attempt of a task that can never run is known and removed by."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            owner,
            naming.task_name(plan.uid),
            {**naming.task_labels(owner.instance, plan), naming.COMPONENT: naming.Component.TASK},
            {**naming.task_annotations(plan), **_records(plan)},
        ),
        "type": "jupyter-pai/plan",
    }


def job_record(plan: TaskPlan) -> dict[str, str]:
    """The annotation from which a database that lost the job takes it back; none where it is too large for one.

    An annotation and no file of the Secret: the task does not get it. All annotations of an object together hold
    256 KiB (Kubernetes documentation, "Annotations").
    """
    fits = 0 < len(plan.job_record) <= RECORD_MAX
    return {naming.JOB_RECORD: plan.job_record} if fits else {}


def _records(plan: TaskPlan) -> dict[str, str]:
    task = {naming.TASK_RECORD: plan.task_record} if 0 < len(plan.task_record) <= TASK_RECORD_MAX else {}
    return {**task, **(job_record(plan) if is_alone(plan) else {})}


def _ssh_files(ssh: SshPlan) -> Iterator[tuple[str, str]]:
    """What the task's SSH server and its clients have of the plan; their configuration the launcher makes."""
    yield layout.HOST_KEY, ssh.host_key.get_secret_value()
    yield layout.AUTHORIZED_KEYS, "".join(f"{key}\n" for key in ssh.authorized_keys)
    if ssh.host_certificate:
        yield layout.HOST_CERTIFICATE, f"{ssh.host_certificate}\n"
    if ssh.peers is not None:
        yield layout.PEER_KEY, ssh.peers.key.get_secret_value()
        yield layout.KNOWN_HOSTS, known_hosts_line(ssh.peers.host_ca)


def login_secret(plan: TaskPlan, owner: PodOwner) -> Object | None:
    """The Secret that the task's image is fetched with; None when the plan has no credentials."""
    if plan.image_login is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            owner,
            naming.login_name(plan.uid),
            {**naming.task_labels(owner.instance, plan), naming.COMPONENT: naming.Component.LOGIN},
            naming.task_annotations(plan),
        ),
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": _base64(_docker_config(plan.image_login, plan.image))},
    }


def task_environment(plan: TaskPlan) -> dict[str, str]:
    """What the launcher adds to the image's own variables, and replaces of them."""
    paths = path_variables(plan.env, work_dir=layout.WORK, job_info_file=layout.JOB_INFO_FILE)
    place = os.path.dirname(debugger.DEBUG_SOCKET)
    more = debugger.debugger_variables(plan.env, layout.PLAN, place) if plan.debugger else {}
    return {**plan.env, **more, **paths, "PWD": layout.WORK, layout.MARK: plan.uid}


def launcher_options(plan: TaskPlan, settings: PodSettings) -> list[tuple[str, str]]:
    """What the launcher must know beside command and variables. A name may come several times."""
    options = [("uid", plan.uid), ("keep", "1" if plan.keep_on_failure else "0")]
    options += [("directory", path) for path in plan.outputs if _is_local(path)]
    if plan.ssh is not None:
        options.append(("ssh_port", str(plan.ssh.port)))
    taken = plan.ssh.port if plan.ssh else None
    for label, numbers in plan.placement.ports.items():
        options += [("port", f"{number} {label}") for number in numbers if number != taken]
    if keeps_hosts(plan, settings):
        options.append(("hosts_wait_s", str(settings.hosts_wait_s)))
    return options


def is_alone(plan: TaskPlan) -> bool:
    """Whether it is the only task of its job. Then its Secret has the job info, and the ConfigMap need not be mounted.

    Each object that a pod mounts is a list and a watch of its kubelet's, and one more thing to wait for.
    """
    return plan.job_tasks < 2


def keeps_hosts(plan: TaskPlan, settings: PodSettings) -> bool:
    """Whether the launcher keeps the task's /etc/hosts: it has peers, and they are told by names that no DNS knows."""
    return plan.job_tasks > 1 and settings.network is Network.POD and settings.names is PeerNames.HOSTS


def remote_outputs(plan: TaskPlan) -> tuple[str, ...]:
    """Output directories that are no directories of the container: only the staging program can make them."""
    return tuple(uri for uri in plan.outputs if not _is_local(uri))


def entries(pairs: Iterable[tuple[str, str]]) -> bytes:
    """``NAME=VALUE`` of each, ended by NUL, as in /proc/PID/environ.

    Raises StartRefused when no process can be given one of them; the message repeats no value.
    """
    found = []
    for name, value in pairs:
        if not name or "=" in name or "\0" in name + value:
            raise StartRefused(f"variable {name[:80]!r} cannot be given to a process: '=' in its name, or a NUL byte")
        if len(value) > VARIABLE_BYTES // 4 and (size := entry_bytes(name, value)) > VARIABLE_BYTES:
            raise StartRefused(
                f"variable {name[:80]} has {size:,} bytes, and a process can be given at most {VARIABLE_BYTES:,} in "
                "one; put the value into a file"
            )
        found.append(f"{name}={value}\0")
    return "".join(found).encode(*_TEXT)


def compressed(data: bytes) -> bytes:
    """Gzip without a time in it, so that the same data is the same file."""
    return gzip.compress(data, LEVEL, mtime=0)


def _is_local(uri: str) -> bool:
    return uri.startswith("/")


def _stage_text(inputs: Iterable[StagedInput], outputs: tuple[str, ...], user: str) -> bytes:
    fields = {
        "inputs": [item.model_dump(mode="json") for item in inputs],
        "outputs": list(outputs),
        "work_dir": layout.WORK,
        "user": user,
    }
    return json.dumps(fields).encode()


def _docker_config(login: RegistryLogin, image: str) -> bytes:
    """Credentials as ``docker login`` keeps them, under the registry's name."""
    password = login.password.get_secret_value()
    both = base64.b64encode(f"{login.username}:{password}".encode()).decode()
    entry: Mapping[str, str] = {"username": login.username, "password": password, "auth": both}
    return json.dumps({"auths": {registry_of(login.registry_uri, image): entry}}).encode()


def registry_of(uri: str, image: str) -> str:
    """The name that a kubelet looks credentials up by: of the login's registry, or else of the image's.

    What comes first in an image's name is a registry when it has a dot or a port or is ``localhost``.
    Source: the distribution project's reference grammar, and Kubernetes "Images", config.json.
    """
    name = uri.removeprefix("https://").removeprefix("http://").rstrip("/")
    if not name:
        first, slash, _ = image.partition("/")
        name = first if slash and ("." in first or ":" in first or first == "localhost") else ""
    return DOCKER_HUB if name in ("", "docker.io", "index.docker.io", "index.docker.io/v1") else name


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
