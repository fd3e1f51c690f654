"""What ends with a token, a lockout or an account, and how an administrator enters another user's job."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from urllib.parse import urlsplit

import httpx
import pytest

from pai_backend.access.broker.lookup import by_certificate, by_public_key, entrance
from pai_backend.access.broker.rights import EVERYTHING
from pai_backend.access.keys import make_ed25519, parse_public_key, public_line
from pai_backend.api.key_wire import JobKeyQuery, NewCertificate, NewKey, NewShare
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.api.services.certificates import CertificateService
from pai_backend.api.services.job_keys import JobKeyService
from pai_backend.api.services.keys import KeyService
from pai_backend.api.services.shares import ShareService
from pai_backend.model.account import Account
from pai_backend.model.errors import Unauthorized
from tests.integration.api.test_grants import audited, certified, facts, registered, still_valid
from tests.integration.api.test_openpai_jobs import submitted
from tests.integration.api.test_streams import connect
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document

REASON = {"asAdmin": True, "reason": "its node burns"}


async def application(client: httpx.AsyncClient) -> tuple[str, str]:
    """An application token and its id."""
    made = (await client.post("/api/v2/tokens/application")).json()
    return made["token"], made["id"]


@pytest.mark.asyncio
async def test_what_an_application_token_made_ends_with_it(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as alice:
        job = await submitted(api, alice)
        token, name = await application(alice)
        async with api.client(token) as program:
            key, made = await registered(program), await certified(program)
            taken = parse_public_key(public_line((await program.get(f"/api/v2/jobs/{job.id}/key")).text)).fingerprint
            shared = await program.post(f"/api/v2/jobs/{job.id}/shares", json={"user": "bob"})
            own = await registered(alice)
        names = (key["fingerprint"], taken, own["fingerprint"])
        before = [await by_public_key(api.store, each, now) for each in names]
        assert (shared.status_code, None in before) == (201, False)
        assert await by_certificate(api.store, facts(made), now) is not None
        mark = await api.store.changes.wait(-1, 0)
        assert (await alice.delete(f"/api/v2/tokens/{name}")).status_code == 200
        assert await api.store.changes.wait(mark, 60) != mark, "gateways that hold logins hear of it"
        after = [await by_public_key(api.store, each, now) for each in names]
        assert [each is not None for each in after] == [False, False, True]
        assert await by_certificate(api.store, facts(made), now) is None
        assert await api.store.grants.shares(job.uid) == []
        events = [event[0] for event in await audited(alice)][-4:]
        again = (await alice.get(f"/api/v2/jobs/{job.id}/key")).text
    assert sorted(events) == ["certificate.revoked", "job-key.replaced", "key.removed", "share.ended"]
    assert parse_public_key(public_line(again)).fingerprint != taken


@pytest.mark.asyncio
async def test_a_key_that_its_user_adopts_outlives_the_token_that_registered_it(api: ApiSite) -> None:
    public = make_ed25519("laptop")[1]
    async with api.client() as alice:
        token, name = await application(alice)
        async with api.client(token) as program:
            await program.post("/api/v2/keys", json={"publicKey": public})
            own = await registered(alice)
            terms = {"publicKey": own["publicKey"], "lifetimeS": 10**8}
            refused = await program.post("/api/v2/keys", json=terms)
            replacing = {"publicKey": make_ed25519("")[1], "replaces": own["fingerprint"]}
            pushed_out = await program.post("/api/v2/keys", json=replacing)
        assert (await alice.post("/api/v2/keys", json={"publicKey": public})).status_code == 201
        await alice.delete(f"/api/v2/tokens/{name}")
        kept = {key["fingerprint"] for key in (await alice.get("/api/v2/keys")).json()["data"]}
    assert kept == {parse_public_key(public).fingerprint, own["fingerprint"]}
    assert (refused.status_code, pushed_out.status_code) == (403, 403), "it changes nothing that is not its own"


@pytest.mark.asyncio
async def test_a_stream_ends_with_its_token(api: ApiSite) -> None:
    async with api.client() as alice:
        await submitted(api, alice)
        token, name = await application(alice)
        socket = await connect(api, "/api/v2/jobs/hello/events/stream", token)
        stays = await connect(api, "/api/v2/jobs/hello/events/stream", ALICE)
        for each in (socket, stays):
            assert await asyncio.wait_for(each.read_message(), 60)
        await alice.delete(f"/api/v2/tokens/{name}")
        async with asyncio.timeout(60):
            while await socket.read_message() is not None:
                pass
    assert socket.close_code == 1008
    assert "Sign in again" in (socket.close_reason or "")
    assert stays.close_code is None
    stays.close()


@pytest.mark.asyncio
async def test_the_keys_of_a_user_who_is_gone_open_nothing(api: ApiSite) -> None:
    now, grants = api.ctx.clock(), api.store.grants
    async with api.client() as alice, api.client(ROOT) as root:
        job = await submitted(api, alice)
        key, made = await registered(alice), await certified(alice)
        who = await by_public_key(api.store, key["fingerprint"], now)
        assert who is not None, "before any api has told who there is"
        await grants.keep_accounts({"alice": False, "root": True})
        assert await by_public_key(api.store, key["fingerprint"], now) is not None
        await grants.keep_accounts({"root": True})
        assert await by_public_key(api.store, key["fingerprint"], now) is None
        assert await by_certificate(api.store, facts(made), now) is None
        assert await still_valid(api, who, job, now) is None
        locked = await root.put("/api/v2/lockouts/nobody-any-more")
        assert (locked.status_code, (await root.get("/api/v2/lockouts")).json()["data"]) == (204, ["nobody-any-more"])
        assert await grants.shut_out(("alice", "root", "nobody-any-more")) == {"alice": False, "nobody-any-more": True}


OPERATIONS = [
    (verb, re.sub(r"\{.*?\}", "0", path))
    for path, verbs in describe(ROUTES, "")["paths"].items()
    for verb, operation in verbs.items()
    if "security" not in operation
]


@pytest.mark.asyncio
async def test_a_locked_out_user_is_refused_by_every_operation_until_the_lock_out_ends(api: ApiSite) -> None:
    assert len(OPERATIONS) > 60
    async with api.client() as alice, api.client(ROOT) as root:
        token, _ = await application(alice)
        await root.put("/api/v2/lockouts/alice")
        async with api.client(token) as program:
            for client in (alice, program):
                for verb, path in OPERATIONS:
                    said = await client.request(verb, path)
                    if verb == "head":
                        assert said.status_code == 403, path
                    else:
                        assert (said.status_code, said.json()["code"]) == (403, "LockedOutUserError"), (verb, path)
        own = await root.put("/api/v2/lockouts/root")
        assert (own.status_code, own.json()["code"]) == (400, "InvalidParametersError"), "one is left who can end it"
        await root.delete("/api/v2/lockouts/alice")
        assert (await alice.get("/api/v2/jobs")).status_code == 200


@pytest.mark.asyncio
async def test_a_stream_ends_with_a_lock_out(api: ApiSite) -> None:
    async with api.client() as alice, api.client(ROOT) as root:
        await submitted(api, alice)
        socket = await connect(api, "/api/v2/jobs/hello/events/stream", ALICE)
        assert await asyncio.wait_for(socket.read_message(), 60)
        await root.put("/api/v2/lockouts/alice")
        async with asyncio.timeout(60):
            while await socket.read_message() is not None:
                pass
    assert socket.close_code == 1008
    assert "locked out" in (socket.close_reason or "")


@pytest.mark.asyncio
@pytest.mark.parametrize("ended", ["revoked", "locked out"])
async def test_a_body_that_arrives_after_the_right_has_ended_does_nothing(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    monkeypatch.setattr("pai_backend.api.base.LOOK_S", 0.0)
    host, port, body = urlsplit(api.url).hostname, urlsplit(api.url).port, scm_document()
    async with api.client() as alice, api.client(ROOT) as root:
        token, name = await application(alice)
        reader, writer = await asyncio.open_connection(host, port)
        head = f"POST /api/v2/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n"
        writer.write(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        assert b" 100 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60), "its header was accepted"
        if ended == "revoked":
            await alice.delete(f"/api/v2/tokens/{name}")
        else:
            await root.put("/api/v2/lockouts/alice")
        writer.write(body)
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        jobs = (await root.get("/api/v2/jobs")).json()
    assert answer.startswith(b"HTTP/1.1 401" if ended == "revoked" else b"HTTP/1.1 403"), answer
    assert jobs == []


@pytest.mark.asyncio
async def test_what_a_token_makes_while_it_is_revoked_is_not_kept(api: ApiSite) -> None:
    """Its request was checked before, and writes after: the write itself asks for the token again."""
    async with api.client() as alice:
        job = await submitted(api, alice)
        token, name = await application(alice)
        user = await api.ctx.identity.of_token(token)
        assert user is not None
        await alice.delete(f"/api/v2/tokens/{name}")
        keys, certificates, shares = KeyService(api.ctx, ""), CertificateService(api.ctx, ""), ShareService(api.ctx, "")
        public = make_ed25519("")[1]
        for made in (
            keys.add(user, NewKey.model_validate({"publicKey": public})),
            keys.replace(user, [NewKey.model_validate({"publicKey": public})]),
            certificates.issue(user, NewCertificate.model_validate({"publicKey": public})),
            shares.give(user, job.id, NewShare(user="bob")),
            JobKeyService(api.ctx).private(user, job.id, JobKeyQuery(), ""),
        ):
            with pytest.raises(Unauthorized):
                await made
        assert (await alice.get("/api/v2/keys")).json()["data"] == []


@pytest.mark.asyncio
async def test_an_administrator_enters_by_a_reason_that_the_owner_reads(api: ApiSite) -> None:
    now, public = api.ctx.clock(), make_ed25519("")[1]
    await api.store.grants.keep_accounts({"alice": False, "bob": False, "root": True})
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        job = await submitted(api, alice)
        body: dict[str, object] = {"publicKey": public, "job": job.id}
        for wrong in (
            {},
            {"asAdmin": True},
            {"reason": "x"},
            {"asAdmin": True, "reason": " "},
            {"asAdmin": True, "reason": "a\nb"},
        ):
            refused = await root.post("/api/v2/certificates", json={**body, **wrong})
            assert (refused.status_code, refused.json()["code"]) == (403, "ForbiddenUserError"), wrong
            assert "--as-admin" in refused.json()["message"] + str(refused.json())
        assert (await bob.post("/api/v2/certificates", json={**body, **REASON})).status_code == 404
        token, _ = await application(root)
        async with api.client(token) as program:
            assert (await program.post("/api/v2/certificates", json={**body, **REASON})).status_code == 403
        for friend in ("root", "bob"):
            shared = await root.post(f"/api/v2/jobs/{job.id}/shares", json={"user": friend})
            assert shared.status_code == 403, "an administrator gives no way in either"
        made = (await root.post("/api/v2/certificates", json={**body, **REASON})).json()
        events = (await alice.get(f"/api/v2/jobs/{job.id}/events")).json()
        told = [event for event in events["data"] if event["type"] == "job.admin-entry"]
        audit = (await root.get("/api/v2/audit")).json()["data"]
    (payload,) = [event["payload"] for event in told]
    assert payload.keys() == {"user", "way", "reason"}, "as docs/events.md has it"
    assert (payload["user"], payload["reason"]) == ("root", REASON["reason"])
    assert "as an administrator: its node burns" in next(
        e["detail"] for e in audit if e["type"] == "certificate.issued"
    )
    who = await by_certificate(api.store, facts(made), now)
    assert who is not None
    assert await entrance(api.store, who, job, now) == EVERYTHING
    other = job.model_copy(update={"uid": "j0000000000000000"})
    assert await entrance(api.store, who, other, now) is None
    await api.store.grants.keep_accounts({"alice": False, "bob": False, "root": False})
    assert await still_valid(api, who, job, now) is None, "it ends with the office"


@pytest.mark.asyncio
async def test_an_administrator_signs_in_to_a_service_by_a_reason_alone(api: ApiSite) -> None:
    async with api.client() as alice, api.client(ROOT) as root:
        await submitted(api, alice)
        path = "/api/v2/jobs/alice~hello/services/web/ticket"
        assert (await root.post(path)).status_code == 403
        assert (await root.post(path, params={"reason": "its node burns"})).status_code == 201
        assert (await alice.post(path)).status_code == 201
        events = (await alice.get("/api/v2/jobs/alice~hello/events")).json()["data"]
    assert [e["payload"]["way"] for e in events if e["type"] == "job.admin-entry"] == ["service web"]


@pytest.mark.asyncio
async def test_a_session_ends_at_logout_and_what_it_signed_in_to_with_it(api: ApiSite) -> None:
    accounts = vars(api.ctx.identity.accounts)["_accounts"]
    token, _ = await api.ctx.identity._make("alice", application=False, life=timedelta(days=1)), None
    user = await api.ctx.identity.of_token(token)
    assert user is not None
    async with api.client(token) as client:
        assert (await client.delete("/api/v2/authn/basic/logout")).status_code == 200
    assert await api.ctx.identity.of_digest(user.token) is None
    kept = await api.ctx.identity.of_token(BOB)
    assert kept is not None
    accounts["bob"] = Account("bob")
    del accounts["bob"]
    assert await api.ctx.identity.of_digest(kept.token) is None, "an account that is gone takes its tokens along"
