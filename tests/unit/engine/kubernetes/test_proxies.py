"""Which way requests to an API server take: by the kubeconfig, else by the environment, never by ``~/.netrc``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.proxies import proxy_for
from tests.support.kubeconfigs import kubeconfig

SERVER, PROXY = "https://api.cluster.example:6443", "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": PROXY}, PROXY),
        ({"https_proxy": PROXY}, PROXY),
        ({"HTTP_PROXY": PROXY}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".cluster.example"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "api.cluster.example:6443"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "elsewhere.example"}, PROXY),
    ],
)
def test_the_proxy_of_the_environment(
    environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(SERVER) == expected


@pytest.mark.asyncio
async def test_a_request_goes_by_the_proxy_of_the_environment_with_the_kubeconfigs_token_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ``~/.netrc`` has a password for every host, which is for other programs."""
    asked: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((str(request.url), request.headers.get("Authorization")))
        return web.json_response({"kind": "Node", "metadata": {"name": "carol"}})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    (tmp_path / "netrc").write_text("default login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with TestServer(application) as proxy:
        monkeypatch.setenv("HTTP_PROXY", str(proxy.make_url("")))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig("http://localhost:1", token="the-token")))
        client = await connect(Access(path))
        try:
            found = await Calls(client).get("/api/v1/nodes/carol")
        finally:
            await client.aclose()
    assert found["metadata"] == {"name": "carol"}
    assert asked == [("http://localhost:1/api/v1/nodes/carol", "Bearer the-token")]
