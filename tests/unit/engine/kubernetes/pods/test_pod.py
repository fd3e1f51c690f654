"""The pod of a task, field by field."""

from __future__ import annotations

import copy

import kubernetes_validate
import pytest
from pydantic import SecretStr, ValidationError

from pai_backend.engine.base import StartForbidden, StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.job import policy_of
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.model.labels import Effect, Operator, Toleration
from pai_backend.model.plan import RegistryLogin, StagedInput, TeamStorage
from pai_backend.model.pod_choice import PodChoice
from pai_backend.model.pod_settings import PodSettings

from .conftest import MakePlan

KUBERNETES = "1.34.0"

AWAY = [
    {"operator": "Exists", "key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    {"operator": "Exists", "key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
]


def having(settings: PodSettings, **fields: object) -> PodSettings:
    """The settings with other fields, checked as a configuration is."""
    return PodSettings.model_validate({**settings.model_dump(), **fields})


def task_of(pod: Object) -> Object:
    (container,) = pod["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def variables(pod: Object) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in task_of(pod)["env"] if "value" in entry}


def test_the_pod_of_a_task(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    """With nothing set but the runtime image."""
    same = {"cpu": "4", "memory": "8192Mi"}
    with_gpus = {**same, "nvidia.com/gpu": "2"}
    assert build_pod(make_plan(), owner, settings) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "j0123456789abcdef-0-3-1",
            "namespace": "team",
            "labels": {
                "app.kubernetes.io/managed-by": "jupyter-pai",
                "app.kubernetes.io/instance": "lab",
                "app.kubernetes.io/component": "task",
                "app.kubernetes.io/name": "jupyter-pai-task",
                "app.kubernetes.io/part-of": "jupyter-pai",
                "jupyter-pai/job-name": "train",
                "jupyter-pai/job": "j0123456789abcdef",
                "jupyter-pai/attempt": "1",
                "jupyter-pai/task": "j0123456789abcdef-0-3-1",
                "jupyter-pai/role": "worker",
                "jupyter-pai/index": "3",
                "jupyter-pai/user": "alice",
                "jupyter-pai/virtual-cluster": "default",
                "jupyter-pai/policy": policy_of("lab", settings),
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "task",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "jupyter-pai/task": "j0123456789abcdef-0-3-1",
                "jupyter-pai/role": "worker",
                "jupyter-pai/user": "alice",
                "jupyter-pai/virtual-cluster": "default",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "j0123456789abcdef-a1",
                    "uid": "0f7d2b3c",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
            "finalizers": ["jupyter-pai/exit"],
        },
        "spec": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["carol"]}]}
                        ]
                    }
                }
            },
            "hostname": "worker-3",
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "tolerations": AWAY,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [
                {
                    "name": "runtime",
                    "image": "registry.example/runtime:1",
                    "command": ["/runtime/bin/install", "/pai/runtime", "/pai/state"],
                    "resources": {"requests": same, "limits": same},
                    "securityContext": {},
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "runtime", "mountPath": "/pai/runtime"},
                        {"name": "state", "mountPath": "/pai/state"},
                    ],
                }
            ],
            "containers": [
                {
                    "name": "task",
                    "image": "registry.example/image:1",
                    "command": ["/pai/runtime/bin/launch"],
                    "workingDir": "/pai/work",
                    "env": [
                        {"name": "PAI_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                        {"name": "PAI_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    ],
                    "resources": {"requests": with_gpus, "limits": with_gpus},
                    "securityContext": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [
                        {"name": "runtime", "mountPath": "/pai/runtime", "readOnly": True},
                        {"name": "plan", "mountPath": "/pai/plan", "readOnly": True},
                        {"name": "plan", "mountPath": "/pai/job", "readOnly": True},
                        {"name": "state", "mountPath": "/pai/state"},
                        {"name": "work", "mountPath": "/pai/work"},
                        {"name": "shm", "mountPath": "/dev/shm"},
                    ],
                }
            ],
            "volumes": [
                {"name": "runtime", "emptyDir": {}},
                {"name": "plan", "secret": {"secretName": "j0123456789abcdef-0-3-1", "defaultMode": 292}},
                {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                {"name": "work", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            ],
        },
    }


def test_a_task_with_peers_has_the_map_of_its_attempt(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    spec = build_pod(make_plan(job_tasks=2), owner, settings)["spec"]
    assert {"name": "job", "configMap": {"name": "j0123456789abcdef-a1", "defaultMode": 292}} in spec["volumes"]
    (task,) = spec["containers"]
    assert {"name": "job", "mountPath": "/pai/job", "readOnly": True} in task["volumeMounts"]


def test_a_pod_says_its_node_itself_where_that_is_set(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    spec = build_pod(make_plan(), owner, having(settings, binding="direct"))["spec"]
    assert spec["nodeName"] == "carol"
    assert "affinity" not in spec


@pytest.mark.parametrize("binding", ["scheduler", "direct"])
def test_a_pod_of_a_gang_has_a_gate_and_says_of_how_many_and_for_which_node(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, binding: str
) -> None:
    """The API server refuses a gate beside ``nodeName``."""
    pod = build_pod(make_plan(job_tasks=4, gang=4), owner, having(settings, binding=binding))
    assert pod["spec"]["schedulingGates"] == [{"name": "jupyter-pai/gang"}]
    assert "nodeName" not in pod["spec"]
    assert pod["spec"]["affinity"]["nodeAffinity"]
    notes = pod["metadata"]["annotations"]
    assert (notes["jupyter-pai/gang"], notes["jupyter-pai/node"]) == ("4", "carol")


@pytest.mark.parametrize(("gang", "gates"), [(1, True), (4, False)])
def test_a_task_that_starts_by_itself_and_any_where_that_is_set_has_none(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, gang: int, gates: bool
) -> None:
    pod = build_pod(make_plan(job_tasks=4, gang=gang), owner, having(settings, gang_gates=gates))
    assert "schedulingGates" not in pod["spec"]
    assert not {naming.GANG, naming.NODE} & pod["metadata"]["annotations"].keys()


def test_nothing_secret_is_in_a_pod(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    """Whoever may list pods sees it."""
    plan = make_plan(
        command="login hush", env={"TOKEN": "hush"}, image_login=RegistryLogin(username="u", password=SecretStr("hush"))
    )
    assert "hush" not in str(build_pod(plan, owner, settings))


@pytest.mark.parametrize(
    ("gpus", "of", "resources", "variable"),
    [
        ((0, 3), {}, {"nvidia.com/gpu": "2"}, None),
        ((0, 3), {"resources": {"TITANX": "amd.com/gpu"}}, {"amd.com/gpu": "2"}, None),
        ((), {}, {}, "none"),
        ((0, 3), {"by": "visible-devices"}, {}, "0,3"),
        ((), {"by": "visible-devices"}, {}, "none"),
    ],
)
def test_a_task_gets_its_gpus_and_no_others(
    make_plan: MakePlan,
    owner: PodOwner,
    settings: PodSettings,
    gpus: tuple[int, ...],
    of: dict[str, object],
    resources: dict[str, str],
    variable: str | None,
) -> None:
    """By the device plugin in number, or as they were placed; images that ask for all get none."""
    plan = make_plan()
    plan = plan.model_copy(update={"placement": plan.placement.model_copy(update={"gpus": gpus})})
    pod = build_pod(plan, owner, having(settings, gpus=of))
    own = task_of(pod)["resources"]
    assert {name: count for name, count in own["limits"].items() if "/" in name} == resources
    assert {name: count for name, count in own["requests"].items() if "/" in name} == resources
    assert variables(pod).get("NVIDIA_VISIBLE_DEVICES") == variable


def test_cpus_may_be_asked_for_and_not_held_to(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    pod = build_pod(make_plan(memory_mb=0), owner, having(settings, cpu_limits=False, gpus={"by": "visible-devices"}))
    assert task_of(pod)["resources"] == {"requests": {"cpu": "4"}}


def test_what_a_task_may_write_is_bounded(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    pod = build_pod(make_plan(shm_mb=512), owner, having(settings, ephemeral_storage_mb=1000))
    volumes = {volume["name"]: volume.get("emptyDir") for volume in pod["spec"]["volumes"]}
    assert volumes["shm"] == {"medium": "Memory", "sizeLimit": "512Mi"}
    assert volumes["work"] == {"sizeLimit": "1000Mi"}
    assert task_of(pod)["resources"]["limits"]["ephemeral-storage"] == "1000Mi"


def test_infiniband_is_a_device_and_what_it_needs(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    plan = make_plan(infiniband=True)
    of = {"resource": "rdma/hca", "count": 2, "capabilities": ["IPC_LOCK"]}
    task = task_of(build_pod(plan, owner, having(settings, infiniband=of)))
    assert task["resources"]["limits"]["rdma/hca"] == "2"
    assert task["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    with pytest.raises(StartRefused, match="InfiniBand"):
        build_pod(plan, owner, settings)
    without = task_of(build_pod(make_plan(), owner, having(settings, infiniband=of)))
    assert "rdma/hca" not in without["resources"]["limits"]
    assert without["securityContext"] == {}


@pytest.mark.parametrize(("network", "host"), [("host-port", False), ("host", True)])
def test_ports_of_the_node_lead_to_the_task_where_that_is_set(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, network: str, host: bool
) -> None:
    """All of them are named, so that the cluster's scheduler sees whom they would clash with."""
    plan = make_plan(job_tasks=4)
    place = plan.placement.model_copy(update={"ports": {"http": (20100, 20102), "ssh": (20101,)}})
    spec = build_pod(plan.model_copy(update={"placement": place}), owner, having(settings, network=network))["spec"]
    assert spec["containers"][0]["ports"] == [
        {"containerPort": port, "hostPort": port, "protocol": "TCP"} for port in (20100, 20101, 20102)
    ]
    assert spec.get("hostNetwork", False) is host
    assert spec.get("dnsPolicy") == ("ClusterFirstWithHostNet" if host else None)
    assert ("hostname" in spec) is not host
    assert not [mount for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"] == "/etc/hosts"]


def test_a_task_with_peers_finds_them_by_a_file_or_by_the_clusters_dns(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    by_file = build_pod(make_plan(job_tasks=2), owner, settings)["spec"]
    by_dns = build_pod(make_plan(job_tasks=2), owner, having(settings, names="dns"))["spec"]
    hosts = {"name": "state", "mountPath": "/etc/hosts", "subPath": "hosts"}
    assert hosts in by_file["containers"][0]["volumeMounts"]
    assert hosts not in by_dns["containers"][0]["volumeMounts"]
    assert by_file["subdomain"] == by_dns["subdomain"] == "j0123456789abcdef-a1"
    assert by_dns["dnsConfig"] == {"searches": ["j0123456789abcdef-a1.team.svc.cluster.local"]}
    assert "dnsConfig" not in by_file
    assert "subdomain" not in build_pod(make_plan(), owner, settings)["spec"]


def test_inputs_are_fetched_by_the_backends_own_image(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    """After the runtime bundle, with the task's volumes, without its devices."""
    plan = make_plan(inputs=(StagedInput(uri="hdfs://fs/code", name="code", max_bytes=10),))
    volumes = [{"name": "data", "claim": "data", "path": "/mnt/data", "read_only": True}]
    pod = build_pod(plan, owner, having(settings, inputs_image="registry.example/backend:1", volumes=volumes))
    runtime, inputs = pod["spec"]["initContainers"]
    assert (runtime["name"], inputs["name"], inputs["image"]) == ("runtime", "inputs", "registry.example/backend:1")
    assert inputs["command"][:4] == ["python", "-E", "-P", "-m"]
    assert inputs["command"][-1] == "/pai/plan"
    assert [mount["mountPath"] for mount in inputs["volumeMounts"]] == ["/pai/plan", "/pai/work", "/mnt/data"]
    assert "nvidia.com/gpu" not in inputs["resources"]["limits"]
    assert pod["metadata"]["annotations"]["jupyter-pai/inputs"] == "code"
    assert inputs["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize(("outputs", "count"), [(("/mnt/out",), 1), (("s3://out/put",), 2)])
def test_only_outputs_outside_of_the_container_need_that_image(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, outputs: tuple[str, ...], count: int
) -> None:
    plan = make_plan(outputs=outputs)
    pod = build_pod(plan, owner, having(settings, inputs_image="registry.example/backend:1"))
    assert len(pod["spec"]["initContainers"]) == count
    if count > 1:
        with pytest.raises(StartRefused, match="inputs_image"):
            build_pod(plan, owner, settings)


def test_an_image_is_pulled_with_the_credentials_of_its_document(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    login = RegistryLogin(username="u", password=SecretStr("p"))
    shared = having(settings, image_pull_secrets=["team-login"], image_pull_policy="Always")
    pod = build_pod(make_plan(image_login=login), owner, shared)
    assert pod["spec"]["imagePullSecrets"] == [{"name": "team-login"}, {"name": "j0123456789abcdef-0-3-1-login"}]
    assert task_of(pod)["imagePullPolicy"] == "Always"


def test_a_task_that_would_be_kept_is_asked_whether_it_runs(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    """Nobody else is: each question costs the node a process."""
    pod = build_pod(make_plan(keep_on_failure=True), owner, settings)
    assert pod["metadata"]["annotations"]["jupyter-pai/keep"] == "true"
    probe = task_of(pod)["readinessProbe"]
    assert probe["exec"] == {"command": ["/pai/runtime/bin/launch", "--is-running"]}
    assert "readinessProbe" not in task_of(build_pod(make_plan(), owner, settings))


def test_tolerations_of_all_tasks_and_of_its_kind_of_node(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    """Each once; whoever is away is waited for without end, since we decide when a node is lost."""
    gpu = Toleration(key="nvidia.com/gpu", operator=Operator.EXISTS, effect=Effect.NO_SCHEDULE)
    spot = Toleration(key="spot", value="yes", effect=Effect.NO_EXECUTE, toleration_seconds=5)
    own = settings.model_copy(update={"tolerations": (gpu,)})
    assert build_pod(make_plan(), owner, own, [gpu, spot])["spec"]["tolerations"] == [
        *AWAY,
        {"operator": "Exists", "key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"operator": "Equal", "key": "spot", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 5},
    ]


def test_what_the_administrator_adds_never_replaces_what_we_find_pods_by(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    added = {"team": "vision", "jupyter-pai/job": "another"}
    meta = build_pod(make_plan(), owner, having(settings, labels=added, annotations=added))["metadata"]
    assert (meta["labels"]["team"], meta["annotations"]["team"]) == ("vision", "vision")
    assert meta["labels"]["jupyter-pai/job"] == "j0123456789abcdef"


def test_a_virtual_cluster_has_settings_of_its_own(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
    own = {
        "priority_class": "production",
        "service_account": "tasks",
        "image_pull_secrets": ["site", "theirs"],
        "labels": {"team": "vision", "jupyter-pai/task": "mine"},
        "annotations": {"note": "theirs"},
    }
    of_all = {"priority_class": "research", "runtime_class": "nvidia", "image_pull_secrets": ["site"]}
    notes = {"labels": {"team": "any", "site": "lab"}, "annotations": {"note": "ours"}}
    both = having(settings, **of_all, **notes, by_vc={"vision": own})
    theirs = build_pod(make_plan(virtual_cluster="vision"), owner, both.of_vc("vision"))
    spec, about = theirs["spec"], theirs["metadata"]
    assert (spec["priorityClassName"], spec["runtimeClassName"], spec["serviceAccountName"]) == (
        "production",
        "nvidia",
        "tasks",
    )
    assert spec["automountServiceAccountToken"] is False
    assert spec["imagePullSecrets"] == [{"name": "site"}, {"name": "theirs"}]
    assert (about["labels"]["team"], about["labels"]["site"], about["annotations"]["note"]) == (
        "vision",
        "lab",
        "theirs",
    )
    assert about["labels"]["jupyter-pai/task"] == str(make_plan().uid), "pods are found by it"
    assert both.of_vc("other") is both
    assert build_pod(make_plan(), owner, both)["spec"]["priorityClassName"] == "research"


def test_a_document_chooses_of_what_is_allowed_when_the_pod_is_made(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    """The list may have become shorter since it was submitted."""
    allowed = {"priority_classes": ["batch"], "image_pull_secrets": ["theirs"]}
    given = having(settings, priority_class="research", image_pull_secrets=["site"], allowed=allowed)
    chosen = PodChoice(priority_class="batch", image_pull_secrets=("theirs",))
    spec = build_pod(make_plan(pods=chosen), owner, given)["spec"]
    assert spec["priorityClassName"] == "batch"
    assert spec["imagePullSecrets"] == [{"name": "site"}, {"name": "theirs"}]
    with pytest.raises(StartForbidden, match="asks for priorityClass batch, which is not allowed"):
        build_pod(make_plan(pods=chosen), owner, settings)
    with pytest.raises(StartForbidden, match="asks for serviceAccount default"):
        build_pod(make_plan(pods=PodChoice(service_account="default")), owner, given)


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ({"priority_class": "Not A Name"}, "by_vc.vision.priority_class"),
        ({"image_pull_secrets": ["ok", "a_b"]}, "by_vc.vision.image_pull_secrets.1"),
        ({"labels": {"a b": "c"}}, "by_vc.vision.labels"),
        ({"security": {}}, "by_vc.vision.security"),
    ],
)
def test_a_wrong_setting_of_a_virtual_cluster_is_named_with_its_place(
    settings: PodSettings, own: dict[str, object], place: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        having(settings, by_vc={"vision": own})
    assert place in str(caught.value).splitlines()[1]


def test_classes_accounts_and_schedulers_are_named_where_they_are_set(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings
) -> None:
    chosen = having(
        settings, priority_class="low", runtime_class="nvidia", service_account="tasks", scheduler_name="second"
    )
    spec = build_pod(make_plan(), owner, chosen)["spec"]
    named = ("priorityClassName", "runtimeClassName", "serviceAccountName", "schedulerName")
    assert [spec[name] for name in named] == ["low", "nvidia", "tasks", "second"]
    assert spec["automountServiceAccountToken"] is False


class TestVolumes:
    """Directories that tasks have beside their own."""

    def test_of_every_task_and_of_a_team_storage(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        given = [
            {"name": "fs", "nfs": {"server": "nas", "path": "/fs"}, "path": "/mnt/fs"},
            {"name": "big", "claim": "big", "storage": "datasets", "sub_path": "v1", "read_only": True},
            {"name": "disk", "host_path": "/disk", "path": "/disk"},
        ]
        stored = (
            TeamStorage(name="datasets", uri="/srv/datasets", mount_path="/mnt/datasets"),
            TeamStorage(name="bucket", uri="s3://bucket", mount_path="/mnt/bucket"),
        )
        pod = build_pod(make_plan(storages=stored), owner, having(settings, volumes=given))
        assert pod["spec"]["volumes"][5:] == [
            {"name": "volume-fs", "nfs": {"server": "nas", "path": "/fs", "readOnly": False}},
            {"name": "volume-disk", "hostPath": {"path": "/disk"}},
            {"name": "volume-big", "persistentVolumeClaim": {"claimName": "big", "readOnly": True}},
        ]
        assert task_of(pod)["volumeMounts"][6:] == [
            {"name": "volume-fs", "mountPath": "/mnt/fs"},
            {"name": "volume-disk", "mountPath": "/disk"},
            {"name": "volume-big", "mountPath": "/mnt/datasets", "subPath": "v1", "readOnly": True},
        ]
        assert len(build_pod(make_plan(), owner, having(settings, volumes=given))["spec"]["volumes"]) == 7

    @pytest.mark.parametrize(
        ("uri", "mount_path", "volume", "words"),
        [
            ("/srv/data", "/mnt/data", {"name": "v", "claim": "c", "path": "/x"}, "no volume"),
            ("/srv/data", "/pai/plan", {"name": "v", "claim": "c", "storage": "data"}, "/pai"),
            ("/srv/data", "mnt", {"name": "v", "claim": "c", "storage": "data"}, "absolute"),
            ("/srv/data", "/mnt/../etc", {"name": "v", "claim": "c", "storage": "data"}, "absolute"),
        ],
    )
    def test_a_storage_that_cannot_be_there_is_refused(
        self,
        make_plan: MakePlan,
        owner: PodOwner,
        settings: PodSettings,
        uri: str,
        mount_path: str,
        volume: dict[str, object],
        words: str,
    ) -> None:
        plan = make_plan(storages=(TeamStorage(name="data", uri=uri, mount_path=mount_path),))
        with pytest.raises(StartRefused, match=words):
            build_pod(plan, owner, having(settings, volumes=[volume]))

    def test_two_at_one_place_are_refused(self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
        given = [{"name": "a", "claim": "a", "path": "/mnt/x"}, {"name": "b", "claim": "b", "storage": "data"}]
        plan = make_plan(storages=(TeamStorage(name="data", uri="/d", mount_path="/mnt/x/"),))
        with pytest.raises(StartRefused, match="/mnt/x"):
            build_pod(plan, owner, having(settings, volumes=given))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": "v", "path": "/x"},
            {"name": "v", "claim": "c", "host_path": "/h", "path": "/x"},
            {"name": "v", "claim": "c"},
            {"name": "v", "claim": "c", "path": "/x", "storage": "s"},
            {"name": "v", "claim": "c", "path": "/pai/work"},
            {"name": "V", "claim": "c", "path": "/x"},
        ],
    )
    def test_a_volume_that_is_none_is_refused_with_the_configuration(
        self, settings: PodSettings, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(ValidationError):
            having(settings, volumes=[wrong])


class TestSecurity:
    """Pod Security Standards (Kubernetes documentation): what the API server of a namespace would say."""

    BEYOND_BASELINE = (
        {"network": "host"},
        {"network": "host-port"},
        {"volumes": [{"name": "v", "host_path": "/h", "path": "/h"}]},
        {"security": {"capabilities": ["SYS_ADMIN"]}},
        {"security": {"seccomp": "Unconfined"}},
        {"infiniband": {"resource": "rdma/hca", "capabilities": ["IPC_LOCK"]}},
    )

    @pytest.mark.parametrize("beyond", [{}, {"security": {"user": 0}}, {"security": {"capabilities": ["SETUID"]}}])
    def test_the_baseline_is_kept_by_default(self, settings: PodSettings, beyond: dict[str, object]) -> None:
        assert having(settings, **beyond).standard == "baseline"

    @pytest.mark.parametrize("beyond", BEYOND_BASELINE)
    def test_what_goes_beyond_it_is_known(self, settings: PodSettings, beyond: dict[str, object]) -> None:
        assert having(settings, **beyond).standard == "privileged"

    def test_restricted_holds_for_every_container(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        chosen = having(settings, security={"restricted": True, "user": 1000, "group": 1000, "fs_group": 1000})
        assert chosen.standard == "restricted"
        spec = build_pod(make_plan(), owner, chosen)["spec"]
        assert spec["securityContext"] == {
            "seccompProfile": {"type": "RuntimeDefault"},
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "runAsNonRoot": True,
        }
        for container in (*spec["initContainers"], *spec["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }

    def test_restricted_without_a_user_leaves_it_to_images_but_for_our_own_which_names_none(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        spec = build_pod(make_plan(), owner, having(settings, security={"restricted": True}))["spec"]
        assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True}
        (runtime,), (task,) = spec["initContainers"], spec["containers"]
        assert runtime["securityContext"]["runAsUser"] > 0
        assert "runAsUser" not in task["securityContext"]
        (unbound,) = build_pod(make_plan(), owner, settings)["spec"]["initContainers"]
        assert unbound["securityContext"] == {}

    @pytest.mark.parametrize("wrong", [{"user": 0}, {"capabilities": ["KILL"]}, {"seccomp": "Unconfined"}])
    def test_restricted_contradicts_what_it_forbids(self, settings: PodSettings, wrong: dict[str, object]) -> None:
        with pytest.raises(ValidationError, match="restricted"):
            having(settings, security={"restricted": True, **wrong})


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"network": "host"},
        {"binding": "direct", "network": "host-port"},
        {"security": {"restricted": True, "user": 1000}},
        {
            "ephemeral_storage_mb": 100,
            "inputs_image": "i:1",
            "tolerations": [{"key": "a", "value": "b"}],
            "infiniband": {"resource": "rdma/hca"},
            "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}, "path": "/v"}],
        },
    ],
)
def test_kubernetes_knows_every_field(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, chosen: dict[str, object]
) -> None:
    """By its own schema; a field that it does not know is a fault."""
    own = having(settings, **chosen)
    plan = make_plan(job_tasks=2, keep_on_failure=True, infiniband=own.infiniband is not None)
    if own.inputs_image:
        plan = plan.model_copy(update={"inputs": (StagedInput(uri="/x", name="x", max_bytes=1),)})
    pod = build_pod(plan, owner, own)
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)
    broken = copy.deepcopy(pod)
    broken["spec"]["nodename"] = "carol"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES, strict=True)
