"""The chart installed on a cluster of ours as an administrator would, with a PostgreSQL that pods reach."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from pai_backend.api.wire import MEDIA_TYPE
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import Ended, attempt, run, until
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.deploy.helm import CHART, Helm
from tests.kubernetes.fixtures import remove_namespace
from tests.support.documents import scm_document
from tests.support.kubeconfigs import kubeconfig
from tests.support.postgres import running_server

LIMIT_S = 300.0  # for whatever is waited for; a quiet machine needs a tenth of it
HTTP, SSH = 31080, 31022  # ports of the nodes; one release at a time has them
USER = 64000
KEY = "c2l4dGVlbiBieXRlcywgYW5kIHRoZW4gc2l4dGVlbiE="  # of a database that lives as long as the test
TOKEN = "token-of-alice-for-a-test"


@dataclass
class Release:
    """An installed release and its user."""

    name: str
    cluster: Cluster
    helm: Helm
    kubectl: Kubectl
    tasks: Kubectl
    place: Path
    image: str
    values: dict[str, Any]
    client: httpx.AsyncClient

    async def install(self, **changes: Any) -> None:
        """Install it, or upgrade it with other values, and wait until all pods are ready."""
        self.values = merged(self.values, changes)
        words = ("upgrade", "--install", self.name, str(CHART), f"--namespace={self.kubectl.namespace}", "--wait")
        await self.helm(*words, f"--timeout={LIMIT_S:.0f}s", values=self.values, limit_s=LIMIT_S + 30)

    async def uninstall(self) -> None:
        """Remove it, where it is there."""
        words = ("uninstall", self.name, f"--namespace={self.kubectl.namespace}", "--wait", "--ignore-not-found")
        await self.helm(*words, limit_s=LIMIT_S)

    async def pods(self, part: str) -> dict[str, str]:
        """Names of a part's pods that stay, with their uids."""
        found = await self.kubectl.get("pods", "-l", f"app.kubernetes.io/component={part}")
        living = [each["metadata"] for each in found["items"] if "deletionTimestamp" not in each["metadata"]]
        return {each["name"]: each["uid"] for each in living}

    async def task_pods(self, name: str) -> dict[str, str]:
        """Pods of a job's tasks by name, with their uids."""
        uid = (await self.job(name))["uid"]
        found = await self.tasks.get("pods", "-l", f"jupyter-pai/job={uid}")
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found["items"]}

    async def submit(self, name: str, command: str, tasks: int = 1, gpus: int = 0, **fields: Any) -> None:
        """Hand a job in through the Service of the API; ``gpus`` for each of its tasks."""
        role = {
            "name": "r",
            "taskNumber": tasks,
            "cpuNumber": 1,
            "memoryMB": 100,
            "gpuNumber": gpus,
            "command": command,
        }
        document = scm_document(name, taskRoles=[role], gpuType="", image=self.image, **fields)
        about = {"name": name, "filename": "job.json"}
        answer = await self.client.post("/api/v2/jobs", content=document, params=about)
        assert answer.status_code == 202, answer.text

    async def job(self, name: str) -> Json:
        """A job as its user sees it."""
        answer = await self.client.get(f"/api/v2/jobs/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def until_state(self, name: str, *states: str) -> Json:
        """The job, once it is in one of these states."""
        found: Json = {}

        async def there() -> bool:
            found.update(await self.job(name))
            return found["state"] in states

        await until(there, f"job {name} to be {' or '.join(states)}", LIMIT_S, 0.2)
        return found

    async def until_phase(self, name: str, phase: str) -> None:
        """Wait until all tasks of a job are in a phase."""

        async def there() -> bool:
            roles = (await self.job(name))["taskRoles"]
            return {task["phase"] for role in roles for task in role["taskStatuses"]} == {phase}

        await until(there, f"the tasks of job {name} to be {phase}", LIMIT_S, 0.2)

    async def log(self, name: str, index: int = 0) -> str:
        """What a task of it has written."""
        answer = await self.client.get(f"/api/v2/jobs/{name}/logs", params={"role": "r", "index": index})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def until_log(self, name: str, text: str, index: int = 0) -> None:
        """Wait until a task has written that."""

        async def there() -> bool:
            return text in await self.log(name, index)

        await until(there, f"{text!r} in the log of {name}", LIMIT_S, 0.2)

    async def make_key(self) -> None:
        """A key of the user's, known to the backend."""
        await run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.place / "key")
        public = (self.place / "key.pub").read_text().strip()
        answer = await self.client.post("/api/v2/keys", json={"publicKey": public, "comment": "test"})
        assert answer.status_code == 201, answer.text

    async def ssh(self, name: str, *words: str) -> Ended:
        """Run a command in a task by OpenSSH through the gateway's Service, strict about its key."""
        gateway = (await self.client.get("/api/v2/gateway")).json()
        known = self.place / "known_hosts"
        if not known.exists():  # written once: the key stays
            known.write_text(f"[{gateway['host']}]:{gateway['port']} {gateway['hostKey']}\n")
        options = {
            "IdentityFile": self.place / "key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": known,
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": 30,
        }
        given = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        where = ("-p", str(gateway["port"]), f"{name}@{gateway['host']}")
        return await attempt("ssh", "-F", "none", *given, *where, *words)

    async def account(self, part: str) -> Path:
        """A kubeconfig with a token of a part's account."""
        account = f"{self.name}-jupyter-pai-{part}"
        token = (await self.kubectl("create", "token", account, "--duration=1h")).strip()
        plane = self.cluster.plane
        authority = str(plane.authority.certificate)
        document = kubeconfig(plane.server, token=token, cluster={"certificate-authority": authority})
        path = self.place / f"{part}.kubeconfig"
        await asyncio.to_thread(path.write_text, yaml.safe_dump(document))
        return path

    async def may(self, part: str, verb: str, resource: str, namespace: str) -> bool:
        """Whether the API server would let a part's account do that; asked by an administrator."""
        account = f"system:serviceaccount:{self.kubectl.namespace}:{self.name}-jupyter-pai-{part}"
        words = ("auth", "can-i", verb, resource, f"--as={account}")
        said = await self.kubectl.within(namespace).attempt(*words)
        assert said.out.strip() in ("yes", "no"), said.err
        return said.out.strip() == "yes"

    async def rights(self, part: str) -> set[tuple[str, str]]:
        """Verb and resource of all that a part may ask for, in the namespace of tasks and in the cluster."""
        name = f"{self.name}-jupyter-pai-{part}"
        roles = [await self.tasks.get("role", name)]
        wide = await self.kubectl.get("clusterrole", "-l", f"app.kubernetes.io/instance={self.name}")
        roles += [each for each in wide["items"] if each["metadata"]["name"].endswith(f"{name}")]
        return {
            (verb, f"{group} {resource}".strip())
            for role in roles
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def requests(self, part: str) -> list[tuple[str, str, int]]:
        """Verb, resource and answer of all that a part has asked of the API server, by the server's own log."""
        user = f"system:serviceaccount:{self.kubectl.namespace}:{self.name}-jupyter-pai-{part}"
        return [
            (row["verb"], resource_of(row["objectRef"]), row["responseStatus"]["code"])
            for row in map(json.loads, self.cluster.plane.audit.read_text().splitlines())
            if row["user"]["username"] == user and "resource" in row.get("objectRef", {})
        ]


def resource_of(about: Mapping[str, str]) -> str:
    """A resource as rules name it: ``pods/log``, ``networking.k8s.io networkpolicies``."""
    inner = f"/{about['subresource']}" if about.get("subresource") else ""
    return f"{about.get('apiGroup', '')} {about['resource']}{inner}".strip()


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values over values, as helm puts them together."""
    found = dict(below)
    for key, value in above.items():
        beneath = found.get(key)
        found[key] = merged(beneath, value) if isinstance(beneath, dict) and isinstance(value, dict) else value
    return found


@contextlib.contextmanager
def database(cluster: Cluster) -> Iterator[str]:
    """A PostgreSQL on this machine's address that pods see; the URL of a database."""
    addresses = cluster.slot.addresses
    with running_server(host=addresses.host, clients=str(addresses.network)) as server:
        yield server.new_database()


@contextlib.asynccontextmanager
async def made_for(
    name: str, cluster: Cluster, helm: Helm, place: Path, backend_image: str, runtime_image: str, image: str
) -> AsyncIterator[Release]:
    """All that the chart needs, nothing installed yet; removed afterwards with all that is in it."""
    kubectl, tasks = cluster.kubectl.within(name), cluster.kubectl.within(f"{name}-tasks")
    address = cluster.nodes["carol"].address
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": MEDIA_TYPE}
    with database(cluster) as url:
        await kubectl("create", "namespace", name)
        await _prepare(kubectl, place, url)
        async with httpx.AsyncClient(
            base_url=f"http://{address}:{HTTP}", headers=headers, timeout=60, trust_env=False
        ) as client:
            values = _values(backend_image, runtime_image, address)
            release = Release(name, cluster, helm, kubectl, tasks, place, image, values, client)
            try:
                yield release
            finally:
                await release.uninstall()
                for each in (tasks, kubectl):
                    await remove_namespace(each)
                await kubectl("delete", "persistentvolume", name, f"{name}-jobs", "--wait=false")


def _values(backend_image: str, runtime_image: str, address: str) -> dict[str, Any]:
    repository, _, tag = backend_image.rpartition(":")
    little = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "runtimeImage": runtime_image,
        "secretName": "jupyter-pai",
        "api": {"replicas": 1, "service": {"type": "NodePort", "nodePort": HTTP}, **little},
        "controller": little,
        "gateway": {
            "replicas": 1,
            "publicHost": address,
            "publicPort": SSH,
            "service": {"type": "NodePort", "nodePort": SSH},
            **little,
        },
        "storage": {"existingClaim": "kept"},
        "config": {"engine": {"grace_s": 1}, "kubernetes": {"pods": {"grace_s": 2, "cpu_limits": False}}},
    }


async def _prepare(kubectl: Kubectl, place: Path, url: str) -> None:
    """The Secret, a claim for logs and a volume for tasks: directories of this machine, which all nodes see."""
    kept, jobs = place / "task-logs", place / "jobs"
    for each in (kept, jobs):
        await asyncio.to_thread(each.mkdir)
    await asyncio.to_thread(os.chown, kept, USER, USER)
    theirs = {"namespace": f"{kubectl.namespace}-tasks", "name": f"{kubectl.namespace}-jupyter-pai-jobs"}
    tokens = json.dumps([{"user": "alice", "token": TOKEN, "admin": True}])
    secret = {"database": url, "secret-key": KEY, "tokens": tokens}
    volume = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    await kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "jupyter-pai", "namespace": kubectl.namespace},
            "stringData": secret,
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": kubectl.namespace},
            "spec": {**volume, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(kept)}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{kubectl.namespace}-jobs"},
            "spec": {
                **volume,
                "capacity": {"storage": "100Gi"},
                "hostPath": {"path": str(jobs)},
                "claimRef": {"kind": "PersistentVolumeClaim", **theirs},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "kept", "namespace": kubectl.namespace},
            "spec": {**volume, "volumeName": kubectl.namespace, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
