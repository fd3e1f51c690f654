"""What the tasks of an attempt share."""

from __future__ import annotations

import base64
import gzip
import secrets

import kubernetes_validate
import pytest

from pai_backend.engine.base import StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.pods.job import (
    attempt_files,
    attempt_map,
    network_policy,
    service,
)
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.model.ids import TaskUid
from pai_backend.model.pod_settings import FrontDoor, PodSettings

from .conftest import MakePlan

PEERS = {
    "app.kubernetes.io/managed-by": "jupyter-pai",
    "app.kubernetes.io/instance": "lab",
    "jupyter-pai/job": "j0123456789abcdef",
    "jupyter-pai/attempt": "1",
}


def test_the_map_of_an_attempt_has_the_job_info(make_plan: MakePlan) -> None:
    """All tasks of the attempt make the same one."""
    found = attempt_map(make_plan(job_info='{"作业": 1}', job_tasks=5), "team", "lab")
    assert found["metadata"]["name"] == "j0123456789abcdef-a1"
    assert found["metadata"]["labels"] == {**PEERS, "app.kubernetes.io/component": "job"}
    assert "ownerReferences" not in found["metadata"]
    assert gzip.decompress(base64.b64decode(found["binaryData"]["job-info.json.gz"])).decode() == '{"作业": 1}'
    assert found["data"] == {"hosts": ""}
    assert found == attempt_map(make_plan(job_info='{"作业": 1}', job_tasks=5, index=4), "team", "lab")
    kubernetes_validate.validate(found, "1.34.0", strict=True)


def test_job_info_that_fits_into_no_map_is_refused() -> None:
    with pytest.raises(StartRefused, match="ConfigMap holds at most"):
        attempt_files(secrets.token_hex(2**21))


def test_the_job_info_of_thousands_of_tasks_fits() -> None:
    task = '{"name":"worker-%d","host":"worker-%d.j0-a1.team.svc.cluster.local","ports":{"ssh":[2%d],"http":[1%d]}}'
    files = attempt_files(",".join(task % ((number,) * 4) for number in range(20_000)))
    assert len(base64.b64decode(files["binaryData"]["job-info.json.gz"])) < 400_000


class TestService:
    """Names in the cluster's DNS."""

    def test_there_is_one_only_where_names_come_from_it(self, make_plan: MakePlan, owner: PodOwner) -> None:
        by_dns = PodSettings.model_validate({"runtime_image": "r", "names": "dns"})
        found = service(make_plan(job_tasks=2), owner, by_dns)
        assert found is not None
        assert found["spec"] == {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": PEERS}
        kubernetes_validate.validate(found, "1.34.0", strict=True)
        assert service(make_plan(job_tasks=1), owner, by_dns) is None
        assert service(make_plan(job_tasks=2), owner, PodSettings(runtime_image="r")) is None

    def test_it_selects_the_pods_of_the_attempt(self, make_plan: MakePlan, owner: PodOwner) -> None:
        """And their subdomain is its name, which DNS asks for."""
        settings = PodSettings.model_validate({"runtime_image": "r", "names": "dns"})
        plan = make_plan(job_tasks=2)
        found, pod = service(plan, owner, settings), build_pod(plan, owner, settings)
        assert found is not None
        assert found["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["subdomain"] == found["metadata"]["name"]


class TestNetworkPolicy:
    """Who may reach the ports of a task."""

    def test_peers_may_and_nobody_else(self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
        found = network_policy(make_plan(job_tasks=2), owner, settings)
        assert found is not None
        assert found["spec"] == {
            "podSelector": {"matchLabels": PEERS},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": PEERS}}]}],
        }

    def test_front_doors_may_too(self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
        doors = (
            FrontDoor(pod_labels={"app": "gateway"}, namespace_labels={"kubernetes.io/metadata.name": "pai"}),
            FrontDoor(pod_labels={"app": "proxy"}),
            FrontDoor(cidr="10.0.0.0/8"),
        )
        behind = settings.model_copy(update={"front_doors": doors})
        found, alone = (network_policy(make_plan(job_tasks=tasks), owner, behind) for tasks in (2, 1))
        assert found is not None
        assert alone is not None
        assert alone["spec"]["ingress"][0]["from"] == found["spec"]["ingress"][0]["from"][1:]
        assert found["spec"]["ingress"][0]["from"][1:] == [
            {
                "podSelector": {"matchLabels": {"app": "gateway"}},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "pai"}},
            },
            {"podSelector": {"matchLabels": {"app": "proxy"}}},
            {"ipBlock": {"cidr": "10.0.0.0/8"}},
        ]
        kubernetes_validate.validate(found, "1.34.0", strict=True)

    def test_one_is_shared_by_tasks_without_peers_and_lets_in_nobody(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        """No rule at all; a rule without sources would let in everybody."""
        plan = make_plan(job_tasks=1)
        found, pod = network_policy(plan, owner, settings), build_pod(plan, owner, settings)
        assert found is not None
        assert found["spec"]["ingress"] == []
        assert found["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert found == network_policy(make_plan(uid=TaskUid("j0123456789abcdee-0-0-0")), owner, settings)
        with_peers = build_pod(make_plan(job_tasks=2), owner, settings)
        assert not found["spec"]["podSelector"]["matchLabels"].items() <= with_peers["metadata"]["labels"].items()
        kubernetes_validate.validate(found, "1.34.0", strict=True)

    def test_with_other_front_doors_there_is_another(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        """Tasks that run stay under the one that they began with."""
        doors = [(), (FrontDoor(cidr="10.0.0.0/8"),), (FrontDoor(cidr="10.0.0.0/9"),)]
        found = [
            network_policy(make_plan(), owner, settings.model_copy(update={"front_doors": each})) for each in doors
        ]
        assert len({each["metadata"]["name"] for each in found if each is not None}) == 3

    @pytest.mark.parametrize("off", [{"network_policy": False}, {"network": "host"}, {"network": "host-port"}])
    def test_none_is_made_where_it_would_not_hold(
        self, make_plan: MakePlan, owner: PodOwner, off: dict[str, object]
    ) -> None:
        settings = PodSettings.model_validate({"runtime_image": "r", **off})
        for tasks in (1, 2):
            plan = make_plan(job_tasks=tasks)
            assert network_policy(plan, owner, settings) is None
            assert naming.POLICY not in build_pod(plan, owner, settings)["metadata"]["labels"]

    def test_a_door_is_either_labels_or_addresses(self) -> None:
        with pytest.raises(ValueError, match="either labels or cidr"):
            FrontDoor(cidr="10.0.0.0/8", pod_labels={"a": "b"})
        with pytest.raises(ValueError, match="either labels or cidr"):
            FrontDoor()

    @pytest.mark.parametrize("addresses", ["10.0.0.0/8", "192.168.7.1/32", "10.1.2.3/8", "fd00::/8"])
    def test_addresses_have_the_length_of_their_prefix(self, addresses: str) -> None:
        assert FrontDoor(cidr=addresses).cidr == addresses

    @pytest.mark.parametrize("addresses", ["10.0.0.1", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "10.1/16", "pai.example"])
    def test_other_addresses_are_refused_before_a_cluster_would(self, addresses: str) -> None:
        with pytest.raises(
            ValueError, match=r"must be addresses with the length of their prefix, such as 10\.1\.0\.0/16"
        ):
            FrontDoor(cidr=addresses)
