"""Requests to a real API server: what is created once, whatever happens to the answer; who may connect, and how."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from pai_backend.engine.kubernetes import access as access_module
from pai_backend.engine.kubernetes.access import Access, find_cluster
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.client import ApiClient, connect
from pai_backend.engine.kubernetes.failures import (
    AlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiNotFound,
    ApiUnauthorized,
    Busy,
    Invalid,
    Unreachable,
    Untrusted,
)
from pai_backend.engine.kubernetes.objects import uid_of
from pai_backend.engine.kubernetes.retrying import Backoff
from tests.support.api_server import TOKEN, ApiServer
from tests.support.api_world import Worlds
from tests.support.connect_proxy import connect_proxy
from tests.support.fault_proxy import Answer, Hang, LoseAnswer
from tests.support.followed import config_map
from tests.support.kubeconfigs import kubeconfig

QUICK = Backoff(0.02, 0.2)


class First:
    """Picks the first request of a method, and no later one."""

    def __init__(self, method: str) -> None:
        self._method = method

    def __call__(self, request: web.Request) -> bool:
        if request.method != self._method:
            return False
        self._method = ""
        return True


@pytest.mark.asyncio
async def test_a_creation_whose_answer_is_lost_makes_one_object_and_returns_it(worlds: Worlds) -> None:
    async with worlds.open() as world:
        world.proxy.misbehave(LoseAnswer(), First("POST"))
        made = await world.calls.create(world.resource.path, config_map("once", 1))
        assert made["data"] == {"number": "1"}
        assert list(await world.there()) == [uid_of(made)]
        assert world.proxy.requests == {"POST": 2, "GET": 1}
        with pytest.raises(AlreadyExists, match="409 AlreadyExists"):
            await world.calls.create(world.resource.path, config_map("once", 2))


@pytest.mark.asyncio
async def test_a_deletion_whose_answer_is_lost_is_done(worlds: Worlds) -> None:
    async with worlds.open() as world:
        made = await world.calls.create(world.resource.path, config_map("gone", 1))
        world.proxy.misbehave(LoseAnswer(), First("DELETE"))
        await world.calls.delete(f"{world.resource.path}/gone", uid=uid_of(made))
        assert await world.there() == {}
        assert world.proxy.requests["DELETE"] == 2


@pytest.mark.asyncio
async def test_only_the_object_that_was_meant_is_deleted(worlds: Worlds) -> None:
    async with worlds.open() as world:
        path = f"{world.resource.path}/same"
        old = await world.calls.create(world.resource.path, config_map("same", 1))
        await world.calls.delete(path)
        new = await world.calls.create(world.resource.path, config_map("same", 2))
        await world.calls.delete(path, uid=uid_of(old))
        assert list(await world.there()) == [uid_of(new)]


@pytest.mark.asyncio
async def test_all_kinds_of_patch_are_understood_by_the_server(worlds: Worlds) -> None:
    async with worlds.open() as world:
        path = f"{world.resource.path}/patched"
        await world.calls.create(world.resource.path, config_map("patched", 1))
        await world.calls.patch(path, {"data": {"a": "1"}}, Patch.MERGE)
        await world.calls.patch(path, {"data": {"b": "2"}}, Patch.STRATEGIC)
        await world.calls.patch(path, [{"op": "remove", "path": "/data/number"}], Patch.JSON)
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}, "data": {"c": "3"}}
        query = [("fieldManager", "jupyter-pai")]
        found = await world.calls.patch(path, applied, Patch.APPLY, query=query)
        assert found["data"] == {"a": "1", "b": "2", "c": "3"}
        with pytest.raises(Invalid):
            await world.calls.patch(path, [{"op": "remove", "path": "/data/nothing"}], Patch.JSON)
        stale = {"metadata": {"resourceVersion": "1"}, "data": {"d": "4"}}
        with pytest.raises(ApiConflict):
            await world.calls.patch(path, stale, Patch.MERGE)


@pytest.mark.asyncio
async def test_what_the_server_refuses_is_told_in_its_words(worlds: Worlds, tmp_path: Path) -> None:
    async with worlds.open() as world:
        with pytest.raises(ApiNotFound, match='configmaps "nothing" not found'):
            await world.calls.get(f"{world.resource.path}/nothing")
        with pytest.raises(Invalid, match="422 Invalid"):
            await world.calls.create(world.resource.path, config_map("Not A Name", 1))
        stranger = await connect(Access(world.server.kubeconfig(tmp_path / "stranger", token="stranger")))
        try:
            with pytest.raises(ApiForbidden, match='User "stranger" cannot list resource "configmaps"'):
                await Calls(stranger).page(world.resource.path)
        finally:
            await stranger.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", [Answer(429, {"Retry-After": "0"}), Answer(503), Hang()], ids=str)
async def test_a_request_gives_up_at_its_deadline(worlds: Worlds, fault: Answer | Hang) -> None:
    async with worlds.open() as world:
        world.proxy.misbehave(fault)
        with pytest.raises(Unreachable if isinstance(fault, Hang) else Busy) as error:
            await world.calls.get(f"{world.resource.path}/x", deadline_s=1.0)
        expected = "did not answer in time" if isinstance(fault, Hang) else str(fault.status)
        assert expected in str(error.value)
        assert TOKEN not in str(error.value)
        answer = "unreachable" if isinstance(fault, Hang) else str(fault.status)
        assert {row[:2] for row in world.client.counts} == {("get", answer)}
        assert world.client.counts.total("get") <= 60


async def version(client: ApiClient) -> str:
    try:
        return str((await Calls(client, backoff=QUICK).get("/version", deadline_s=5.0))["gitVersion"])
    finally:
        await client.aclose()


@pytest.mark.asyncio
async def test_an_authority_that_did_not_sign_the_certificate_is_an_error(
    api_server: ApiServer, tmp_path: Path
) -> None:
    await api_server.ready()
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig(api_server.url, token=TOKEN)))
    with pytest.raises(Untrusted, match=r"certificate of the API server is not accepted.*authority"):
        await version(await connect(Access(path)))
    path.write_text(yaml.safe_dump(kubeconfig(api_server.url, token=TOKEN, cluster={"insecure-skip-tls-verify": True})))
    assert (await version(await connect(Access(path)))).startswith("v1.")


@pytest.mark.asyncio
async def test_a_token_that_is_refused_is_fetched_again_from_its_program(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api_server.ready()
    api = "client.authentication.k8s.io/v1"
    said = {"apiVersion": api, "kind": "ExecCredential", "status": {"token": "TOKEN"}}
    (tmp_path / "token").write_text("no longer good")
    program = tmp_path / "login.py"
    program.write_text(
        f"token = open({str(tmp_path / 'token')!r}).read()\nprint({json.dumps(said)!r}.replace('TOKEN', token))"
    )
    user = {"exec": {"apiVersion": api, "command": sys.executable, "args": [str(program)]}}
    document = kubeconfig(api_server.url, user=user, cluster={"certificate-authority": str(api_server.authority)})
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    monkeypatch.setattr(access_module, "REFUSED_S", 0.0)
    client = await connect(Access(tmp_path / "config"))
    with pytest.raises(ApiUnauthorized):
        await Calls(client).get("/version")
    (tmp_path / "token").write_text(TOKEN)
    assert (await version(client)).startswith("v1.")


@pytest.mark.asyncio
async def test_a_pod_connects_with_what_it_was_given(api_server: ApiServer, tmp_path: Path) -> None:
    await api_server.ready()
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "ca.crt").write_bytes(api_server.authority.read_bytes())
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api_server.port)}
    client = ApiClient(await find_cluster(Access(), environ, tmp_path))
    assert (await version(client)).startswith("v1.")


@pytest.mark.asyncio
async def test_the_kubeconfigs_proxy_is_the_way_to_the_server(api_server: ApiServer, tmp_path: Path) -> None:
    await api_server.ready()
    async with connect_proxy() as (port, targets):
        cluster = {"proxy-url": f"http://127.0.0.1:{port}", "certificate-authority": str(api_server.authority)}
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(kubeconfig(api_server.url, token=TOKEN, cluster=cluster)))
        assert (await version(await connect(Access(path)))).startswith("v1.")
        assert targets == [f"127.0.0.1:{api_server.port}"]


@pytest.mark.asyncio
async def test_a_proxy_that_refuses_is_told_without_its_password(api_server: ApiServer, tmp_path: Path) -> None:
    async with connect_proxy(refuses=True) as (port, _):
        cluster = {"proxy-url": f"http://me:hunter2@127.0.0.1:{port}"}
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(kubeconfig(api_server.url, token=TOKEN, cluster=cluster)))
        with pytest.raises(Unreachable, match="the proxy answers 407") as error:
            await version(await connect(Access(path)))
        assert "hunter2" not in str(error.value)
