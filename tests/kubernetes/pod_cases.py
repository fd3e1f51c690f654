"""Pods that come to every end and every trouble there is, on a real cluster.

Each case starts a task by the objects that the engine would make, with a launcher in shell in the place of the real
one: it follows the contract of docs/engine-kubernetes.md as far as these cases need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.pods.job import attempt_map
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.engine.kubernetes.pods.secret import task_secret
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.plan import StagedInput, TaskPlan
from pai_backend.model.pod_settings import PodSettings
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import Kubernetes

JOB = JobUid("j0123456789abcdef")
LIMIT_S = 90.0

LAUNCHER = r"""#!/bin/sh
if [ "$1" = --is-running ]; then [ ! -e /pai/state/exit.json ]; exit; fi
gunzip -c /pai/job/job-info.json.gz >/pai/state/job-info.json
gunzip -c /pai/plan/command.gz >/pai/state/command
gunzip -c /pai/plan/environ.gz >/pai/state/environ
while IFS= read -r -d '' entry; do set -- "$@" "$entry"; done </pai/state/environ
started=$(date +%s)
env "$@" sh /pai/state/command &
child=$!
trap 'stopped=1; kill -TERM $child' TERM
wait $child; status=$?
if [ -n "$stopped" ]; then wait $child; status=$?; fi
code=$status signal=null reason=exited
if [ $status -gt 128 ]; then code=null signal=$((status - 128)) reason=signalled; fi
if [ -n "$stopped" ]; then reason=stopped; fi
printf '{"version":1,"code":%s,"signal":%s,"reason":"%s","started":%s,"at":%s}' \
    $code $signal $reason $started $(date +%s) >/dev/termination-log
cp /dev/termination-log /pai/state/exit.json
if [ $status != 0 ] && [ -z "$stopped" ] && tr '\0' '\n' </pai/plan/options | grep -qx keep=1; then
    trap 'exit $status' TERM
    sleep 3600 & wait
fi
exit $status
"""
INSTALL = f"""mkdir /pai/runtime/bin
cat >/pai/runtime/bin/launch <<'END'
{LAUNCHER}END
chmod 755 /pai/runtime/bin/launch
: >/pai/state/hosts
"""

Change = Callable[[Json], object]


def unchanged(pod: Json) -> None:
    """Leave a pod as it is made."""


@dataclass
class Bench:
    """Starts tasks in a namespace."""

    kubernetes: Kubernetes
    kubectl: Kubectl
    owner: PodOwner
    started: int = 0

    async def start(
        self, command: str, change: Change = unchanged, *, settings: dict[str, Any] | None = None, **fields: object
    ) -> str:
        """Start a task on the node carol; the name of its pod. ``change`` may alter the pod before."""
        plan = self.plan(command).model_copy(update=fields)
        busybox = self.kubernetes.busybox
        chosen = PodSettings.model_validate({"runtime_image": busybox, "grace_s": 2, **(settings or {})})
        pod = build_pod(plan, self.owner, chosen)
        pod["spec"]["initContainers"][0]["command"] = ["sh", "-c", INSTALL]
        if "cpus" not in fields:
            _ask_for_little(pod)
        change(pod)
        secret = task_secret(plan, self.owner, chosen)
        await self.kubectl("create", "--validate=strict", "-f", "-", given=json.dumps(secret))
        await self.kubectl("create", "--validate=strict", "-f", "-", given=json.dumps(pod))
        return str(pod["metadata"]["name"])

    def plan(self, command: str) -> TaskPlan:
        """The plan of the next task."""
        self.started += 1
        place = Placement(node="carol", address="carol", machine="carol")
        return TaskPlan(
            uid=task_uid(JOB, 0, self.started, 0),
            job_name="cases",
            user="alice",
            role="worker",
            index=self.started,
            image=self.kubernetes.busybox,
            command=command,
            env={"PAI_JOB_NAME": "cases"},
            placement=place,
            memory_mb=64,
            job_info="{}",
        )

    async def until(self, pod: str, holds: Callable[[Json], object], what: str, limit_s: float = LIMIT_S) -> Json:
        """The pod, once something holds of it. Raises NotInTime."""
        found: Json = {}

        async def now() -> bool:
            nonlocal found
            found = await self.kubectl.get("pod", pod)
            return bool(holds(found))

        await until(now, f"{pod} {what}", limit_s, 0.3)
        return found

    async def over(self, pod: str, limit_s: float = LIMIT_S) -> Json:
        """The pod, once its phase says that it is over."""
        ends = ("Failed", "Succeeded")
        return await self.until(pod, lambda found: found["status"]["phase"] in ends, "to be over", limit_s)

    async def running(self, pod: str) -> Json:
        """The pod, once its task runs."""
        return await self.until(pod, lambda found: state_of(found, "running"), "to run")

    async def delete(self, pod: str, *options: str) -> None:
        """Ask for its deletion, without waiting."""
        await self.kubectl("delete", "pod", pod, "--wait=false", *options)

    async def annotate_stop(self, pod: str) -> None:
        """What the engine does before it deletes a pod that is to stop."""
        await self.kubectl("annotate", "pod", pod, f"{naming.STOP}=2026-11-21T20:00:00Z")


def _ask_for_little(pod: Json) -> None:
    """Let all cases run at once on a small node."""
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        for asked in container["resources"].values():
            asked["cpu"] = "10m"


async def bench_in(kubernetes: Kubernetes, kubectl: Kubectl) -> Bench:
    """A bench in an empty namespace, with the attempt's ConfigMap made."""
    maker = Bench(kubernetes, kubectl, PodOwner("", "", "", ""))
    shared = attempt_map(maker.plan("true"), kubectl.namespace, "cases")
    await kubectl.create(shared)
    name = shared["metadata"]["name"]
    uid = (await kubectl.get("configmap", name))["metadata"]["uid"]
    return Bench(kubernetes, kubectl, PodOwner(kubectl.namespace, name, uid, "cases"))


