"""Jobs as the wire shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pai_backend.api import present
from pai_backend.api.context import PublicAddress, Site
from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.job import Causer, Job, Phase, Retries, State, TaskExit
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import PortSpec
from pai_backend.store.rows import changing_values
from pai_backend.testing.builders import T0, make_job, make_placement, make_role, make_spec

SITE = Site(name="lab", version="1", engine="local", base_url="http://127.0.0.1:8000", service_domain="localhost")
PUBLIC = Site(
    name="lab", version="1", engine="local", base_url="https://pai.example.org", service_domain="s.example.org"
)
GATEWAY = PublicAddress("gate.example.org", 22)
WEB = (PortSpec(label="web"), PortSpec(label="ssh"))


def running_job() -> Job:
    job = make_job(spec=make_spec("job", roles=[make_role(gpus=1, ports=WEB)]))
    placed = make_placement(gpus=[0], ports={"web": (15000, 15001), "ssh": (15002,)})
    changes = {"state": State.RUNNING, "phase": Phase.RUNNING, "placement": placed}
    task = job.tasks[0].model_copy(update=changes)
    return job.model_copy(update={"tasks": (task,), "state": State.RUNNING})


def test_a_placed_task_shows_where_it_is_and_its_first_port_as_service() -> None:
    detail = present.detail(running_job(), SITE, GATEWAY)
    (task,) = detail.task_roles[0].task_statuses
    assert (task.node, task.address, task.gpus) == ("carol", "127.0.0.1", (0,))
    assert task.ports == {"web": (15000, 15001), "ssh": (15002,)}
    (service,) = detail.services
    assert (service.label, service.port, service.state) == ("web", 15000, "RUNNING")
    assert service.url == "http://job--web.localhost:8000/"


def test_service_addresses_follow_the_public_address() -> None:
    assert present.service_url("job--web", PUBLIC) == "https://job--web.s.example.org/"


def test_ssh_commands_name_the_port_only_when_it_is_not_the_usual_one() -> None:
    job = make_job()
    assert present.detail(job, SITE, GATEWAY).ssh_command == "ssh job@gate.example.org"
    assert present.detail(job, SITE, PublicAddress("g", 2222)).ssh_command == "ssh -p 2222 job@g"
    assert present.detail(job, SITE, None).ssh_command == ""


def test_an_exit_by_signal_has_the_status_a_shell_shows() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    job = running_job()
    ended = job.tasks[0].model_copy(update={"exit": TaskExit(signal=9, reason="signalled", causer=Causer.USER, at=at)})
    detail = present.detail(job.model_copy(update={"tasks": (ended,)}), SITE, GATEWAY)
    exit_ = detail.task_roles[0].task_statuses[0].exit
    assert exit_ is not None
    assert (exit_.status, exit_.code, exit_.signal) == (137, None, 9)


def test_an_exit_comes_with_its_class_and_remedy() -> None:
    job = running_job()
    gone = TaskExit(code=127, at=datetime(2026, 1, 1, tzinfo=UTC))
    ended = job.tasks[0].model_copy(update={"exit": gone})
    detail = present.detail(job.model_copy(update={"tasks": (ended,)}), SITE, GATEWAY)
    exit_ = detail.task_roles[0].task_statuses[0].exit
    assert exit_ is not None
    assert exit_.phrase == "CommandNotFound"
    assert exit_.remedy.startswith("Check its spelling")


def test_being_preempted_counts_as_a_retry_of_the_platform() -> None:
    """Source: OpenPAI, where a preempted task ends with -101, a transient failure of the platform."""
    job = running_job().model_copy(update={"retries": Retries(user=1, platform=2, resource=3, preempted=4, free=9)})
    shown = present.detail(job, SITE, GATEWAY).retry_details
    assert (shown.user, shown.platform, shown.resource) == (1, 6, 3)
    assert changing_values(job)["platform_retries"] == 6


def test_the_deadline_is_shown_of_a_task_that_is_kept_and_of_no_other() -> None:
    until = datetime(2026, 1, 9, tzinfo=UTC)
    job = running_job()
    for phase, shown in ((Phase.KEPT, until), (Phase.ENDED, None)):
        task = job.tasks[0].model_copy(update={"phase": phase, "state": State.FAILED, "kept_until": until})
        detail = present.detail(job.model_copy(update={"tasks": (task,)}), SITE, GATEWAY)
        assert detail.task_roles[0].task_statuses[0].kept_until == shown


def test_a_node_counts_what_its_live_and_kept_tasks_hold() -> None:
    node = Node(name="carol", address="127.0.0.1", machine="m", cpus=8, memory_mb=1000, gpus=(Gpu(index=0, type="X"),))
    job = running_job()
    over = job.tasks[0].model_copy(update={"state": State.SUCCEEDED, "phase": Phase.ENDED})
    ended = job.model_copy(update={"tasks": (over,)})
    kept = job.tasks[0].model_copy(update={"state": State.FAILED, "phase": Phase.KEPT})
    debugged = job.model_copy(update={"tasks": (kept,)})
    assert present.node(node, [job]).used.model_dump() == {"tasks": 1, "cpus": 1, "memory_mb": 100, "gpus": (0,)}
    assert present.node(node, [ended]).used.tasks == 0
    assert present.node(node, [debugged]).used.gpus == (0,)
    assert present.node(node.model_copy(update={"name": "dan"}), [job]).used.tasks == 0


def test_a_job_is_shown_with_the_beginning_of_its_description() -> None:
    job = running_job()
    for text, shown in (("", ""), ("two\nlines", "two\nlines"), ("a" * 1_001, "a" * 999 + "…")):
        described = job.model_copy(update={"spec": job.spec.model_copy(update={"description": text})})
        assert present.detail(described, SITE, GATEWAY).description == shown


def test_wire_names_are_those_of_the_page() -> None:
    wire = present.detail(running_job(), SITE, GATEWAY).model_dump(by_alias=True)
    assert {"virtualCluster", "submissionTime", "totalTaskNumber", "retryDetails", "stopReason", "sshCommand"} <= set(
        wire
    )
    task = wire["taskRoles"][0]["taskStatuses"][0]
    assert {"gpuType", "startedTime", "completedTime", "keptUntil", "sshCommand"} <= set(task)
    assert set(wire["services"][0]) == {"label", "role", "index", "alias", "port", "url", "pathUrl", "state"}


def test_a_job_with_an_idle_timeout_shows_its_clock_until_it_has_ended() -> None:
    job = running_job()
    assert present.detail(job, SITE, GATEWAY).idle is None
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"idle_timeout_s": 3600})})
    fresh = present.detail(job, SITE, GATEWAY).idle
    assert fresh is not None
    assert (fresh.timeout_s, fresh.since, fresh.stop_at, fresh.warned) == (3600, None, None, False)

    unread = {UseSource.KERNELS: "it does not answer"}
    clock = IdleClock(since=T0, looked_at=T0, used_by=UseSource.SSH, unread=unread)
    shown = present.detail(job, SITE, GATEWAY, clock).idle
    assert shown is not None
    assert (shown.since, shown.stop_at, shown.used_by, shown.sentence) == (T0, T0 + timedelta(hours=1), "ssh", "")
    assert shown.unread == {"kernels": "it does not answer"}
    late = T0 + timedelta(minutes=50)
    warned = clock.model_copy(update={"warned_at": late, "looked_at": late})
    shown = present.detail(job, SITE, GATEWAY, warned).idle
    assert shown is not None
    assert shown.warned
    assert (
        f"It is stopped at {T0 + timedelta(hours=1):%Y-%m-%d %H:%M:%S} UTC unless it is used before" in shown.sentence
    )
    assert "kernels could not be looked at: it does not answer." in shown.sentence
    held = warned.model_copy(update={"held_since": late, "unread": {UseSource.GPU: "no nvidia-smi"}})
    shown = present.detail(job, SITE, GATEWAY, held).idle
    assert shown is not None
    assert (shown.stop_at, shown.warned) == (None, True)
    assert f"since {late:%Y-%m-%d %H:%M:%S} UTC: no nvidia-smi. They may work" in shown.sentence
    assert present.detail(job.model_copy(update={"state": State.STOPPED}), SITE, GATEWAY, clock).idle is None
