"""Another cluster configuration on a backend that runs jobs: planned, applied, and killed in between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.backend_process import Backend, backend, until
from tests.support.lab_config import ONE_VC

NODES = json.dumps([{"name": name, "gpus": {"type": "TITANX", "count": 1}} for name in ("carol", "dan")])
CONFIG = "/api/v2/cluster/config"
MALLORY = "mallory-token-0123456789"


def quotas(**owned: int) -> str:
    """Two nodes of one kind, so many for each virtual cluster."""
    lines = [f"  {vc}: {{virtualCells: [{{cellType: GPU-NODE, cellNumber: {n}}}]}}" for vc, n in owned.items()]
    return "\n".join([ONE_VC.partition("virtualClusters")[0] + "virtualClusters:", *lines])


@contextmanager
def running(directory: Path, *arguments: str, setting: str = quotas(default=2, vc1=0)) -> Iterator[Backend]:
    """A backend with two simulated nodes, this configuration in its settings, and a user who is no administrator."""
    (directory / "cluster.yaml").write_text(setting)
    settings = {
        "cluster": {"config": str(directory / "cluster.yaml")},
        "api": {"tokens": [{"token": MALLORY, "user": "mallory"}]},
        "engine": {"grace_s": 1, "trust_all_users": True},
    }
    (directory / "backend.yaml").write_text(json.dumps(settings))
    (directory / "backend.yaml").chmod(0o600)
    given = ["--config", str(directory / "backend.yaml"), "--engine-nodes", NODES, *arguments]
    with backend(directory / "data", given, whole="--role" not in arguments) as one:
        yield one


def job(name: str, vc: str) -> bytes:
    role = {
        "dockerImage": "none",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 1},
        "commands": ["sleep 600"],
    }
    document = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "none", "uri": "none"}],
        "taskRoles": {"main": role},
        "defaults": {"virtualCluster": vc},
        "extras": {"gangAllocation": False},  # a gang is refused at once where nothing is owned
    }
    return json.dumps(document).encode()


def submit(client: httpx.Client, name: str, vc: str) -> None:
    client.post("/api/v2/jobs", content=job(name, vc)).raise_for_status()


def detail(client: httpx.Client, name: str) -> Any:
    return client.get(f"/api/v2/jobs/{name}").raise_for_status().json()


def until_running(client: httpx.Client, name: str) -> None:
    until(lambda: detail(client, name)["state"] == "RUNNING")


def start(client: httpx.Client, *names: str) -> None:
    """Jobs of the virtual cluster ``default``, one after the other."""
    for name in names:
        submit(client, name, "default")
        until_running(client, name)


def until_waiting(client: httpx.Client, name: str) -> None:
    until(lambda: bool(detail(client, name)["why"]))


def claims(client: httpx.Client, name: str) -> list[tuple[str, int]]:
    events = client.get(f"/api/v2/jobs/{name}/events").json()["data"]
    told = [event["payload"] for event in events if event["type"] == "job.claim"]
    return [(payload["change"], payload["config"]) for payload in told]


def jobs_of(effects: Sequence[Any]) -> list[str]:
    return [each["job"].partition("~")[2] for each in effects]


def stop_all(client: httpx.Client) -> None:
    for row in client.get("/api/v2/jobs?state=WAITING,RUNNING").json():
        client.put(f"/api/v2/jobs/{row['id']}/executionType", json={"value": "STOP"})
    until(lambda: not client.get("/api/v2/jobs?state=WAITING,RUNNING,STOPPING").json())


def shown(client: httpx.Client) -> tuple[int, str, str]:
    told = client.get(CONFIG).raise_for_status().json()
    return told["version"], told["origin"], told["by"]


def test_what_was_planned_happens_and_every_job_runs_on(tmp_path: Path) -> None:
    with running(tmp_path) as one, one.client() as client:
        start(client, "first", "second")
        submit(client, "waiting", "vc1")
        until_waiting(client, "waiting")
        text = quotas(default=1, vc1=1)

        plan = client.post(CONFIG, params={"dryRun": "true"}, content=text).raise_for_status().json()
        assert (plan["valid"], plan["concerns"], plan["newestVersion"], plan["appliedVersion"]) == (True, True, 1, None)
        assert jobs_of(plan["change"]["lost"]) == ["second"]
        changed = {each["vc"]: (each["gpusBefore"], each["gpusAfter"]) for each in plan["change"]["virtualClusters"]}
        assert changed == {"default": (2, 1), "vc1": (0, 1)}
        assert shown(client) == (1, "setting", "")
        assert claims(client, "second") == []

        done = client.post(CONFIG, params={"expectedVersion": 1}, content=text).raise_for_status().json()
        assert (done["appliedVersion"], done["inForce"], done["change"]) == (2, True, plan["change"])
        assert shown(client)[:2] == (2, "rest")
        # What it owns now is taken back from the one that runs without a claim, and from nobody else.
        until_running(client, "waiting")
        assert claims(client, "second") == [("lost", 2)]
        assert (detail(client, "first")["state"], claims(client, "first")) == ("RUNNING", [])
        newest, oldest = client.get(f"{CONFIG}/history").json()["data"]
        assert [(each["version"], each["state"]) for each in (newest, oldest)] == [(2, "in force"), (1, "past")]
        assert jobs_of(newest["change"]["lost"]) == ["second"]
        stop_all(client)


def test_a_waiting_job_starts_at_once_when_its_virtual_cluster_grows(tmp_path: Path) -> None:
    with running(tmp_path, setting=quotas(default=1, vc1=0)) as one, one.client() as client:
        submit(client, "waiting", "vc1")
        until_waiting(client, "waiting")
        text = quotas(default=1, vc1=1)
        plan = client.post(CONFIG, params={"dryRun": "true"}, content=text).json()
        assert jobs_of(plan["change"]["starts"]) == ["waiting"]
        client.post(CONFIG, headers={"If-Match": '"1"'}, content=text).raise_for_status()
        until_running(client, "waiting")
        # A virtual cluster that is new is known at once, also to those who submit.
        added = quotas(default=1, vc1=1, vc2=0)
        client.post(CONFIG, params={"expectedVersion": 2}, content=added).raise_for_status()
        submit(client, "late", "vc2")
        stop_all(client)


def test_what_is_wrong_changes_nothing_and_is_told_with_its_place(tmp_path: Path) -> None:
    with running(tmp_path) as one, one.client() as client:
        text = quotas(default=3, vc1=1).replace("default:", "default: ")
        plan = client.post(CONFIG, params={"dryRun": "true"}, content=text).json()
        applied = client.post(CONFIG, params={"expectedVersion": 1}, content=text)
        stale = client.post(CONFIG, params={"expectedVersion": 0}, content=quotas(default=1, vc1=1))
        blind = client.post(CONFIG, content=quotas(default=1, vc1=1))
        no_text = client.post(CONFIG, params={"expectedVersion": 1}, content=b"a: \xff")
        assert (plan["valid"], plan["change"]) == (False, None)
        (fault,) = plan["errors"]
        assert (applied.status_code, applied.json()["errors"]) == (400, [fault])
        assert "4 cells of type GPU-NODE are promised (default 3, vc1 1), 2 left" in fault["message"]
        assert fault["line"] > 1
        assert fault["hint"]
        assert (stale.status_code, stale.json()["code"]) == (409, "ConflictClusterConfigError")
        assert "version 1, not 0" in stale.json()["message"]
        assert (blind.status_code, no_text.status_code) == (400, 400)
        assert shown(client) == (1, "setting", "")


def test_users_who_are_no_administrators_are_refused(tmp_path: Path) -> None:
    with running(tmp_path) as one, one.client() as client:
        client.headers["Authorization"] = f"Bearer {MALLORY}"
        answers = [
            client.get(CONFIG),
            client.get(f"{CONFIG}/history"),
            client.post(CONFIG, params={"dryRun": "true"}, content=quotas(default=1, vc1=1)),
            client.post(CONFIG, params={"expectedVersion": 1}, content=quotas(default=1, vc1=1)),
        ]
        assert [(each.status_code, each.json()["code"]) for each in answers] == [(403, "ForbiddenUserError")] * 4
        client.headers["Authorization"] = f"Bearer {one.token}"
        assert shown(client) == (1, "setting", "")


def test_a_kill_between_the_record_and_its_effect_loses_neither(tmp_path: Path) -> None:
    """The api alone records it; nobody is there to take it over, and then nobody at all."""
    with running(tmp_path) as one, one.client() as client:
        start(client, "first", "second")
        kill_all(one)
    with running(tmp_path, "--role", "api") as one, one.client() as client:
        text = quotas(default=1, vc1=1)
        done = client.post(CONFIG, params={"expectedVersion": 1}, content=text).raise_for_status().json()
        assert (done["appliedVersion"], done["inForce"]) == (2, False)
        assert shown(client) == (1, "setting", "")
        kill_all(one)
    with running(tmp_path) as one, one.client() as client:
        until(lambda: shown(client)[0] == 2)
        until(lambda: claims(client, "second") == [("lost", 2)])
        newest = client.get(f"{CONFIG}/history").json()["data"][0]
        assert (newest["state"], jobs_of(newest["change"]["lost"])) == ("in force", ["second"])
        assert [detail(client, name)["state"] for name in ("first", "second")] == ["RUNNING", "RUNNING"]
        stop_all(client)


def test_a_kill_right_after_the_answer_leaves_the_new_version_in_force(tmp_path: Path) -> None:
    with running(tmp_path) as one, one.client() as client:
        start(client, "first", "second")
        text = quotas(default=1, vc1=1)
        client.post(CONFIG, params={"expectedVersion": 1}, content=text).raise_for_status()
        kill_all(one)
    with running(tmp_path) as one, one.client() as client:
        assert shown(client)[:2] == (2, "rest")
        until(lambda: claims(client, "second") == [("lost", 2)])
        assert [detail(client, name)["state"] for name in ("first", "second")] == ["RUNNING", "RUNNING"]
        stop_all(client)


def kill_all(one: Backend) -> None:
    """``kill -9`` for the supervisor and all its children, the supervisor first so that it starts none again."""
    children = list(one.children().values())
    one.process.kill()
    one.process.wait()
    for child in children:
        with suppress(psutil.NoSuchProcess):  # it may end by itself, without its supervisor
            child.kill()


def test_a_fixed_setting_refuses_changes_with_the_remedy(tmp_path: Path) -> None:
    with running(tmp_path, "--cluster-fixed", "true") as one, one.client() as client:
        answer = client.post(CONFIG, params={"expectedVersion": 1}, content=quotas(default=1, vc1=1))
        assert answer.status_code == 403
        assert "cluster.config" in answer.json()["hint"]
        told = client.get(CONFIG).json()
        assert (told["fixed"], told["version"]) == (True, 1)


def test_without_a_setting_the_derived_configuration_is_shown_and_can_be_applied(tmp_path: Path) -> None:
    with backend(tmp_path / "data", ["--engine-nodes", NODES]) as one, one.client() as client:
        told = client.get(CONFIG).json()
        assert (told["version"], told["origin"], told["since"]) == (0, "derived", None)
        assert "TITANX-NODE-1" in told["text"]
        assert told["text"] == told["derived"]
        start(client, "first")
        done = client.post(CONFIG, params={"expectedVersion": 0}, content=told["text"]).raise_for_status().json()
        assert (done["concerns"], done["inForce"]) == (False, True)
        assert claims(client, "first") == []
        assert client.get(CONFIG, params={"version": 9}).status_code == 404
        stop_all(client)