def state_of(pod: Json, kind: str, container: str = "task") -> Json:
    """A container's state of that kind; empty while it is in another."""
    status = pod["status"]
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        if each["name"] == container:
            found: Json = each["state"].get(kind) or {}
            return found
    return {}


def waits_with(pattern: str, container: str = "task") -> Callable[[Json], object]:
    """Whether a container waits for such a reason."""
    return lambda pod: re.search(pattern, state_of(pod, "waiting", container).get("reason", ""))


def is_ready(pod: Json) -> bool:
    """Whether its task's container says so."""
    return any(each["ready"] for each in pod["status"].get("containerStatuses", ()))


def is_disrupted(pod: Json) -> bool:
    """Whether the cluster says that it takes it away."""
    return any(each["type"] == "DisruptionTarget" for each in pod["status"].get("conditions", ()))


Case = Callable[[Bench], Awaitable[Json]]

PLAIN = "sleep 600"
POLITE = "trap 'exit 0' TERM; sleep 600 & wait"
"""Ends well when it is told to end, as servers and training loops that save their state do."""


async def succeeded(bench: Bench) -> Json:
    return await bench.over(await bench.start('test "$PAI_JOB_NAME" = cases && test "$PWD" = "$PAI_WORK_DIR"'))


async def failed(bench: Bench) -> Json:
    return await bench.over(await bench.start("exit 3"))


async def signalled(bench: Bench) -> Json:
    return await bench.over(await bench.start("kill -SEGV $$"))


async def running(bench: Bench) -> Json:
    return await bench.running(await bench.start(PLAIN))


async def kept(bench: Bench) -> Json:
    """Its container goes on, and says by not being ready that its command does not."""
    name = await bench.start("sleep 3; exit 5", keep_on_failure=True)
    await bench.until(name, lambda pod: pod["status"]["containerStatuses"][0]["ready"], "to be ready")
    return await bench.until(
        name, lambda pod: not pod["status"]["containerStatuses"][0]["ready"], "to be ready no more"
    )


async def out_of_memory(bench: Bench) -> Json:
    return await bench.over(await bench.start("exec tail /dev/zero"))


async def child_out_of_memory(bench: Bench) -> Json:
    return await bench.over(await bench.start("tail /dev/zero; exit 3"))


# Of all processes of the node: those in this container, which its mount namespace tells.
KILL_LAUNCHER = r"""
own=$(readlink /proc/self/ns/mnt)
for process in /proc/[0-9]*; do
    [ "$(readlink $process/ns/mnt)" = "$own" ] || continue
    case $(tr '\0' ' ' <$process/cmdline) in "/bin/sh /pai/runtime/bin/launch"*) kill -KILL ${process#/proc/} ;; esac
done
"""


