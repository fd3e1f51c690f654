"""SSH names, keys, sign-ins, probes."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from pai_backend.access.hostca import host_ca_public_key
from pai_backend.access.keys import make_ed25519
from pai_backend.api.wire import Check
from tests.support.api_site import BOB, ApiSite
from tests.support.documents import scm_document


@pytest.mark.asyncio
async def test_ssh_answer_has_all_a_strict_client_needs(api: ApiSite) -> None:
    async with api.client() as client:
        await client.post("/api/v2/jobs", content=scm_document())
        answer = (await client.get("/api/v2/jobs/hello/ssh")).json()
        gateway = (await client.get("/api/v2/gateway")).json()
    key = answer["gatewayHostKey"]
    assert key.startswith("ssh-ed25519 ")
    pinned = [line.split(" ") for line in answer["knownHosts"]]
    kinds = ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256"]
    assert [(name, kind) for name, kind, _ in pinned] == [
        (name, kind) for name in ("[127.0.0.1]:2222", "pai-test") for kind in kinds
    ]
    assert f"pai-test {key}" in answer["knownHosts"]
    assert pinned[0][2] == pinned[3][2] == key.split(" ")[1]
    assert answer["hostKeyAlias"] == "pai-test"
    authority = await host_ca_public_key(api.store)
    assert answer["certAuthority"] == f"@cert-authority hello,hello--* {authority}"
    assert [(entry["user"], entry["role"], entry["index"]) for entry in answer["entries"]] == [
        ("hello", "worker", 0),
        ("hello--worker-0", "worker", 0),
        ("hello--worker-1", "worker", 1),
    ]
    assert gateway["hostKey"] == key
    assert gateway["fingerprint"].startswith("SHA256:")


@pytest.mark.asyncio
async def test_without_a_gateway_the_answer_says_so(api: ApiSite) -> None:
    api.gateway.clear()
    async with api.client() as client:
        await client.post("/api/v2/jobs", content=scm_document())
        ssh = await client.get("/api/v2/jobs/hello/ssh")
        detail = (await client.get("/api/v2/jobs/hello")).json()
    assert ssh.status_code == 503
    assert ssh.json()["message"] == "The SSH gateway is not running."
    assert detail["sshCommand"] == ""


@pytest.mark.asyncio
async def test_keys_are_registered_listed_and_forgotten_by_their_owner_only(api: ApiSite) -> None:
    _private, public = make_ed25519("alice@laptop")
    async with api.client() as alice, api.client(BOB) as bob:
        made = await alice.post("/api/v2/keys", json={"publicKey": public})
        again = await alice.post("/api/v2/keys", json={"publicKey": public})
        fingerprint = made.json()["fingerprint"]
        others = (await bob.get("/api/v2/keys")).json()
        foreign = await bob.delete(f"/api/v2/keys/{quote(fingerprint, safe='')}")
        mine = (await alice.get("/api/v2/keys")).json()
        gone = await alice.delete(f"/api/v2/keys/{quote(fingerprint, safe='')}")
        after = (await alice.get("/api/v2/keys")).json()
    assert (made.status_code, again.status_code, made.json()["comment"]) == (201, 201, "alice@laptop")
    assert others == {"data": []}
    assert foreign.status_code == 404
    assert [key["fingerprint"] for key in mine["data"]] == [fingerprint]
    assert (gone.status_code, gone.content) == (204, b"")
    assert after == {"data": []}


@pytest.mark.asyncio
async def test_a_private_key_is_refused_without_being_repeated(api: ApiSite) -> None:
    private, _public = make_ed25519("x")
    async with api.client() as client:
        answer = await client.post("/api/v2/keys", json={"publicKey": private})
    assert answer.status_code == 400
    assert private.splitlines()[1] not in answer.text


@pytest.mark.asyncio
async def test_a_ticket_signs_in_to_the_service_once(api: ApiSite) -> None:
    async with api.client() as client:
        await client.post("/api/v2/jobs", content=scm_document())
        ticket = await client.post("/api/v2/jobs/hello/services/web/ticket")
    async with api.client(None) as browser:
        path = ticket.json()["pathUrl"]
        first = await browser.get(path)
        again = await browser.get(path)
    assert ticket.status_code == 201
    assert ticket.json()["url"].startswith("http://hello--web.localhost:")
    assert first.status_code in (302, 303)
    assert "HttpOnly" in first.headers["set-cookie"]
    assert again.status_code in (401, 403)


@pytest.mark.asyncio
async def test_probes_and_metrics_need_no_token(api: ApiSite) -> None:
    async with api.client() as client:
        await client.post("/api/v2/jobs", content=scm_document())
    async with api.client(None) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json()["ready"] is True
        api.checks.append(Check(name="controller", ok=False, message="holds no lease"))
        not_ready = await client.get("/readyz")
        alone = [await client.get(f"/readyz?check={name}") for name in (api.checks[0].name, "controller", "nothing")]
        metrics = (await client.get("/metrics")).text
    assert not_ready.status_code == 503
    assert not_ready.json()["checks"][1].items() >= {"name": "controller", "ok": False}.items()
    assert not_ready.json()["checks"][1]["message"] == "holds no lease"
    assert [answer.status_code for answer in alone] == [200, 503, 400]
    assert [check["ok"] for answer in alone[:2] for check in answer.json()["checks"]] == [True, False]
    assert 'pai_jobs{state="WAITING"} 1.0' in metrics
    assert 'pai_api_requests_total{method="POST",route="/api/v2/jobs",status="202"} 1.0' in metrics
    assert "process_resident_memory_bytes" in metrics


@pytest.mark.asyncio
async def test_metrics_have_one_series_for_a_route_however_many_paths(api: ApiSite) -> None:
    async with api.client() as client:
        for number in range(20):
            await client.get(f"/api/v2/jobs/job{number}")
            await client.get(f"/random/{number}")
        metrics = (await client.get("/metrics")).text
    routes = set(re.findall(r'pai_api_requests_total\{method="GET",route="([^"]*)"', metrics))
    assert routes == {"/api/v2/jobs/{job}", "(none)"}
