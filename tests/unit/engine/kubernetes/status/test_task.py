"""What a task is doing by its pod: phases, patience, and ends that were decided."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.engine.base import TaskState
from pai_backend.engine.bundle.record import ExitRecord
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.task import Around, NodeAway, PodReading, read_task, vanished
from pai_backend.engine.kubernetes.status.view import NotATask
from pai_backend.engine.kubernetes.status.waits import GateTrouble, GateWait, StartTrouble
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Causer, TaskExit

from .conftest import UID, MakePod, at, running, stamp, terminated, waiting

PATIENCE = TroublePatience(pull_s=300, start_s=120, pod_s=200, schedule_s=60, gang_s=4, node_s=100)
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 1 Insufficient cpu.",
    "lastTransitionTime": stamp(2),
}

GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastTransitionTime": stamp(0),
}


def read(
    pod: Object,
    now: float = 10,
    *,
    trouble: StartTrouble | None = None,
    node: NodeAway | None = None,
    inside: ExitRecord | None = None,
    gate: GateWait | None = None,
    events: tuple[Object, ...] = (),
) -> PodReading:
    around = Around(at(now), PATIENCE, node=node, trouble=trouble, inside=inside, gate=gate, events=events)
    return read_task(pod, around)


def test_a_pod_of_somebody_else_is_none_of_ours(make_pod: MakePod) -> None:
    pod = make_pod()
    del pod["metadata"]["annotations"]
    with pytest.raises(NotATask, match="jupyter-pai/task"):
        read(pod)


class TestPhases:
    """What a task does that has not ended."""

    def test_a_running_container_is_a_running_task(self, make_pod: MakePod) -> None:
        reading = read(make_pod(running(5), phase="Running"))
        assert (reading.seen.state, reading.seen.since, reading.seen.exit) == (TaskState.RUNNING, at(5), None)
        assert (reading.look_at, reading.decided) == (None, False)

    def test_an_image_that_is_fetched_is_told_by_events_if_there_are_any(self, make_pod: MakePod) -> None:
        pod = make_pod(waiting("PodInitializing"))
        pulling = {"reason": "Pulling", "message": 'Pulling image "image:1"', "lastTimestamp": stamp(3)}
        pulled = {"reason": "Pulled", "message": "Successfully pulled", "eventTime": "2026-11-21T20:00:04.000000Z"}
        assert read(pod).seen.state is TaskState.STARTING
        seen = read(pod, events=(pulling,)).seen
        assert (seen.state, seen.message) == (TaskState.PULLING, 'pulling image "image:1"')
        assert read(pod, events=(pulled, pulling)).seen.state is TaskState.STARTING

    def test_fetching_inputs_is_pulling_and_names_them(self, make_pod: MakePod) -> None:
        inits = {"runtime": terminated(0), "inputs": running()}
        seen = read(make_pod(waiting("PodInitializing"), inits=inits, annotations={naming.INPUTS: "code, data"})).seen
        assert (seen.state, seen.message) == (TaskState.PULLING, "fetching code, data")
        seen = read(make_pod(waiting("PodInitializing"), inits=inits)).seen
        assert (seen.state, seen.message) == (TaskState.PULLING, "making its output directory")

    def test_without_a_word_from_anybody_it_waits_for_the_scheduler(self, make_pod: MakePod) -> None:
        """However long: a scheduler that is away is nobody's fault."""
        reading = read(make_pod(node=""), now=10**6)
        assert (reading.seen.state, reading.decided) == (TaskState.STARTING, False)
        assert "scheduler" in reading.seen.message

    def test_only_events_know_why_network_and_volumes_take_long(self, make_pod: MakePod) -> None:
        sandbox = {"type": "PodReadyToStartContainers", "status": "False"}
        pod = make_pod(waiting("ContainerCreating"), conditions=[sandbox])
        warning = {"type": "Warning", "reason": "FailedMount", "message": "no such\n disk", "lastTimestamp": stamp(4)}
        assert "FailedMount: no such disk" in read(pod, events=(warning,)).seen.message
        assert read(pod).look_at == at(201)
        given_up = read(pod, 201, events=(warning,))
        assert given_up.decided
        assert given_up.seen.exit is not None
        assert (given_up.seen.exit.reason, given_up.seen.exit.causer) == ("start-failed", Causer.PLATFORM)