async def launcher_killed(bench: Bench) -> Json:
    """By somebody of the node: no process of a container may kill its first one."""
    name = await bench.start(PLAIN, lambda pod: pod["spec"].update(hostPID=True))
    await bench.running(name)
    await bench.kubectl.attempt("exec", name, "--", "sh", "-c", KILL_LAUNCHER)  # which ends with its container
    return await bench.over(name)


async def stopped(bench: Bench) -> Json:
    name = await bench.start(PLAIN)
    await bench.running(name)
    await bench.annotate_stop(name)
    await bench.delete(name, "--grace-period=5")
    return await bench.over(name)


async def stopped_deaf(bench: Bench) -> Json:
    name = await bench.start("trap '' TERM; while :; do sleep 1; done")
    await bench.running(name)
    await bench.annotate_stop(name)
    await bench.delete(name, "--grace-period=1")
    return await bench.over(name)


async def stopped_unplaced(bench: Bench) -> Json:
    name = await bench.start("true", cpus=1000)
    await bench.annotate_stop(name)
    await bench.delete(name)
    return await bench.until(name, lambda pod: pod["metadata"].get("deletionTimestamp"), "to be marked")


async def deleted_by_hand(bench: Bench) -> Json:
    name = await bench.start(PLAIN)
    await bench.running(name)
    await bench.delete(name)
    return await bench.over(name)


async def deleted_after_its_end(bench: Bench) -> Json:
    name = await bench.start("exit 4")
    await bench.over(name)
    await bench.delete(name)
    return await bench.until(name, lambda pod: pod["metadata"].get("deletionTimestamp"), "to be marked")


async def drained(bench: Bench) -> Json:
    """As ``kubectl drain`` does it."""
    name = await bench.start(POLITE)
    await bench.running(name)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{bench.kubectl.namespace}/pods/{name}/eviction"
    await bench.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(body))
    return await bench.over(name)


async def disk_limit(bench: Bench) -> Json:
    """A kubelet looks at volumes once a minute, so this takes longest and begins first."""
    command = "dd if=/dev/zero of=big bs=1M count=40; sleep 600"
    return await bench.over(await bench.start(command, settings={"ephemeral_storage_mb": 20}), 2 * LIMIT_S)


async def disk_limit_obeyed(bench: Bench) -> Json:
    """The same, of a command that exits with 0 when it is told to end."""
    command = f"dd if=/dev/zero of=big bs=1M count=40; {POLITE}"
    return await bench.over(await bench.start(command, settings={"ephemeral_storage_mb": 20}), 2 * LIMIT_S)


async def deadline_obeyed(bench: Bench) -> Json:
    return await bench.over(await bench.start(POLITE, lambda pod: pod["spec"].update(activeDeadlineSeconds=25)))


async def deadline(bench: Bench) -> Json:
    return await bench.over(await bench.start(PLAIN, lambda pod: pod["spec"].update(activeDeadlineSeconds=25)))


async def image_missing(bench: Bench) -> Json:
    name = await bench.start("true", image="127.0.0.1:9/no/such:1")
    return await bench.until(name, waits_with("ImagePull"), "to fail to pull")


async def image_never_pulled(bench: Bench) -> Json:
    name = await bench.start("true", settings={"image_pull_policy": "Never"}, image="127.0.0.1:9/no/such:1")
    return await bench.until(name, waits_with("ErrImageNeverPull"), "to be refused its image")


async def image_name_wrong(bench: Bench) -> Json:
    name = await bench.start("true", image="Not:An:Image")
    return await bench.until(name, waits_with("InvalidImageName"), "to be refused its image")


async def runtime_image_missing(bench: Bench) -> Json:
    name = await bench.start("true", settings={"runtime_image": "127.0.0.1:9/no/such:1"})
    return await bench.until(name, waits_with("ImagePull", "runtime"), "to fail to pull")


async def root_forbidden(bench: Bench) -> Json:
    def forbid(pod: Json) -> None:
        pod["spec"]["containers"][0]["securityContext"] = {"runAsNonRoot": True}

    name = await bench.start("true", forbid)
    return await bench.until(name, waits_with("CreateContainerConfigError"), "to be refused its user")


async def no_launcher(bench: Bench) -> Json:
    def without(pod: Json) -> None:
        pod["spec"]["initContainers"][0]["command"] = ["true"]

    return await bench.over(await bench.start("true", without))


def fetching_by(script: str) -> Change:
    """Has a second init container run a script in the place of the staging program."""

    def change(pod: Json) -> None:
        pod["spec"]["initContainers"][1]["command"] = ["sh", "-c", script]

    return change


