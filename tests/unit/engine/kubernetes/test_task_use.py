"""What the metrics API of a cluster says of pods, and what is made of it where it says nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest

from pai_backend.engine.base import TaskUse
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import ApiClient, Ask
from pai_backend.engine.kubernetes.failures import ApiNotFound
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.engine.kubernetes.task_use import PodMeter, PodPlace

PATH = "/apis/metrics.k8s.io/v1beta1/namespaces/pai/pods"
CLIENT = cast("ApiClient", None)  # no pod here has GPUs


class Cluster:
    """The API server at its boundary: what it answers, by path, and what it was asked."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers, self.asked = answers, list[str]()

    async def send(self, ask: Ask) -> bytes:
        self.asked.append(ask.request.path)
        if ask.request.path not in self.answers:
            raise ApiNotFound("the server could not find the requested resource", status=404)
        return json.dumps(self.answers[ask.request.path]).encode()


def measured(name: str, **containers: tuple[str, str]) -> dict[str, Any]:
    usages = [{"name": each, "usage": {"cpu": cpu, "memory": memory}} for each, (cpu, memory) in containers.items()]
    return {"metadata": {"name": name, "namespace": "pai"}, "containers": usages}


def pod(name: str, namespace: str = "pai") -> PodPlace:
    return PodPlace(ApiPaths(namespace), name, has_gpus=False)


@pytest.mark.asyncio
async def test_a_task_uses_what_its_container_uses_and_one_request_tells_of_all() -> None:
    items = [measured("a", task=("1503217n", "2Gi"), sidecar=("1", "1Gi")), measured("b", task=("250m", "512Ki"))]
    cluster = Cluster({PATH: {"metadata": {}, "items": [*items, measured("c", task=("what", "1"))]}})
    found = await PodMeter().uses(Calls(cast("Any", cluster)), CLIENT, [pod("a"), pod("b"), pod("c"), pod("gone")])
    assert found == {pod("a"): TaskUse(0.001503217, 2048.0), pod("b"): TaskUse(0.25, 0.5)}
    assert cluster.asked == [PATH]


@pytest.mark.asyncio
async def test_without_the_metrics_api_nothing_is_known_which_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    meter, calls = PodMeter(), Calls(cast("Any", Cluster({})))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await meter.uses(calls, CLIENT, [pod("a")]) == {}
    assert len(caplog.records) == 1
    assert "metrics API does not answer" in caplog.text