class TestPatience:
    """A trouble is given up after a time, with the kubelet's words."""

    @pytest.mark.parametrize(
        ("trouble", "reason", "seconds"),
        [
            (GateTrouble.ROOM, "refused", 60),
            (GateTrouble.HALF, "refused", 4),
            (GateTrouble.KEPT, "start-failed", 120),
            (GateTrouble.SPLIT, "start-failed", 60),
        ],
    )
    def test_a_pod_with_its_gate_waits_longer_while_no_other_of_its_gang_holds_anything(
        self, make_pod: MakePod, trouble: GateTrouble, reason: str, seconds: int
    ) -> None:
        gated = make_pod(node="", conditions=[GATED], annotations={naming.GANG: "2"})
        first = read(gated, 10, gate=GateWait("carol is full", trouble))
        assert (first.seen.state, first.seen.message) == (TaskState.STARTING, "carol is full")
        assert (first.decided, first.look_at) == (False, at(10 + seconds))
        last = read(gated, 10 + seconds, trouble=first.trouble, gate=GateWait("carol is full", trouble))
        assert last.decided
        assert last.seen.exit is not None
        assert (last.seen.exit.reason, last.seen.exit.message) == (reason, "carol is full")

    def test_for_its_peers_it_waits_without_end(self, make_pod: MakePod) -> None:
        gated = make_pod(node="", conditions=[GATED], annotations={naming.GANG: "2"})
        reading = read(gated, 10**6, gate=GateWait("waits for others"))
        assert (reading.decided, reading.look_at, reading.seen.message) == (False, None, "waits for others")

    def test_the_scheduler_may_refuse_one_of_a_gang_for_a_short_time_from_when_that_is_seen(
        self, make_pod: MakePod
    ) -> None:
        """The condition was False before, for the gate, and its time is that."""
        pod = make_pod(node="", conditions=[UNSCHEDULABLE], annotations={naming.GANG: "2"})
        first = read(pod, 500)
        assert (first.decided, first.look_at) == (False, at(504))
        last = read(pod, 504, trouble=first.trouble)
        assert last.decided
        assert last.seen.exit is not None
        assert (last.seen.exit.reason, last.seen.exit.causer) == ("refused", Causer.RESOURCE)

    def test_one_whose_gate_was_just_taken_off_waits_for_the_scheduler(self, make_pod: MakePod) -> None:
        seen = read(make_pod(node="", conditions=[GATED], annotations={naming.GANG: "2"})).seen
        assert seen.message == "waiting for the cluster's scheduler"

    def test_the_kinds_of_words_for_one_trouble_share_its_patience(self, make_pod: MakePod) -> None:
        """A kubelet tries, fails, and waits before it tries again: ErrImagePull and ImagePullBackOff take turns."""
        first = read(make_pod(waiting("ErrImagePull", "manifest unknown")), 10)
        assert (first.seen.state, first.look_at) == (TaskState.PULLING, at(310))
        assert "manifest unknown" in first.seen.message
        second = read(make_pod(waiting("ImagePullBackOff", "Back-off")), 200, trouble=first.trouble)
        assert (second.decided, second.look_at) == (False, at(310))
        last = read(make_pod(waiting("ErrImagePull", "manifest unknown")), 310, trouble=second.trouble)
        assert (last.decided, last.seen.state, last.look_at) == (True, TaskState.EXITED, None)
        assert last.seen.exit is not None
        assert (last.seen.exit.reason, last.seen.exit.code, last.seen.since) == ("image-pull-failed", None, None)
        assert "manifest unknown" in last.seen.exit.message

    def test_another_trouble_has_patience_of_its_own(self, make_pod: MakePod) -> None:
        first = read(make_pod(waiting("ErrImagePull")), 10)
        second = read(make_pod(waiting("CreateContainerError", "device busy")), 250, trouble=first.trouble)
        assert second.look_at == at(370)

    def test_a_trouble_that_passed_is_forgotten(self, make_pod: MakePod) -> None:
        first = read(make_pod(waiting("ErrImagePull")), 10)
        between = read(make_pod(waiting("PodInitializing")), 100, trouble=first.trouble)
        assert between.trouble is None
        assert read(make_pod(waiting("ErrImagePull")), 300, trouble=between.trouble).look_at == at(600)

    @pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull"])
    def test_what_can_never_become_right_is_given_up_at_once(self, make_pod: MakePod, reason: str) -> None:
        reading = read(make_pod(waiting(reason, "why")))
        assert reading.decided
        assert reading.seen.exit is not None
        assert (reading.seen.exit.reason, reading.seen.exit.causer) == ("image-pull-failed", Causer.USER)

    def test_an_image_of_the_platforms_is_not_the_users_to_correct(self, make_pod: MakePod) -> None:
        pod = make_pod(waiting("PodInitializing"), inits={"runtime": waiting("ImagePullBackOff", "denied")})
        last = read(pod, 400, trouble=read(pod, 10).trouble)
        assert last.seen.exit is not None
        assert (last.seen.exit.reason, last.seen.exit.causer) == ("start-failed", Causer.PLATFORM)

    @pytest.mark.parametrize(
        ("message", "causer"),
        [
            ("container has runAsNonRoot and image will run as root", Causer.USER),
            ('secret "x" not found', Causer.PLATFORM),
        ],
    )
    def test_a_container_that_cannot_be_made_is_whose_it_is(
        self, make_pod: MakePod, message: str, causer: Causer
    ) -> None:
        pod = make_pod(waiting("CreateContainerConfigError", message))
        last = read(pod, 130, trouble=read(pod, 10).trouble)
        assert last.decided
        assert last.seen.exit is not None
        assert (last.seen.exit.reason, last.seen.exit.causer) == ("start-failed", causer)
        assert message in last.seen.exit.message

    def test_a_pod_that_the_scheduler_refuses_goes_back_to_our_queue(self, make_pod: MakePod) -> None:
        """Counted from when it first said so, whoever looks when."""
        pod = make_pod(node="", conditions=[UNSCHEDULABLE])
        assert read(pod, 61).look_at == at(62)
        reading = read(pod, 62)
        assert reading.decided
        assert reading.seen.exit is not None
        assert (reading.seen.exit.reason, reading.seen.exit.causer) == ("refused", Causer.RESOURCE)
        assert "Insufficient cpu" in reading.seen.exit.message

    def test_a_pod_for_which_the_scheduler_makes_room_is_waited_for(self, make_pod: MakePod) -> None:
        reading = read(make_pod(node="", conditions=[UNSCHEDULABLE], nominatedNodeName="carol"), 500)
        assert not reading.decided
        assert "makes room" in reading.seen.message

    def test_what_is_being_deleted_is_not_given_up_as_well(self, make_pod: MakePod) -> None:
        pod = make_pod(waiting("InvalidImageName"), deleted=40)
        assert not read(pod).decided

    @settings(deadline=None)
    @given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 400))
    def test_whatever_comes_between_patience_neither_shrinks_nor_grows(self, steps: list[int], last: int) -> None:
        """Given up exactly when the trouble has lasted as long as patience, however often it is looked at."""
        pod = {
            "metadata": {"annotations": {naming.TASK: UID}, "creationTimestamp": stamp(0)},
            "spec": {"nodeName": "carol"},
            "status": {"phase": "Pending", "containerStatuses": [{"name": "task", "state": waiting("ErrImagePull")}]},
        }
        first, trouble = None, None
        now = 0
        for step in [*steps, last]:
            now += step
            first = now if first is None else first
            reading = read(pod, now, trouble=trouble)
            trouble = reading.trouble
            assert reading.decided == (now - first >= PATIENCE.pull_s)


