"""A namespace for each virtual cluster: a backend of several processes, with no more rights than it needs.

One backend for all of it. Each virtual cluster's namespace has something of its own in the way, which the job must name
in plain words: in its sentence, and in its events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import yaml

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import Kubernetes, remove_namespace
from tests.support.backend_process import backend
from tests.support.documents import scm_document

pytestmark = pytest.mark.asyncio

WAIT_S = 150.0
OPEN, FULL, SMALL, STRICT, CLOSED, ABSENT = TEAMS = ("open", "full", "small", "strict", "closed", "absent")
RBAC = "rbac.authorization.k8s.io/v1"
EVERYWHERE = {
    "nodes": ("get", "list", "watch"),
    "namespaces": ("get", "list"),
    "pods": ("list", "watch"),
    "events": ("list", "watch"),
}
INSIDE = {
    "pods": ("get", "list", "watch", "create", "patch", "delete"),
    "pods/log": ("get",),
    "secrets": ("get", "list", "create", "patch", "delete"),
    "configmaps": ("get", "create", "patch", "delete"),
    "networkpolicies.networking.k8s.io": ("get", "create"),
}


def rules(rights: dict[str, tuple[str, ...]]) -> list[Json]:
    found = []
    for resource, verbs in rights.items():
        name, _, group = resource.partition(".")
        found.append({"apiGroups": [group], "resources": [name], "verbs": list(verbs)})
    return found


class Teams:
    """Namespaces of virtual clusters, and the account that works in them."""

    def __init__(self, home: Kubectl) -> None:
        self.home, self.name = home, home.namespace

    def of(self, team: str) -> Kubectl:
        return self.home.within(f"{self.name}-{team}")

    async def make(self, team: str) -> Kubectl:
        """A namespace that the account may not work in yet."""
        kubectl = self.of(team)
        await kubectl("create", "namespace", kubectl.namespace)
        await kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default")
        return kubectl

    async def admit(self, team: str) -> None:
        account = f"--serviceaccount={self.name}:backend"
        await self.of(team)("create", "rolebinding", "backend", f"--clusterrole={self.name}-inside", account)

    async def account(self, place: Path) -> Path:
        """A kubeconfig of an account that may follow tasks everywhere, and nothing more."""
        for kind, rights in (("everywhere", EVERYWHERE), ("inside", INSIDE)):
            about = {"name": f"{self.name}-{kind}"}
            role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": about, "rules": rules(rights)}
            await self.home.create(role)
        await self.home("create", "serviceaccount", "backend")
        words = (f"--clusterrole={self.name}-everywhere", f"--serviceaccount={self.name}:backend")
        await self.home("create", "clusterrolebinding", self.name, *words)
        document = yaml.safe_load(self.home.kubeconfig.read_text())
        token = (await self.home("create", "token", "backend", "--duration=1h")).strip()
        for user in document["users"]:
            user["user"] = {"token": token}
        path = place / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    async def remove(self) -> None:
        await self.home("delete", "clusterrolebinding", self.name)
        await self.home("delete", "clusterrole", f"{self.name}-everywhere", f"{self.name}-inside")
        for team in TEAMS:
            kubectl = self.of(team)
            if (await kubectl.attempt("get", "namespace", kubectl.namespace)).code == 0:
                await remove_namespace(kubectl)


@pytest_asyncio.fixture
async def teams(namespace: Kubectl) -> AsyncIterator[Teams]:
    """All but the one that is absent; the account may work in all but the closed one."""
    found = Teams(namespace)
    try:
        made = dict(zip(TEAMS, await asyncio.gather(*map(found.make, TEAMS[:-1])), strict=False))
        await made[FULL]("create", "quota", "team", "--hard=pods=0")
        limits = {"limits": [{"type": "Container", "max": {"memory": "64Mi"}, "default": {"memory": "64Mi"}}]}
        about = {"name": "team"}
        await made[SMALL].create({"apiVersion": "v1", "kind": "LimitRange", "metadata": about, "spec": limits})
        label = "pod-security.kubernetes.io/enforce=restricted"
        await made[STRICT]("label", "namespace", made[STRICT].namespace, label)

        async def counted() -> bool:  # admission knows of a quota once its controller has counted
            return bool((await made[FULL].get("quota", "team")).get("status", {}).get("hard"))

        await until(counted, "the quota to be counted", WAIT_S)
        yield found
    finally:
        await found.remove()


class Jobs:
    """One job in each virtual cluster, which is called as that is."""

    def __init__(self, client: httpx.AsyncClient, image: str) -> None:
        self._client, self._image = client, image

    async def submit(self, team: str, name: str = "", command: str = "echo hello") -> None:
        role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
        name = name or team
        content = scm_document(name, taskRoles=[role], gpuType="", image=self._image, virtualCluster=team)
        about = {"name": name, "filename": "job.json"}
        answer = await self._client.post("/api/v2/jobs", content=content, params=about)
        assert answer.status_code == 202, answer.text

    async def stop(self, name: str) -> None:
        answer = await self._client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"})
        assert answer.status_code == 202, answer.text

    async def get(self, path: str) -> Any:
        return (await self._client.get(path)).json()

    async def until(self, name: str, holds: Callable[[Json], bool], what: str) -> Json:
        async def there() -> bool:
            return holds(await self.get(f"/api/v2/jobs/{name}"))

        try:
            await until(there, f"job {name}: {what}", WAIT_S)
        except Exception as late:
            late.add_note(json.dumps(await self.get(f"/api/v2/jobs/{name}")))
            raise
        return dict(await self.get(f"/api/v2/jobs/{name}"))

    async def ended(self, name: str, state: str) -> Json:
        """How its one task ended, once the job is in this final state."""
        job = await self.until(name, lambda job: job["state"] in ("STOPPED", "SUCCEEDED", "FAILED"), "its end")
        (task,) = [task for role in job["taskRoles"] for task in role["taskStatuses"]]
        assert job["state"] == state, task
        return dict(task["exit"])

    async def told(self, name: str, words: str) -> None:
        """Wait until the job says so: in answer to why it waits, and in its events."""

        async def says() -> bool:
            why = await self.get(f"/api/v2/jobs/{name}/why")
            events = await self.get(f"/api/v2/jobs/{name}/events")
            return words in why["sentence"] and any(words in json.dumps(event) for event in events["data"])

        await until(says, f"job {name} to be told {words!r}", WAIT_S)


@pytest.fixture
def arguments(kubernetes: Kubernetes, teams: Teams, runtime_image: str) -> list[str]:
    keys = {
        "engine-kind": "kubernetes",
        "processes": '[["api"], ["controller"], ["gateway"]]',
        "virtual-clusters": json.dumps(TEAMS),
        "kubernetes-namespace": teams.name,
        "kubernetes-namespace-per": "virtual-cluster",
        "kubernetes-pods": json.dumps({"runtime_image": runtime_image, "cpu_limits": False}),
    }
    return [word for key, value in keys.items() for word in (f"--{key}", value)]


async def test_each_virtual_cluster_has_its_namespace_and_is_told_what_is_wrong_with_it(
    kubernetes: Kubernetes, teams: Teams, arguments: list[str], tmp_path: Path
) -> None:
    for team in (OPEN, FULL, SMALL, STRICT):
        await teams.admit(team)
    arguments += ["--kubernetes-kubeconfig", str(await teams.account(tmp_path))]
    with backend(tmp_path / "backend", arguments) as running:
        headers = {"Authorization": f"Bearer {running.token}", "Accept": "application/vnd.jupyter-pai+json"}
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as client:
            await knows_the_cluster(client)
            jobs = Jobs(client, kubernetes.python)
            await asyncio.gather(*map(jobs.submit, TEAMS))
            await runs_there(client, jobs, teams)
            await waits_and_goes_on(jobs, teams)
            await fails(jobs)


async def knows_the_cluster(client: httpx.AsyncClient) -> None:
    """The process of the API, which has no controller in it."""
    nodes = (await client.get("/api/v2/cluster/nodes")).json()["data"]
    assert {"carol", "dan"} <= {node["name"] for node in nodes}
    ready = (await client.get("/readyz")).json()
    assert {"name": "engine", "ok": True, "message": "is listed"} in ready["checks"]
    figures = (await client.get("/metrics")).text
    assert 'pai_kubernetes_knowledge_age_seconds{resource="nodes"}' in figures
    assert 'pai_kubernetes_requests_total{answer="200",verb="watch"}' in figures


async def runs_there(client: httpx.AsyncClient, jobs: Jobs, teams: Teams) -> None:
    """And its log is found by a process that does not watch."""
    assert (await jobs.ended(OPEN, "SUCCEEDED"))["code"] == 0
    marks = (await teams.of(OPEN).get("secrets"))["items"]
    assert [mark["metadata"]["annotations"]["jupyter-pai/virtual-cluster"] for mark in marks] == [OPEN]
    assert (await client.get(f"/api/v2/jobs/{OPEN}/logs")).text == "hello\n"


async def waits_and_goes_on(jobs: Jobs, teams: Teams) -> None:
    """What an administrator can put right is waited for, and a job that waits for it can be stopped."""
    absent = teams.of(ABSENT).namespace
    await jobs.told(FULL, "the quota of its namespace is used up")
    await jobs.told(CLOSED, "the administrator must allow it")
    await jobs.told(ABSENT, f"the namespace {absent} of its task is not there")
    await jobs.told(ABSENT, f"kubectl create namespace {absent}")
    await jobs.submit(ABSENT, "second")
    await jobs.stop(ABSENT)
    assert (await jobs.ended(ABSENT, "STOPPED"))["message"] == "stopped before it was started"
    await teams.make(ABSENT)
    await asyncio.gather(teams.admit(ABSENT), teams.admit(CLOSED))
    await teams.of(FULL)("patch", "quota", "team", "--type=merge", "-p", '{"spec":{"hard":{"pods":"5"}}}')
    for name in (FULL, CLOSED, "second"):
        assert (await jobs.ended(name, "SUCCEEDED"))["code"] == 0


async def fails(jobs: Jobs) -> None:
    """What cannot be right without another document or other settings."""
    small, strict = await jobs.ended(SMALL, "FAILED"), await jobs.ended(STRICT, "FAILED")
    assert "more or less than its namespace allows one task" in small["message"]
    assert "does not allow what the administrator has set for pods" in strict["message"]