async def inputs_failed(bench: Bench) -> Json:
    script = "echo 'pai: copying' >&2; echo 'pai: there is no such place' >&2; exit 1"
    return await bench.over(await bench.start("true", fetching_by(script), **fetched(bench)))


async def fetching(bench: Bench) -> Json:
    name = await bench.start("true", fetching_by(PLAIN), **fetched(bench))
    return await bench.until(name, lambda pod: state_of(pod, "running", "inputs"), "to fetch")


def fetched(bench: Bench) -> dict[str, Any]:
    """Fields of a plan with inputs, and the settings for it."""
    inputs = tuple(StagedInput(uri=f"/{name}", name=name, max_bytes=1) for name in ("code", "data"))
    return {"inputs": inputs, "settings": {"inputs_image": bench.kubernetes.busybox}}


async def runtime_failed(bench: Bench) -> Json:
    def fail(pod: Json) -> None:
        pod["spec"]["initContainers"][0]["command"] = ["sh", "-c", "echo no room for it >&2; exit 1"]

    return await bench.over(await bench.start("true", fail))


async def node_full(bench: Bench) -> Json:
    return await bench.over(await bench.start("true", settings={"binding": "direct"}, cpus=1000))


async def node_affinity(bench: Bench) -> Json:
    def elsewhere(pod: Json) -> None:
        pod["spec"]["nodeSelector"] = {"no": "such"}

    return await bench.over(await bench.start("true", elsewhere, settings={"binding": "direct"}))


async def unschedulable(bench: Bench) -> Json:
    name = await bench.start("true", cpus=1000)

    def refused(pod: Json) -> bool:
        return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions", ()))

    return await bench.until(name, refused, "to be refused its node")


async def no_volume(bench: Bench) -> Json:
    def lacking(pod: Json) -> None:
        volume = pod["spec"]["volumes"][2]
        pod["spec"]["volumes"][2] = {"name": volume["name"], "configMap": {"name": "no-such"}}

    name = await bench.start("true", lacking)
    return await bench.until(name, lambda pod: pod["status"].get("startTime"), "to be taken by its node")


DAN = Placement(node="dan", address="dan", machine="dan")


async def preempted(bench: Bench) -> Json:
    """By a pod of a higher class that asks for the whole node."""
    classes = f"{bench.kubectl.namespace}-first"
    await bench.kubectl("create", "priorityclass", classes, "--value=1000000")
    try:
        name = await bench.start(POLITE, placement=DAN, cpus=1)
        await bench.running(name)
        other = await bench.start(PLAIN, placement=DAN, cpus=2, settings={"priority_class": classes})
        found = await bench.over(name)
        await bench.delete(other, "--now")
        return found
    finally:
        await bench.kubectl("delete", "priorityclass", classes)


async def tainted(bench: Bench) -> Json:
    """A taint that ends what runs."""
    name = await bench.start(POLITE, placement=DAN)
    await bench.running(name)
    await bench.kubectl("taint", "node", "dan", "repair=soon:NoExecute")
    try:
        return await bench.over(name)
    finally:
        await bench.kubectl("taint", "node", "dan", "repair-")


async def preempted_by_kubelet(bench: Bench) -> Json:
    """By a pod that the node cannot do without, and that no scheduler has placed."""
    name = await bench.start(POLITE, placement=DAN, cpus=1)
    await bench.running(name)
    spec = {
        "nodeName": "dan",
        "priorityClassName": "system-node-critical",
        "containers": [
            {
                "name": "main",
                "image": bench.kubernetes.busybox,
                "command": ["sleep", "600"],
                "resources": {"requests": {"cpu": "1500m"}},
            }
        ],
    }
    await bench.kubectl.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "critical"}, "spec": spec})
    try:
        return await bench.over(name)
    finally:
        await bench.delete("critical", "--now")


@asynccontextmanager
async def changed_kubelet(testbed: Cluster, name: str = "dan", **changes: Any) -> AsyncIterator[None]:
    """Another configuration of a node's kubelet, until the block ends."""
    node = testbed.nodes[name]
    before = node.change_kubelet(**changes)
    try:
        await node.kill("kubelet")
        await node.start_kubelet()
        yield
    finally:
        node.change_kubelet(**before)
        await node.kill("kubelet")
        await node.start_kubelet()
        await testbed.kubectl.until_ready(name)