class TestNodeAway:
    """A node that is not ready, or gone."""

    GONE = NodeAway(at(20), "Kubelet stopped posting node status.")

    def test_a_task_waits_for_its_node_to_come_back(self, make_pod: MakePod) -> None:
        reading = read(make_pod(running(5), phase="Running"), 119, node=self.GONE)
        assert (reading.seen.state, reading.seen.since, reading.look_at) == (TaskState.RUNNING, at(5), at(120))
        assert "Kubelet stopped" in reading.seen.message

    def test_and_is_lost_when_it_does_not(self, make_pod: MakePod) -> None:
        reading = read(make_pod(running(5), phase="Running"), 120, node=self.GONE)
        assert reading.decided
        assert reading.seen.exit == TaskExit(
            reason="lost",
            causer=Causer.PLATFORM,
            at=at(120),
            message="its node carol was unavailable for 100 s (Kubelet stopped posting node status.)",
        )
        assert reading.seen.since == at(5)

    def test_one_that_was_asked_to_end_has_ended_then(self, make_pod: MakePod) -> None:
        pod = make_pod(running(5), phase="Running", deleted=30, annotations={naming.STOP: stamp(25)})
        reading = read(pod, 130, node=self.GONE)
        assert reading.seen.exit is not None
        assert reading.seen.exit.reason == "stopped"

    def test_what_had_ended_before_has_its_own_exit(self, make_pod: MakePod) -> None:
        reading = read(make_pod(terminated(3), phase="Failed"), 10**6, node=self.GONE)
        assert reading.seen.exit is not None
        assert (reading.seen.exit.reason, reading.seen.exit.code, reading.decided) == ("exited", 3, False)


