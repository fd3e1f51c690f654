"""Traefik in a pod, with the configuration that docs/install-kubernetes.md shows, at ports of the nodes."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from tests.docs.pages import fences
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.policies.conftest import new_namespace
from tests.kubernetes.routes import program_image

PAGE = "docs/install-kubernetes.md"
WEB, WEBSECURE, SSH = 31800, 31443, 31222  # ports of the nodes, as the manifest has them
_MANIFEST = Path(__file__).with_suffix(".yaml")


def fence(first: str) -> str:
    """The fence of the page that begins so."""
    (found,) = [each for each in fences(PAGE) if each.first.startswith(first)]
    return found.text


def told(file: str) -> list[Any]:
    """The documents of the fence that says that it is this file."""
    return list(yaml.safe_load_all(fence(f"# {file}:")))


@contextlib.asynccontextmanager
async def traefik(cluster: Cluster) -> AsyncIterator[Kubectl]:
    """kubectl in the namespace where it runs; with it go the kinds of the Gateway API, of which it is asked, too."""
    kinds = await asyncio.to_thread(programs.build, "gateway-api") / "gateway-api"
    program = await asyncio.to_thread(programs.build, "traefik") / "traefik"
    reference = await program_image.loaded(cluster, program)
    await learn(cluster.kubectl, kinds)
    async with new_namespace(cluster, f"traefik-{uuid.uuid4().hex[:8]}") as kubectl:
        text = _MANIFEST.read_text().replace("NAMESPACE", kubectl.namespace).replace("IMAGE", reference)
        (configuration,) = told("traefik.yaml")
        about = {"name": "traefik", "namespace": kubectl.namespace}
        await kubectl.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": about,
                "data": {"traefik.yaml": yaml.safe_dump(configuration)},
            }
        )
        try:
            await kubectl("apply", "-f", "-", given=text)
            await kubectl("rollout", "status", "deployment/traefik", "--timeout=120s")
            yield kubectl
        finally:
            await kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", given=text)
            await cluster.kubectl("delete", "--ignore-not-found", *_files(kinds))


async def learn(kubectl: Kubectl, kinds: Path) -> None:
    """Tell an API server of the kinds in a directory, and wait until it serves them."""
    await kubectl("apply", "--server-side", *_files(kinds))
    await kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")


def _files(kinds: Path) -> list[str]:
    return [f"--filename={file}" for file in sorted(kinds.glob("*.k8s.io_*.yaml"))]


async def conditions(kubectl: Kubectl, kind: str, name: str) -> dict[str, str]:
    """What the controller says of a route: type of a condition, and whether it holds."""
    route: Json = await kubectl.get(kind, name)
    rows = [row for parent in route.get("status", {}).get("parents", ()) for row in parent["conditions"]]
    return {row["type"]: row["status"] for row in rows}