SHORT_OF_MEMORY: dict[str, Any] = {
    "evictionSoft": {"memory.available": "99%"},
    "evictionSoftGracePeriod": {"memory.available": "1s"},
    "evictionMaxPodGracePeriod": 20,
}
"""As if the node's memory were all but used up: commands are told to end first, and not killed at once."""
SHUTS_DOWN: dict[str, Any] = {"shutdownGracePeriod": "20s", "shutdownGracePeriodCriticalPods": "5s"}


async def evicted(bench: Bench, testbed: Cluster) -> Json:
    """By a kubelet whose node runs short of memory."""
    name = await bench.start(POLITE, placement=DAN)
    await bench.running(name)
    async with changed_kubelet(testbed, **SHORT_OF_MEMORY):
        return await bench.over(name)


async def shut_down(bench: Bench, testbed: Cluster) -> Json:
    """A machine that is turned off in an orderly way, by a kubelet that hears of it."""
    name = await bench.start(POLITE, placement=DAN)
    await bench.running(name)
    await testbed.nodes["dan"].start_logind()
    async with changed_kubelet(testbed, **SHUTS_DOWN):
        await shut_down_under(bench.kubectl, testbed, "dan", name)
        return await bench.over(name)


async def shut_down_under(kubectl: Kubectl, testbed: Cluster, node: str, pod: str) -> None:
    """Let a node whose kubelet was just started shut down, and wait until that ends a pod."""

    async def known() -> bool:
        return (await kubectl.attempt("exec", pod, "--container=task", "--", "true")).code == 0

    await until(known, f"{pod} to be known to the new kubelet", LIMIT_S, 0.5)  # or it would refuse it

    async def ends() -> bool:
        await testbed.nodes[node].announce_shutdown()  # again and again: when a kubelet begins to listen is not told
        found = await kubectl.attempt("get", "pod", pod, "-o", "json")
        return found.code != 0 or is_disrupted(json.loads(found.out))  # its end may be recorded, and the pod gone

    await until(ends, f"{pod} to be ended by its node", LIMIT_S, 1.0)


async def node_deleted(bench: Bench, testbed: Cluster) -> Json:
    """A node that is taken out of the cluster while its machine is silent; the cluster waits a minute by itself."""
    name = await bench.start(POLITE, placement=DAN)
    await bench.running(name)
    dan = testbed.nodes["dan"]
    await dan.kill("kubelet")
    try:
        await bench.kubectl("delete", "node", "dan")
        return await bench.over(name, 3 * LIMIT_S)
    finally:
        await dan.start_kubelet()
        await testbed.kubectl("wait", "--for=create", "--timeout=60s", "node/dan")
        await testbed.kubectl.until_ready("dan")
        await testbed.give_gpus("dan", 1)


async def power_cut(bench: Bench, testbed: Cluster) -> Json:
    """The pod as the kubelet finds it when its machine is on again."""
    name = await bench.start(PLAIN, placement=DAN)
    await bench.running(name)
    await testbed.nodes["dan"].power_cut()
    await testbed.kubectl.until_condition("Ready=Unknown", "dan")
    await testbed.power_on("dan")
    return await bench.over(name)


CASES: dict[str, Case] = {
    case.__name__.replace("_", "-"): case
    for case in (
        disk_limit,
        disk_limit_obeyed,
        succeeded,
        failed,
        signalled,
        running,
        kept,
        out_of_memory,
        child_out_of_memory,
        launcher_killed,
        stopped,
        stopped_deaf,
        stopped_unplaced,
        deleted_by_hand,
        deleted_after_its_end,
        drained,
        deadline,
        deadline_obeyed,
        image_missing,
        image_never_pulled,
        image_name_wrong,
        runtime_image_missing,
        root_forbidden,
        no_launcher,
        inputs_failed,
        fetching,
        runtime_failed,
        node_full,
        node_affinity,
        unschedulable,
        no_volume,
    )
}
"""Cases that harm nobody else on the cluster."""

ROUGH: dict[str, Case] = {
    "preempted": preempted,
    "tainted": tainted,
    "preempted-by-kubelet": preempted_by_kubelet,
}
"""Cases that take the node dan away from whatever else runs there; one after the other, when all others are done."""

HARSH: dict[str, Callable[[Bench, Cluster], Awaitable[Json]]] = {
    "evicted": evicted,
    "shut-down": shut_down,
    "node-deleted": node_deleted,
    "power-cut": power_cut,
}
"""The same, on a cluster whose parts may be stopped."""