class TestKept:
    """A task that failed and stays: its container goes on."""

    RECORD = ExitRecord(code=5, reason="exited", message="exited with status 5", started=at(6).timestamp(), at=1.8e9)

    def test_a_container_that_is_not_ready_is_a_hint_to_look_inside(self, make_pod: MakePod) -> None:
        """It is so, too, before its first probe: until the launcher says otherwise the task runs."""
        keep = {naming.KEEP: "true"}
        reading = read(make_pod(running(5), phase="Running", ready=False, annotations=keep))
        assert (reading.seen.state, reading.look_inside) == (TaskState.RUNNING, True)
        assert not read(make_pod(running(5), phase="Running", annotations=keep)).look_inside

    @pytest.mark.parametrize("fields", [{}, {"annotations": {naming.KEEP: "true"}, "deleted": 20}])
    def test_others_are_not_asked(self, make_pod: MakePod, fields: dict[str, object]) -> None:
        """A container that is being ended is not ready either."""
        assert not read(make_pod(running(5), phase="Running", ready=False, **fields)).look_inside

    def test_what_the_launcher_says_is_its_exit(self, make_pod: MakePod) -> None:
        reading = read(make_pod(running(5), phase="Running", ready=False), inside=self.RECORD)
        assert reading.seen.exit is not None
        assert (reading.seen.state, reading.seen.exit.code, reading.seen.since) == (TaskState.EXITED, 5, at(6))
        assert not reading.decided

    def test_its_exit_stays_when_it_is_let_go(self, make_pod: MakePod) -> None:
        record = self.RECORD.model_dump_json()
        pod = make_pod(terminated(5, message=record), phase="Failed", deleted=50, annotations={naming.STOP: stamp(40)})
        reading = read(pod, 60)
        assert reading.seen.exit is not None
        assert (reading.seen.exit.reason, reading.seen.exit.code) == ("exited", 5)


