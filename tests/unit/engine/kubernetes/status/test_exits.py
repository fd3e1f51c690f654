"""How tasks ended, by what the cluster says of their pods. Recorded pods are in test_recorded.py."""

from __future__ import annotations

import json

import pytest

from pai_backend.engine.bundle.record import record_of
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.exits import exit_of
from pai_backend.engine.kubernetes.status.view import view_of
from pai_backend.lifecycle.exits import RULES, explain
from pai_backend.model.job import Causer, ExitKind, TaskExit

from .conftest import MakePod, at, stamp, terminated

USER, PLATFORM, RESOURCE = Causer.USER, Causer.PLATFORM, Causer.RESOURCE


def record(**fields: object) -> str:
    base = {"version": 1, "code": 3, "reason": "exited", "started": at(6).timestamp(), "at": at(8).timestamp()}
    return json.dumps({**base, **fields})


def judged(pod: Object) -> TaskExit:
    return exit_of(view_of(pod))[0]


def disrupted(reason: str, message: str = "") -> list[Object]:
    return [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(7),
        }
    ]


class TestByItself:
    """Commands that nobody ended."""

    @pytest.mark.parametrize(
        ("code", "said", "expected"),
        [
            (0, record(code=0), (0, None, "exited")),
            (3, record(), (3, None, "exited")),
            (139, record(code=None, signal=11, reason="signalled"), (None, 11, "signalled")),
            (139, record(code=139), (139, None, "exited")),  # a shell of the command's own reports a signal so
            (255, record(code=None, reason="port-conflict"), (None, None, "port-conflict")),
            (137, record(code=None, signal=9, reason="out-of-memory"), (None, 9, "out-of-memory")),
            (
                255,
                record(code=None, reason="start-failed", started=None, causer="platform"),
                (None, None, "start-failed"),
            ),
            (3, "", (3, None, "exited")),
            (137, "", (None, 9, "signalled")),
        ],
    )
    def test_the_launcher_says_what_a_number_cannot(
        self, make_pod: MakePod, code: int, said: str, expected: tuple[int | None, int | None, str]
    ) -> None:
        found = judged(make_pod(terminated(code, message=said), phase="Failed"))
        assert (found.code, found.signal, found.reason) == expected

    def test_times_are_the_launchers_or_else_the_kubelets(self, make_pod: MakePod) -> None:
        found, began = exit_of(view_of(make_pod(terminated(3, message=record()), phase="Failed")))
        assert (found.at, began) == (at(8), at(6))
        found, began = exit_of(view_of(make_pod(terminated(3), phase="Failed")))
        assert (found.at, began) == (at(9), at(5))
        never = record(reason="start-failed", code=None, started=None)
        assert exit_of(view_of(make_pod(terminated(255, message=never), phase="Failed")))[1] is None

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (3, record(code=0)),  # it claims success where the container failed
            (3, record(reason="lost")),  # what a task cannot know of itself, and what would be free of charge
            (3, record(reason="preempted")),
            (3, record(reason="vanished")),
            (3, record(at="soon")),
            (3, record(at=1e300)),
            (3, record(signal=9)),
            (3, record(free=True)),
            (3, "Traceback (most recent call last)"),
            (3, "3"),
        ],
    )
    def test_a_record_that_does_not_go_with_the_container_is_none(
        self, make_pod: MakePod, code: int, said: str
    ) -> None:
        """Every process of the task may write it."""
        assert record_of(said, code) is None
        found = judged(make_pod(terminated(code, message=said), phase="Failed"))
        assert (found.code, found.reason, found.message) == (3, "exited", "exited with status 3")

    def test_memory_is_to_blame_only_for_what_was_killed(self, make_pod: MakePod) -> None:
        """The reason of a container says OOMKilled, too, when one of its processes was and the command went on."""
        whole = judged(make_pod(terminated(137, "OOMKilled"), phase="Failed"))
        part = judged(make_pod(terminated(3, "OOMKilled", record()), phase="Failed"))
        none = judged(make_pod(terminated(0, "OOMKilled", record(code=0)), phase="Succeeded"))
        assert (whole.reason, whole.signal) == ("out-of-memory", 9)
        assert (part.reason, part.code) == ("exited", 3)
        assert "lack of memory" in part.message
        assert (none.reason, none.code, none.message) == ("exited", 0, "exited with status 0")

    @pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
    def test_a_container_that_could_not_be_started_never_began(self, make_pod: MakePod, reason: str) -> None:
        found, began = exit_of(view_of(make_pod(terminated(128, reason, "exec: no such file"), phase="Failed")))
        assert (found.reason, found.code, found.causer, began) == ("start-failed", None, PLATFORM, None)
        assert "exec: no such file" in found.message


