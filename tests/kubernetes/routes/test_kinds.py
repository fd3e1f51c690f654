"""The chart's routes are taken by API servers that have the Gateway API in an older and in a newer version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import started
from tests.kubernetes.deploy.helm import CHART, NEEDED, Helm
from tests.kubernetes.fixtures import need_machine
from tests.kubernetes.routes.traefik import learn

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARENT = {"parentRefs": [{"name": "door"}]}
VALUES = {
    **NEEDED,
    "api": {"serviceDomain": "services.pai.example.com"},
    "gatewayApi": {
        "enabled": True,
        "host": "pai.example.com",
        "timeouts": {"request": "0s"},
        "ssh": {"enabled": True, **PARENT},
        **PARENT,
    },
}


@pytest.mark.parametrize(("kinds", "version"), [("gateway-api", "v1alpha2"), ("gateway-api-standard", "v1")])
async def test_routes_are_of_versions_that_the_server_has(kinds: str, version: str, tmp_path: Path) -> None:
    await asyncio.to_thread(need_machine)
    place = await asyncio.to_thread(programs.build, "helm", kinds)
    async with started() as cluster:
        await learn(cluster.kubectl, place / kinds)
        helm = Helm(place / "helm", tmp_path, cluster.kubeconfig)
        rendered = await helm("template", "pai", str(CHART), "--namespace=default", "--validate", values=VALUES)
        routes = [each for each in yaml.safe_load_all(rendered) if each and each["kind"].endswith("Route")]
        assert [(each["kind"], each["apiVersion"].rpartition("/")[2]) for each in routes] == [
            ("HTTPRoute", "v1"),
            ("TCPRoute", version),
        ]
        await cluster.kubectl("create", "--validate=strict", "-f", "-", given=yaml.safe_dump_all(routes))
