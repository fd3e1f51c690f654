"""``cluster remove`` leaves nothing of a backend that is gone, by the API as real HTTP; the server is played here."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pai_backend.engine.kubernetes import naming

pytestmark = pytest.mark.asyncio

LIMIT_S = 120.0
PLURALS = ("pods", "secrets", "configmaps", "services", "networkpolicies")


class Server:
    """Keeps objects of one namespace as an API server does: what a finalizer holds stays until that is taken off."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, plural: str, name: str, instance: str, finalizers: tuple[str, ...] = ()) -> None:
        about: dict[str, Any] = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "1"}
        about |= {"labels": naming.ours(instance), "finalizers": list(finalizers)}
        self.objects[plural, name] = {"metadata": about}

    async def list(self, request: web.Request) -> web.Response:
        wanted = dict(each.split("=") for each in request.query["labelSelector"].split(","))
        plural = request.match_info["plural"]
        items = [each for (kind, _), each in self.objects.items() if kind == plural]
        return web.json_response({"items": [e for e in items if wanted.items() <= e["metadata"]["labels"].items()]})

    async def change(self, request: web.Request) -> web.Response:
        key = request.match_info["plural"], request.match_info["name"]
        found, body = self.objects.get(key), json.loads(await request.text())
        if found is None:
            return web.json_response({"kind": "Status", "reason": "NotFound"}, status=404)
        if request.method == "DELETE":
            assert body["preconditions"]["uid"] == found["metadata"]["uid"]
            found["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
        else:
            found["metadata"] |= body["metadata"]
        if found["metadata"].get("deletionTimestamp") and not found["metadata"].get("finalizers"):
            del self.objects[key]
        return web.json_response(found)


async def _remove(port: int, directory: Path) -> tuple[int, str, str]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    words = ["cluster", "remove", "--cluster-name", "lab", "--kubernetes-kubeconfig", str(kubeconfig)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pai_backend", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_nothing_of_a_backend_that_is_gone_is_left_and_nothing_else_is_touched(tmp_path: Path) -> None:
    server = Server()
    for plural in PLURALS:
        server.add(plural, "ours", "lab", (naming.FINALIZER,) if plural == "pods" else ())
        server.add(plural, "theirs", "other", (naming.FINALIZER,) if plural == "pods" else ())
    application = web.Application()
    for path in ("/api/v1/namespaces/n/{plural}", "/apis/networking.k8s.io/v1/namespaces/n/{plural}"):
        application.add_routes([web.get(path, server.list)])
        application.add_routes([web.route(verb, f"{path}/{{name}}", server.change) for verb in ("DELETE", "PATCH")])
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        assert await _remove(port, tmp_path) == (0, "5 objects of lab are removed\n", "")
        assert set(server.objects) == {(plural, "theirs") for plural in PLURALS}
        assert await _remove(port, tmp_path) == (0, "0 objects of lab are removed\n", "")
    finally:
        await runner.cleanup()