class TestTakenAway:
    """Commands that the cluster, or somebody, ended."""

    STOPPED = terminated(143, message=record(code=None, signal=15, reason="stopped"))
    LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
    SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
    CRITICAL = "Preempted in order to admit critical pod"
    OWN_DISK = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. "
    VOLUME = 'Usage of EmptyDir volume "work" exceeds the limit "20Mi". '
    CONTAINER = 'Container task exceeded its local ephemeral storage limit "20Mi". '

    @pytest.mark.parametrize(
        ("fields", "reason", "causer", "words"),
        [
            ({"reason": "Evicted", "message": LOW}, "evicted", RESOURCE, "low on resource: memory"),
            ({"reason": "Evicted", "message": OWN_DISK}, "storage-exceeded", USER, "20Mi"),
            ({"reason": "Evicted", "message": VOLUME}, "storage-exceeded", USER, "work"),
            ({"reason": "Evicted", "message": CONTAINER}, "storage-exceeded", USER, "20Mi"),
            ({"reason": "DeadlineExceeded", "message": "Pod was active"}, "deadline-exceeded", USER, "active"),
            ({"reason": "Terminated", "message": "imminent node shutdown"}, "lost", PLATFORM, "shutdown"),
            ({"reason": "NodeLost"}, "lost", PLATFORM, "node"),
            ({"reason": "Preempting", "message": "critical pod"}, "preempted", RESOURCE, "critical"),
            ({"conditions": disrupted("PreemptionByScheduler", "by x")}, "preempted", RESOURCE, "by x"),
            ({"conditions": disrupted("EvictionByEvictionAPI")}, "drained", PLATFORM, "drained"),
            ({"conditions": disrupted("DeletionByTaintManager", "taint")}, "drained", PLATFORM, "taint"),
            ({"conditions": disrupted("DeletionByPodGC", "gone")}, "lost", PLATFORM, "gone"),
            ({"conditions": disrupted("TerminationByKubelet", LOW)}, "evicted", RESOURCE, "low on resource"),
            ({"conditions": disrupted("TerminationByKubelet", OWN_DISK)}, "storage-exceeded", USER, "20Mi"),
            ({"conditions": disrupted("TerminationByKubelet", VOLUME)}, "storage-exceeded", USER, "work"),
            ({"conditions": disrupted("TerminationByKubelet", SHUTDOWN)}, "lost", PLATFORM, "shutdown"),
            ({"conditions": disrupted("TerminationByKubelet", CRITICAL)}, "preempted", RESOURCE, "critical"),
            (
                {"reason": "Evicted", "message": LOW, "conditions": disrupted("TerminationByKubelet", LOW)},
                "evicted",
                RESOURCE,
                "low on resource",
            ),
            ({"conditions": disrupted("MaintenanceByRobot", "soon")}, "drained", PLATFORM, "MaintenanceByRobot: soon"),
            ({"deleted": 8}, "vanished", PLATFORM, "deleted by another client"),
            ({"deleted": 8, "annotations": {naming.STOP: stamp(8)}}, "stopped", USER, "stopped on request"),
        ],
    )
    def test_whoever_ended_it_is_told(
        self, make_pod: MakePod, fields: dict[str, object], reason: str, causer: Causer, words: str
    ) -> None:
        """With the launcher's record of having been asked, and without any."""
        for task, number in ((self.STOPPED, 15), (terminated(137), 9)):
            found = judged(make_pod(task, **{"phase": "Failed", **fields}))
            assert (found.reason, found.causer, found.signal) == (reason, causer, number)
            assert words in found.message
            assert f"ended by signal {number}" in found.message

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"reason": "Evicted", "message": LOW}, "evicted"),
            ({"reason": "Terminated", "message": SHUTDOWN}, "lost"),
            ({"conditions": disrupted("TerminationByKubelet", SHUTDOWN)}, "lost"),
            ({"conditions": disrupted("TerminationByKubelet", VOLUME)}, "storage-exceeded"),
            ({"conditions": disrupted("EvictionByEvictionAPI")}, "drained"),
        ],
    )
    def test_a_command_that_exits_with_0_when_told_to_end_has_not_succeeded(
        self, make_pod: MakePod, fields: dict[str, object], reason: str
    ) -> None:
        task = terminated(0, "Completed", record(code=0, reason="stopped"))
        for phase in ("Failed", "Succeeded"):  # which of them a kubelet writes depends on the instant
            found = judged(make_pod(task, **{"phase": phase, **fields}))
            assert (found.reason, found.code) == (reason, 0)

    def test_a_command_that_had_ended_by_itself_was_not_taken_away(self, make_pod: MakePod) -> None:
        pod = make_pod(terminated(3, message=record()), phase="Failed", deleted=20, reason="Evicted", message=self.LOW)
        assert (judged(pod).reason, judged(pod).code) == ("exited", 3)

    @pytest.mark.parametrize("annotations", [{}, {naming.STOP: stamp(30)}])
    def test_who_deletes_what_is_over_has_not_ended_it(self, make_pod: MakePod, annotations: dict[str, str]) -> None:
        """Even where the launcher left no record, because it was killed with its command."""
        over = terminated(137, "OOMKilled", until=9)
        found = judged(make_pod(over, phase="Failed", deleted=30, annotations=annotations))
        assert (found.reason, found.signal) == ("out-of-memory", 9)
        refused = make_pod(phase="Failed", reason="OutOfcpu", message="no room", deleted=30, annotations=annotations)
        assert judged(refused).reason == ("stopped" if annotations else "refused")

    def test_a_stop_that_came_after_its_end_has_not_ended_it(self, make_pod: MakePod) -> None:
        killed = terminated(137, until=9)
        late, early = ({naming.STOP: stamp(time)} for time in (10, 9))
        assert judged(make_pod(killed, phase="Failed", deleted=30, annotations=late)).reason == "signalled"
        assert judged(make_pod(killed, phase="Failed", deleted=30, annotations=early)).reason == "stopped"

    def test_one_that_was_told_to_end_by_nobody_we_know_was_signalled(self, make_pod: MakePod) -> None:
        """Whoever is in its container may do that."""
        found = judged(make_pod(self.STOPPED, phase="Failed"))
        assert (found.reason, found.signal) == ("signalled", 15)

    def test_one_that_ends_well_when_nobody_we_know_told_it_to_end_has_not_succeeded(self, make_pod: MakePod) -> None:
        """As when a node goes down without its kubelet. It may be the task's own doing, so a retry is charged."""
        task = terminated(0, "Completed", record(code=0, reason="stopped"))
        found = judged(make_pod(task, phase="Succeeded"))
        assert (found.reason, found.code, found.causer) == ("lost", 0, PLATFORM)
        assert explain(found).kind is ExitKind.UNKNOWN
        assert "asked to end" in found.message

    @pytest.mark.parametrize("reason", ["ContainerStatusUnknown", "Unknown"])
    def test_an_end_that_nobody_saw_has_no_status(self, make_pod: MakePod, reason: str) -> None:
        found = judged(make_pod(terminated(137, reason, "could not be located"), phase="Failed"))
        assert (found.reason, found.code, found.signal, found.causer) == ("lost", None, None, PLATFORM)
        assert "its exit status is not known" in found.message

    def test_what_was_asked_to_stop_before_it_had_a_node_is_stopped(self, make_pod: MakePod) -> None:
        found, began = exit_of(view_of(make_pod(node="", deleted=8, annotations={naming.STOP: stamp(8)})))
        assert (found.reason, found.code, found.at, began) == ("stopped", None, at(8), None)


