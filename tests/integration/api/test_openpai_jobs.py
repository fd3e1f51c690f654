"""Jobs as OpenPAI's clients see them: names, states, times, attempts, tags, events."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import httpx
import pytest

from jupyter_pai.client import MEDIA_TYPE as ASKED_BY_THE_FRONT
from pai_backend.api.openpai.jobs import task_number
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.lifecycle.retry import fresh_tasks
from pai_backend.model.job import Causer, Desired, Job, JobExit, Phase, Retries, State, TaskExit
from pai_backend.model.node import Placement
from pai_backend.store.base import NewEvent
from tests.support.api_site import BOB, ApiSite
from tests.support.documents import scm_document

PLAIN = {"Accept": "*/*"}
ROW = (  # OpenPAI REST v2, GET /api/v2/jobs: the fields of a row
    "debugId name username state subState executionType tags retries retryDetails retryDelayTime submissionTime "
    "createdTime launchedTime completedTime appExitCode virtualCluster totalGpuNumber totalTaskNumber "
    "totalTaskRoleNumber jobPriority"
)
STATUS = (  # the same, GET /api/v2/jobs/:f: jobStatus
    "username state subState executionType retries retryDetails retryDelayTime submissionTime createdTime launchedTime "
    "completedTime appExitCode virtualCluster totalGpuNumber totalTaskNumber totalTaskRoleNumber attemptId "
    "attemptState appId appProgress appTrackingUrl appCreatedTime appLaunchedTime appCompletedTime appExitSpec "
    "appExitDiagnostics appExitMessages appExitTriggerMessage appExitTriggerTaskRoleName appExitTriggerTaskIndex "
    "appExitType"
)
TASK = (  # the same: taskRoles.<role>.taskStatuses[]
    "taskRoleName taskIndex taskUid taskState containerId containerIp containerNodeName containerPorts containerGpus "
    "containerLog "
    "containerExitCode containerExitSpec containerExitDiagnostics retries accountableRetries createdTime launchedTime "
    "completedTime attemptId attemptState currentAttemptCreatedTime currentAttemptLaunchedTime "
    "currentAttemptCompletedTime hived"
)


async def submitted(api: ApiSite, client: httpx.AsyncClient, name: str = "hello", **changes: object) -> Job:
    answer = await client.post("/api/v2/jobs", content=scm_document(name, **changes))
    assert answer.status_code == 202, answer.text
    return await api.store.jobs.find(answer.json()["id"])


async def saved(api: ApiSite, before: Job, changes: dict[str, Any], events: list[NewEvent] | None = None) -> Job:
    """The job as a controller would have changed it."""
    lease = await api.store.leadership.acquire("test", 60, before.submitted_at, force=True)
    assert lease is not None
    at = before.submitted_at + timedelta(seconds=30)
    changed = before.model_copy(update=changes)
    return await api.store.jobs.save(changed, seen=before, epoch=lease.epoch, events=events or [], at=at)


def placed(
    job: Job, *, exit_: TaskExit | None = None, state: State = State.RUNNING, phase: Phase = Phase.RUNNING
) -> Job:
    place = Placement(
        node="carol", machine="laptop", address="127.0.0.1", gpus=(0, 2), ports={"ssh": (15001,), "web": (15002, 15003)}
    )
    started = job.submitted_at + timedelta(seconds=2)
    changes = {"placement": place, "started_at": started, "exit": exit_, "state": state, "phase": phase}
    changes |= {"ended_at": exit_.at if exit_ else None}
    return job.model_copy(update={"tasks": tuple(task.model_copy(update=changes) for task in job.tasks)})


@pytest.mark.asyncio
async def test_a_row_has_the_names_and_millisecond_times_of_openpai(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        answer = await client.get("/api/v2/jobs", headers=PLAIN)
    (row,) = answer.json()
    assert set(ROW.split()) <= set(row)
    assert answer.headers["content-type"] == "application/json"
    assert "Accept" in answer.headers["vary"]
    assert (row["state"], row["subState"], row["executionType"]) == ("WAITING", "AttemptCreationPending", "START")
    assert row["submissionTime"] == row["createdTime"] == int(job.submitted_at.timestamp() * 1000)
    assert row["debugId"] == hashlib.md5(b"alice~hello").hexdigest()
    assert (row["totalTaskNumber"], row["totalTaskRoleNumber"], row["totalGpuNumber"]) == (2, 1, 2)
    assert (row["jobPriority"], row["retryDetails"]) == (None, {"user": 0, "platform": 0, "resource": 0})


@pytest.mark.asyncio
async def test_the_fronts_ask_for_our_shape_and_get_it_by_its_own_media_type(api: ApiSite) -> None:
    assert ASKED_BY_THE_FRONT == MEDIA_TYPE
    async with api.client() as client:
        await submitted(api, client)
        for path in ("/api/v2/jobs", "/api/v2/jobs/hello", "/api/v2/jobs/hello/events"):
            ours = await client.get(path)
            theirs = await client.get(path, headers=PLAIN)
            assert (ours.headers["content-type"], theirs.headers["content-type"]) == (MEDIA_TYPE, "application/json")
            assert ours.json() != theirs.json()


@pytest.mark.asyncio
async def test_the_detail_of_a_running_job_tells_where_its_tasks_are(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        running = placed(job)
        await saved(api, job, {"tasks": running.tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
        detail = (await client.get("/api/v2/jobs/alice~hello", headers=PLAIN)).json()
    assert {"debugId", "name", "tags", "jobPriority", "jobStatus", "taskRoles"} <= set(detail)
    assert set(STATUS.split()) <= set(detail["jobStatus"])
    assert (detail["jobStatus"]["state"], detail["jobStatus"]["subState"]) == ("RUNNING", "AttemptRunning")
    role = detail["taskRoles"]["worker"]
    assert role["taskRoleStatus"] == {"name": "worker"}
    task = role["taskStatuses"][1]
    assert set(TASK.split()) <= set(task)
    assert (task["taskIndex"], task["taskState"], task["containerIp"]) == (1, "RUNNING", "127.0.0.1")
    assert task["containerPorts"] == {"ssh": "15001", "web": "15002,15003"}
    assert task["containerGpus"] == str(0b101)
    assert (task["uid"], task["taskUid"]) == (job.tasks[1].uid, task_number(job.tasks[1].uid))
    assert 0 < task["taskUid"] < 2**53
    assert task["hived"] == {"affinityGroupName": None, "lazyPreempted": None, "lazyPreemptionStatus": None}
    assert task["launchedTime"] - task["createdTime"] == 2000
    assert task["containerLog"] == ("/api/v2/jobs/alice~hello/attempts/0/taskRoles/worker/taskIndex/1/attempts/0/logs")


@pytest.mark.asyncio
async def test_a_failed_job_explains_its_exit_by_the_task_that_decided_it(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        end = job.submitted_at + timedelta(seconds=5)
        exit_ = TaskExit(code=127, message="command not found", at=end)
        failed = placed(job, exit_=exit_, state=State.FAILED, phase=Phase.ENDED)
        verdict = JobExit(status=127, message="task worker-0: command not found", role="worker", index=0)
        over = {"tasks": failed.tasks, "state": State.FAILED, "phase": Phase.ENDED, "exit": verdict}
        await saved(api, job, {**over, "completed_at": end})
        status = (await client.get("/api/v2/jobs/hello", headers=PLAIN)).json()["jobStatus"]
    assert (status["state"], status["subState"], status["attemptState"]) == ("FAILED", "Completed", "AttemptCompleted")
    assert (status["appExitCode"], status["appProgress"]) == (127, 1)
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("worker", 0)
    spec = status["appExitSpec"]
    assert (spec["phrase"], spec["behavior"], spec["reaction"]) == ("CommandNotFound", "PERMANENT", "NEVER_RETRY")
    assert (spec["code"], spec["causer"], spec["type"]) == (220, "USER", "USER_FAILURE")
    assert spec["solution"]
    assert status["completedTime"] - status["submissionTime"] == 5000


@pytest.mark.asyncio
async def test_what_was_stopped_has_openpais_exit_codes(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        end = job.submitted_at + timedelta(seconds=5)
        ended = placed(job, exit_=TaskExit(signal=15, reason="stopped", at=end), state=State.STOPPED, phase=Phase.ENDED)
        over = {"tasks": ended.tasks, "state": State.STOPPED, "phase": Phase.ENDED, "completed_at": end}
        over |= {"exit": JobExit(status=-210, message="stopped on request"), "desired": Desired.STOP}
        await saved(api, job, over)
        detail = (await client.get("/api/v2/jobs/hello", headers=PLAIN)).json()
    assert (detail["jobStatus"]["appExitCode"], detail["jobStatus"]["appExitType"]) == (-210, "USER_STOP")
    assert {task["containerExitCode"] for task in detail["taskRoles"]["worker"]["taskStatuses"]} == {-210}


async def retried(api: ApiSite, client: httpx.AsyncClient) -> Job:
    """A job in its second attempt; the first was failed by worker 1."""
    job = await submitted(api, client, retryCount=3)
    end = job.submitted_at + timedelta(seconds=5)
    failed = placed(job, exit_=TaskExit(code=3, message="exited with status 3", at=end), state=State.FAILED)
    first = await saved(api, job, {"tasks": failed.tasks, "state": State.RUNNING, "phase": Phase.STOPPING})
    fresh = fresh_tasks(job.uid, job.spec, 1)
    changes = {"tasks": fresh, "attempt": 1, "retries": Retries(user=1), "state": State.WAITING, "phase": Phase.QUEUED}
    retry = NewEvent("job.retry", {"attempt": 1, "reason": "retrying after: exit 3", "charged": Causer.USER.value})
    return await saved(api, first, changes, [retry])


@pytest.mark.asyncio
async def test_the_retry_history_keeps_every_attempt(api: ApiSite) -> None:
    async with api.client() as client:
        job = await retried(api, client)
        attempts = (await client.get("/api/v2/jobs/hello/job-attempts", headers=PLAIN)).json()
        ours = (await client.get("/api/v2/jobs/hello/job-attempts")).json()["data"]
        first = (await client.get("/api/v2/jobs/hello/job-attempts/0")).json()
        health = (await client.get("/api/v2/jobs/hello/job-attempts/healthz")).json()
        old = (await client.get("/api/v2/jobs/hello/attempts/0", headers=PLAIN)).json()
        none = await client.get("/api/v2/jobs/hello/attempts/2")
    assert [(each["attemptIndex"], each["isLatest"], each["state"]) for each in attempts] == [
        (1, True, "WAITING"),
        (0, False, "FAILED"),
    ]
    assert first == attempts[1]
    assert [(each["number"], each["retryReason"]) for each in ours] == [(1, ""), (0, "retrying after: exit 3")]
    assert [(run["index"], run["attempt"], run["node"], run["exit"]["status"]) for run in ours[1]["runs"]] == [
        (0, 0, "carol", 3),
        (1, 0, "carol", 3),
    ]
    assert all(run["exit"]["remedy"] for run in ours[1]["runs"])
    assert [(run["attempt"], run["exit"]) for run in ours[0]["runs"]] == [(1, None)] * 2
    why = "retrying after: exit 3"
    assert first["exitDiagnostics"] == {"diagnosticsSummary": why, "runtime": None, "launcher": why}
    assert (first["exitCode"], first["appExitSpec"]["type"]) == (3, "USER_FAILURE")
    assert first["maxAttemptCount"] == 4
    assert health == {"status": "OK"}
    assert old["jobStatus"]["attemptId"] == 0
    assert old["jobStatus"]["appCompletedTime"] - int(job.submitted_at.timestamp() * 1000) == 30_000
    assert {task["containerExitCode"] for task in old["taskRoles"]["worker"]["taskStatuses"]} == {3}
    assert (none.status_code, none.json()["code"]) == (404, "NoTaskError")


@pytest.mark.asyncio
async def test_a_tasks_runs_lead_to_their_own_logs(api: ApiSite) -> None:
    async with api.client() as client:
        job = await retried(api, client)
        base = "/api/v2/jobs/hello/attempts/0/taskRoles/worker/taskIndex/1/attempts"
        task = (await client.get(base)).json()
        logs = (await client.get(f"{base}/0/logs?tail-mode=true")).json()["locations"]
        sdk = (await client.get(f"{base}/0/logs?tailMode=true")).json()["locations"]
        missing = [await client.get(path) for path in (f"{base}/1/logs", base.replace("Index/1", "Index/9"))]
        await api.engine.write(job.tasks[1].uid.rpartition("-")[0] + "-0", b"of the first run")  # type: ignore[arg-type]
        text = (await client.get(logs[0]["uri"])).text
    assert (task["taskIndex"], len(task["attempts"]), task["attempts"][0]["attemptState"]) == (1, 1, "AttemptCompleted")
    assert {each["name"] for each in logs} == {"stdout", "stderr", "all"}
    assert sdk == logs
    assert all("offset=-16384" in each["uri"] for each in logs)
    assert (task["taskUid"], task["attempts"][0]["taskUid"]) == (task["uid"], task["attempts"][0]["uid"])
    assert text == "of the first run"
    assert [(each.status_code, each.json()["code"]) for each in missing] == [(404, "NoTaskError")] * 2


@pytest.mark.asyncio
async def test_events_are_openpais_with_the_latest_first(api: ApiSite) -> None:
    async with api.client() as client:
        await retried(api, client)
        events = (await client.get("/api/v2/jobs/hello/events", headers=PLAIN)).json()
        warnings = (await client.get("/api/v2/jobs/hello/events?type=Warning", headers=PLAIN)).json()
    assert (events["totalCount"], [each["reason"] for each in events["data"]]) == (2, ["JobRetry", "JobSubmitted"])
    assert (warnings["totalCount"], warnings["data"][0]["message"]) == (1, "retrying after: exit 3")
    assert all({"uid", "type", "reason", "message", "firstTimestamp"} <= set(each) for each in events["data"])
    of_tasks = ("podUid", "taskroleName", "taskName", "taskIndex", "sourceHost")
    assert [[each[name] for name in of_tasks] for each in events["data"]] == [[None] * 5] * 2


@pytest.mark.asyncio
async def test_tags_are_given_found_and_taken_away(api: ApiSite) -> None:
    async with api.client() as client, api.client(BOB) as bob:
        await submitted(api, client, "one")
        await submitted(api, client, "two")
        given = await client.put("/api/v2/jobs/alice~one/tag", json={"value": "vision"})
        found = (await client.get("/api/v2/jobs?tagsContain=vision,other", headers=PLAIN)).json()
        others = (await client.get("/api/v2/jobs?tagsNotContain=vision", headers=PLAIN)).json()
        wrong = [await client.put("/api/v2/jobs/one/tag", json={"value": text}) for text in ("a,b", "", "a\n")]
        hidden = await bob.put("/api/v2/jobs/alice~one/tag", json={"value": "mine"})
        taken = await client.request("DELETE", "/api/v2/jobs/alice~one/tag", json={"value": "vision"})
        again = await client.request("DELETE", "/api/v2/jobs/alice~one/tag", json={"value": "vision"})
    assert given.json()["status"] == 200
    assert [(row["name"], row["tags"]) for row in found] == [("one", ["vision"])]
    assert [row["name"] for row in others] == ["two"]
    assert [each.status_code for each in wrong] == [400, 400, 400]
    assert (hidden.status_code, hidden.json()["code"]) == (404, "NoJobError")
    assert taken.status_code == 200
    assert (again.status_code, again.json()["code"]) == (404, "NoTagError")


@pytest.mark.asyncio
async def test_start_changes_nothing_of_a_job_that_goes_on_and_revives_none_that_was_stopped(api: ApiSite) -> None:
    async with api.client() as client:
        await submitted(api, client)
        path = "/api/v2/jobs/alice~hello/executionType"
        going = await client.put(path, json={"value": "START"})
        await client.put(path, json={"value": "STOP"})
        stopped = await client.put(path, json={"value": "START"})
    assert going.status_code == 202
    assert (stopped.status_code, stopped.json()["code"]) == (403, "ReadOnlyJobError")


@pytest.mark.asyncio
async def test_a_long_page_comes_in_pieces_and_whole(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.api.handlers.jobs.ROWS_AT_ONCE", 3)
    async with api.client() as client:
        for number in range(8):
            await submitted(api, client, f"job{number}")
        page = (await client.get("/api/v2/jobs?withTotalCount=true&limit=7", headers=PLAIN)).json()
        rows = (await client.get("/api/v2/jobs")).json()
        none = (await client.get("/api/v2/jobs?keyword=nothing&withTotalCount=true")).json()
    assert page["totalCount"] == 8
    assert [row["name"] for row in page["data"]] == [f"job{number}" for number in range(7, 0, -1)]
    assert [row["name"] for row in rows] == [f"job{number}" for number in range(7, -1, -1)]
    assert none == {"totalCount": 0, "data": []}


@pytest.mark.asyncio
async def test_an_attempt_that_was_preempted_has_one_code_wherever_it_is_told(api: ApiSite) -> None:
    """Its command was ended by a signal, which is 143 to a shell and says nothing of why."""
    async with api.client() as client:
        job = await submitted(api, client, "taken")
        gone = TaskExit(signal=15, reason="preempted", at=job.submitted_at + timedelta(seconds=9))
        ended = placed(job, exit_=gone, state=State.FAILED, phase=Phase.ENDED)
        first = await saved(api, job, {"tasks": ended.tasks, "retries": Retries(preempted=1, free=1)})
        again = fresh_tasks(first.uid, first.spec, attempt=1)
        await saved(api, first, {"tasks": again, "attempt": 1, "state": State.WAITING, "phase": Phase.QUEUED})
        every = (await client.get("/api/v2/jobs/alice~taken/job-attempts", headers=PLAIN)).json()
        detail = (await client.get("/api/v2/jobs/alice~taken/attempts/0", headers=PLAIN)).json()
    (attempt,) = [each for each in every if each["attemptIndex"] == 0]
    tasks = [task for role in detail["taskRoles"].values() for task in role["taskStatuses"]]
    assert {task["containerExitCode"] for task in tasks} == {-101}
    assert {task["containerExitSpec"]["code"] for task in tasks} == {-101}
    assert (attempt["exitCode"], detail["jobStatus"]["appExitCode"]) == (-101, -101)
    assert detail["jobStatus"]["appExitSpec"]["code"] == -101


@pytest.mark.asyncio
async def test_a_name_with_a_tilde_is_one_name_in_every_path(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        mine = await submitted(api, alice, "bob~night")
        theirs = await submitted(api, bob, "night")
        for path in ("/api/v2/jobs/bob~night", "/api/v2/jobs/alice~bob~night", "/api/v1/jobs/bob~night"):
            found = await alice.get(path, headers=PLAIN)
            assert (found.status_code, found.json().get("uid")) == (200, mine.uid), path
        assert (await bob.get("/api/v2/jobs/bob~night", headers=PLAIN)).json()["uid"] == theirs.uid
        shadow, night = await submitted(api, bob, "bob~night"), theirs.uid
        for path, uid in (("bob~night", night), ("bob~bob~night", shadow.uid), ("night", night)):
            assert (await bob.get(f"/api/v2/jobs/{path}", headers=PLAIN)).json()["uid"] == uid, path
        stopped = await alice.put("/api/v2/jobs/bob~night/executionType", json={"value": "STOP"})
        assert stopped.status_code == 202
        for path, name in (("user/alice/jobs/carol~day", "carol~day"), ("jobs/alice~dan~day", "dan~day")):
            put = await alice.put(f"/api/v1/{path}", content=scm_document("other"))
            assert (put.status_code, put.json()["name"]) == (201, name)
        assert (await alice.put("/api/v1/jobs/bob~day", content=scm_document("other"))).status_code == 403
    assert (await api.store.jobs.find(mine.uid)).desired is Desired.STOP
    assert (await api.store.jobs.find(theirs.uid)).desired is Desired.START


@pytest.mark.asyncio
async def test_both_shapes_of_a_detail_have_the_documents_description(api: ApiSite) -> None:
    document = (
        "protocolVersion: 2\nname: told\ntype: job\ndescription: 图像分类\n"
        "prerequisites: [{name: i, type: dockerimage, uri: a}]\n"
        "taskRoles: {w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}, commands: [run]}}\n"
    )
    async with api.client() as client:
        assert (await client.post("/api/v2/jobs", content=document.encode())).status_code == 202
        said = [
            (await client.get("/api/v2/jobs/alice~told", headers=headers)).json()["description"]
            for headers in (PLAIN, {"Accept": MEDIA_TYPE})
        ]
    assert said == ["图像分类"] * 2