class TestVerdict:
    """An exit that was decided stands for good."""

    VERDICT = TaskExit(reason="image-pull-failed", message="denied", at=at(310))

    def test_it_beats_whatever_the_pod_says_later(self, make_pod: MakePod) -> None:
        """The image came a second after the task was given up, and nobody ran it."""
        written = {naming.VERDICT: self.VERDICT.model_dump_json()}
        for task in (running(311), terminated(0), waiting("PodInitializing")):
            reading = read(make_pod(task, annotations=written))
            assert (reading.seen.exit, reading.decided) == (self.VERDICT, False)

    @pytest.mark.parametrize("text", ["", "{}", "lost", json.dumps({"reason": "exited", "at": "soon"})])
    def test_a_verdict_that_is_none_is_none(self, make_pod: MakePod, text: str) -> None:
        reading = read(make_pod(terminated(3), phase="Failed", annotations={naming.VERDICT: text}))
        assert reading.seen.exit is not None
        assert reading.seen.exit.code == 3


class TestEndsThatAreNotExplainedYet:
    """A kubelet reports the end of a container first, and why with the final phase of the pod."""

    TOLD_TO_END = json.dumps(
        {"version": 1, "code": 0, "reason": "stopped", "started": at(6).timestamp(), "at": at(8).timestamp()}
    )
    BY_ITSELF = TOLD_TO_END.replace("stopped", "exited")

    @pytest.mark.parametrize("task", [terminated(0, message=TOLD_TO_END), terminated(137)])
    def test_what_was_told_to_end_waits_for_the_reason(self, make_pod: MakePod, task: Object) -> None:
        before = read(make_pod(task, phase="Running"))
        after = read(make_pod(task, phase="Failed", reason="Terminated", message="imminent node shutdown"))
        assert (before.seen.state, before.seen.since) == (TaskState.RUNNING, at(5))
        assert "not said why" in before.seen.message
        assert after.seen.exit is not None
        assert after.seen.exit.reason == "lost"

    def test_what_ended_by_itself_needs_none(self, make_pod: MakePod) -> None:
        reading = read(make_pod(terminated(0, message=self.BY_ITSELF), phase="Running"))
        assert reading.seen.exit is not None
        assert (reading.seen.exit.reason, reading.seen.exit.code) == ("exited", 0)

    def test_a_node_that_never_says_why_is_waited_for_as_long_as_any(self, make_pod: MakePod) -> None:
        pod = make_pod(terminated(0, message=self.TOLD_TO_END), phase="Running")
        away = NodeAway(at(10), "NotReady")
        assert read(pod, 109, node=away).seen.exit is None
        found = read(pod, 110, node=away).seen.exit
        assert found is not None
        assert found.reason == "lost"


def test_a_pod_that_is_gone_without_us_is_a_task_that_vanished() -> None:
    seen = vanished(TaskUid(UID), at(5), at(10))
    assert seen.exit is not None
    assert (seen.state, seen.exit.reason, seen.exit.causer, seen.since) == (
        TaskState.EXITED,
        "vanished",
        Causer.PLATFORM,
        at(5),
    )


SOMETHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just(stamp(3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "state",
                    "waiting",
                    "running",
                    "terminated",
                    "reason",
                    "message",
                    "exitCode",
                    "name",
                    "startedAt",
                    "type",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses"]),
        SOMETHING,
    )
    | st.fixed_dictionaries({"phase": st.sampled_from(["Failed", "Succeeded", "Running", "Pending"])}),
    st.booleans(),
)
def test_whatever_a_server_says_is_read(status: dict[str, object], deleted: bool) -> None:
    """Another version of Kubernetes, or another kubelet: no word of theirs may stop the engine."""
    meta: Object = {"annotations": {naming.TASK: UID}, "creationTimestamp": stamp(0)}
    if deleted:
        meta["deletionTimestamp"] = stamp(8)
    reading = read({"metadata": meta, "spec": {"nodeName": "carol"}, "status": status})
    assert (reading.seen.exit is not None) == (reading.seen.state is TaskState.EXITED)
    assert reading.seen.exit is None or isinstance(reading.seen.exit.at, datetime)