class TestNeverBegan:
    """Tasks whose own container never was."""

    @pytest.mark.parametrize(
        "reason", ["OutOfcpu", "OutOfnvidia.com/gpu", "UnexpectedAdmissionError", "NodeAffinity", "NodeShutdown"]
    )
    def test_a_node_that_refuses_gives_it_back_to_our_queue(self, make_pod: MakePod, reason: str) -> None:
        found, began = exit_of(view_of(make_pod(phase="Failed", reason=reason, message="not enough")))
        assert (found.reason, found.causer, found.code, began) == ("refused", RESOURCE, None, None)
        assert f"carol did not take it ({reason}: not enough)" in found.message

    def test_a_node_under_pressure_puts_out_what_it_would_have_to_take(self, make_pod: MakePod) -> None:
        pod = make_pod(phase="Failed", reason="Evicted", message="The node had condition: [DiskPressure]. ")
        assert judged(pod).reason == "evicted"

    @pytest.mark.parametrize(
        ("container", "state", "reason", "causer", "words"),
        [
            (
                "inputs",
                terminated(1, message="pai: copying\npai: no such place\n"),
                "input-failed",
                USER,
                "no such place",
            ),
            ("inputs", terminated(137, "OOMKilled"), "out-of-memory", USER, "memory"),
            ("inputs", terminated(2), "input-failed", USER, "status 2"),
            ("runtime", terminated(1, message="disk full"), "start-failed", PLATFORM, "disk full"),
        ],
    )
    def test_what_runs_before_it_may_fail(
        self, make_pod: MakePod, container: str, state: Object, reason: str, causer: Causer, words: str
    ) -> None:
        waiting = {"waiting": {"reason": "PodInitializing"}}
        found, began = exit_of(view_of(make_pod(waiting, inits={container: state}, phase="Failed")))
        assert (found.reason, found.causer, found.code, found.at, began) == (reason, causer, None, at(9), None)
        assert words in found.message

    def test_a_stop_while_inputs_are_fetched_is_a_stop(self, make_pod: MakePod) -> None:
        inits = {"inputs": terminated(143, message="pai: copying")}
        pod = make_pod(inits=inits, phase="Failed", deleted=8, annotations={naming.STOP: stamp(7)})
        assert judged(pod).reason == "stopped"


def test_every_reason_has_a_class_of_exits() -> None:
    """What users read is in lifecycle/exits.py; a reason that is missing there would be a shrug."""
    known = {rule.reason for rule in RULES}
    ours = {"stopped", "evicted", "storage-exceeded", "deadline-exceeded", "lost", "preempted", "drained", "vanished"}
    ours |= {"refused", "input-failed", "start-failed", "out-of-memory", "image-pull-failed"}
    assert ours <= known
