"""Keys with terms, certificates, shares, lockouts and their audit, over HTTP and as the gateway sees them."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    load_ssh_public_identity,
)

from pai_backend.access.broker import authority
from pai_backend.access.broker.lookup import CertificateFacts, again, by_certificate, by_public_key, entrance, note_use
from pai_backend.access.broker.rights import EVERYTHING, Credential
from pai_backend.access.keys import make_ed25519, parse_public_key, public_line
from pai_backend.model.job import Job, State
from pai_backend.model.rights import Limits, limits_of
from pai_backend.store.base import job_key_slots
from pai_backend.store.grants import Act
from pai_backend.store.sharing import MOST_LINKS
from pai_backend.store.task_keys import kept as kept_keys
from tests.integration.api.test_openpai_jobs import saved, submitted
from tests.support.api_site import BOB, ROOT, ApiSite

HOUR = timedelta(hours=1)


async def registered(client: httpx.AsyncClient, **terms: object) -> dict[str, Any]:
    answer = await client.post("/api/v2/keys", json={"publicKey": make_ed25519("laptop")[1], **terms})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def certified(client: httpx.AsyncClient, **terms: object) -> dict[str, Any]:
    answer = await client.post("/api/v2/certificates", json={"publicKey": make_ed25519("")[1], **terms})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def audited(client: httpx.AsyncClient, query: str = "") -> list[tuple[str, str, str, str]]:
    events = (await client.get(f"/api/v2/audit?types=key.*,certificate.*,share.*,job-key.*,user.*,ca.*{query}")).json()[
        "data"
    ]
    assert [event["position"] for event in events] == sorted((event["position"] for event in events), reverse=True)
    return [(event["type"], event["by"], event["source"], event["subject"]) for event in reversed(events)]


async def still_valid(api: ApiSite, who: Credential, job: Job, now: datetime, task_alias: str = "") -> Limits | None:
    """What a live login may do in the job, as the gateway asks it."""
    fresh = await again(api.store, who, now)
    return None if fresh is None else await entrance(api.store, fresh, job, now, task_alias)


def facts(made: dict[str, Any]) -> CertificateFacts:
    certificate = load_ssh_public_identity(made["certificate"].encode())
    assert isinstance(certificate, SSHCertificate)
    certificate.verify_cert_signature()
    return CertificateFacts(certificate.serial, made["fingerprint"], signer(certificate))


def signer(certificate: SSHCertificate) -> str:
    line = certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return parse_public_key(line).fingerprint


def database(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.glob("pai.sqlite*"))


async def ended(api: ApiSite, job: Job) -> Job:
    return await saved(api, job, {"state": State.STOPPED})


@pytest.mark.asyncio
async def test_a_key_lives_by_its_terms(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as client:
        job = await submitted(api, client)
        key = await registered(client, name="laptop", lifetimeS=3600, job=job.id)
        listed = (await client.get("/api/v2/keys")).json()["data"]
    assert listed == [key]
    assert (key["name"], key["job"], key["lastUsedAt"]) == ("laptop", job.uid, None)
    found = await by_public_key(api.store, key["fingerprint"], now)
    assert found is not None
    assert (found.user, found.job) == ("alice", job.uid)
    assert await still_valid(api, found, job, now) == EVERYTHING
    assert await by_public_key(api.store, key["fingerprint"], now + 2 * HOUR) is None
    other = job.model_copy(update={"uid": "j0000000000000000"})
    assert await still_valid(api, found, other, now) is None, "it is for the other job"


@pytest.mark.asyncio
async def test_a_new_key_takes_the_place_of_the_old_one_when_it_is_used(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as client:
        old = await registered(client)
        new = await registered(client, replaces=old["fingerprint"])
        wrong = await client.post("/api/v2/keys", json={"publicKey": make_ed25519("")[1], "replaces": "SHA256:none"})
        before = await by_public_key(api.store, old["fingerprint"], now)
        used = await by_public_key(api.store, new["fingerprint"], now)
        assert before is not None
        assert used is not None
        await note_use(api.store, used, now, "192.0.2.7")
        await note_use(api.store, used, now + timedelta(seconds=5), "192.0.2.8")
        (kept,) = (await client.get("/api/v2/keys")).json()["data"]
        events = await audited(client)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "InvalidParametersError")
    assert await by_public_key(api.store, old["fingerprint"], now) is None
    assert (kept["fingerprint"], kept["replaces"], kept["lastUsedFrom"]) == (new["fingerprint"], "", "192.0.2.7")
    assert events == [
        ("key.registered", "alice", "127.0.0.1", old["fingerprint"]),
        ("key.registered", "alice", "127.0.0.1", new["fingerprint"]),
        ("key.removed", "alice", "192.0.2.7", old["fingerprint"]),
    ]


@pytest.mark.asyncio
async def test_a_certificate_is_listed_revoked_and_ends(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as client, api.client(BOB) as bob:
        nothing = await client.post("/api/v2/certificates", json={"publicKey": make_ed25519("")[1]})
        job = await submitted(api, client)
        made = await certified(client, lifetimeS=60, only=["sftp"])
        task = await certified(client, job=job.id, principals=[f"{job.alias}--worker-1"])
        foreign = await client.post(
            "/api/v2/certificates", json={"publicKey": make_ed25519("")[1], "principals": ["other"]}
        )
        listed = [each["serial"] for each in (await client.get("/api/v2/certificates")).json()["data"]]
        not_his = await bob.delete(f"/api/v2/certificates/{made['serial']}")
        who = await by_certificate(api.store, facts(made), now)
        assert who is not None
        assert await still_valid(api, who, job, now) == limits_of(["sftp"])
        revoked = [(await client.delete(f"/api/v2/certificates/{made['serial']}")).status_code for _ in range(2)]
        events = await audited(client)
    assert nothing.json()["message"] == "You have no job to certify a key for."
    assert (foreign.status_code, not_his.status_code, revoked) == (400, 404, [204, 204])
    assert listed == [made["serial"], task["serial"]]
    assert made["principals"] == [job.alias]
    assert await by_certificate(api.store, facts(made), now) is None
    assert await still_valid(api, who, job, now) is None
    of_task = await by_certificate(api.store, facts(task), now)
    assert of_task is not None
    assert await still_valid(api, of_task, job, now, f"{job.alias}--worker-1") == EVERYTHING
    assert await still_valid(api, of_task, job, now, f"{job.alias}--worker-0") is None
    assert await by_certificate(api.store, facts(task), now + 2 * HOUR) is None
    assert [(type_, subject) for type_, _, _, subject in events if "cert" in type_] == [
        ("certificate.issued", str(made["serial"])),
        ("certificate.issued", str(task["serial"])),
        ("certificate.revoked", str(made["serial"])),
    ]


@pytest.mark.asyncio
async def test_the_old_authority_is_accepted_until_its_certificates_ran_out(api: ApiSite) -> None:
    async with api.client() as client, api.client(ROOT) as root:
        await submitted(api, client)
        before = (await client.get("/api/v2/certificates/authority")).json()
        old = await certified(client)
        refused = await client.post("/api/v2/certificates/authority")
        after = (await root.post("/api/v2/certificates/authority")).json()
        new = await certified(client)
    now = api.ctx.clock()
    assert refused.status_code == 403
    assert len(before["keys"]) == 1
    assert after["keys"][1:] == before["keys"]
    assert facts(old).ca == before["fingerprint"]
    assert facts(new).ca == after["fingerprint"] != before["fingerprint"]
    assert await by_certificate(api.store, facts(old), now) is not None
    act = Act("", now + 2 * HOUR)
    assert [ca.fingerprint for ca in await authority.accepted(api.store, act)] == [after["fingerprint"]]
    assert await api.store.grants.ca_key(1) is None, "its private half is gone"
    swapped = CertificateFacts(facts(old).serial, facts(old).fingerprint, after["fingerprint"])
    assert await by_certificate(api.store, swapped, now) is None, "a serial counts with its own signer alone"


@pytest.mark.asyncio
async def test_a_share_lets_in_and_ends(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as alice, api.client(BOB) as bob:
        job = await submitted(api, alice)
        key = await registered(bob)
        who = await by_public_key(api.store, key["fingerprint"], now)
        assert who is not None
        assert await still_valid(api, who, job, now) is None
        hidden = await bob.get(f"/api/v2/jobs/{job.alias}/ssh")
        path = f"/api/v2/jobs/{job.id}/shares"
        given = await alice.post(path, json={"user": "bob", "lifetimeS": 3600, "only": ["port:http", "sftp"]})
        refused = [
            (await alice.post(path, json=body)).json()["code"]
            for body in ({"user": "alice"}, {"user": "nobody"}, {"user": "bob", "only": ["root"]})
        ]
        received = (await bob.get("/api/v2/shares")).json()["data"]
        of_alice = (await alice.get("/api/v2/shares?given=true")).json()["data"]
        of_bob = (await bob.get("/api/v2/shares?given=true")).json()["data"]
        shown = await bob.get(f"/api/v2/jobs/{job.alias}/ssh", headers={"Accept": "application/vnd.jupyter-pai+json"})
        seen = [
            (await bob.get(f"/api/v2/jobs/{job.id}{rest}")).status_code for rest in ("", "/logs", "/shares", "/key")
        ]
        made = await certified(bob, job=job.alias, lifetimeS=86400)
        assert given.status_code == 201, given.text
        assert await still_valid(api, who, job, now) == limits_of(["port:http", "sftp"])
        assert await still_valid(api, who, job, now + 2 * HOUR) is None, "it ends by itself"
        assert (await alice.delete(f"{path}/bob")).status_code == 204
        assert (await alice.delete(f"{path}/bob")).status_code == 404
        events = await audited(alice)
    assert hidden.status_code == 404
    assert refused == ["InvalidParametersError", "NoUserError", "InvalidParametersError"]
    assert received == of_alice == [given.json()]
    assert of_bob == []
    assert (shown.status_code, seen) == (200, [404, 404, 404, 404]), "he may enter it by SSH, and nothing else"
    assert (made["principals"], made["only"]) == ([job.alias], ["sftp", "port:http"])
    assert made["expiresAt"] == given.json()["expiresAt"], "no longer than the share"
    holder = await by_certificate(api.store, facts(made), now)
    assert holder is not None
    assert await still_valid(api, holder, job, now) is None, "the share has ended"
    assert [type_ for type_, *_ in events] == ["share.given", "share.ended"]


@pytest.mark.asyncio
async def test_a_share_with_a_group_is_for_those_who_are_in_it(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        job = await submitted(api, alice)
        who = await by_public_key(api.store, (await registered(bob))["fingerprint"], now)
        assert who is not None
        await root.post("/api/v2/groups", json={"groupname": "vision", "members": ["bob"]})
        path = f"/api/v2/jobs/{job.id}/shares"
        unknown = await alice.post(path, json={"user": "group:nobody"})
        given = await alice.post(path, json={"user": "group:vision", "only": ["sftp"]})
        received = (await bob.get("/api/v2/shares")).json()["data"]
        ssh = await bob.get(f"/api/v2/jobs/{job.alias}/ssh")
        made = await certified(bob, job=job.alias)
        assert await still_valid(api, who, job, now) == limits_of(["sftp"])
        mark = await api.store.changes.wait(-1, 0)
        left = await root.put("/api/v2/groups/vision", json={"data": {"members": []}, "patch": True})
        assert left.is_success, left.text
        assert await api.store.changes.wait(mark, 60) != mark, "gateways that hold logins hear of it"
        holder = await by_certificate(api.store, facts(made), now)
        assert holder is not None
        assert [await still_valid(api, each, job, now) for each in (who, holder)] == [None, None]
        assert (await bob.get("/api/v2/shares")).json()["data"] == []
        assert (await bob.get(f"/api/v2/jobs/{job.alias}/ssh")).status_code == 404
        assert (await alice.delete(f"{path}/group:vision")).status_code == 204
    assert (unknown.status_code, unknown.json()["code"]) == (404, "NoGroupError")
    assert (given.status_code, ssh.status_code) == (201, 200)
    assert [(each["user"], each["only"]) for each in received] == [("group:vision", ["sftp"])]


@pytest.mark.asyncio
async def test_a_link_is_kept_as_a_share_without_its_token(api: ApiSite, tmp_path: Path) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        job = await submitted(api, alice)
        path = f"/api/v2/jobs/{job.id}"
        made = (await alice.post(f"{path}/links", json={"label": "http", "lifetimeS": 60})).json()
        token = made.pop("url").partition("/.pai/link#")[2]
        listed = (await alice.get(f"{path}/shares")).json()["data"]
        given = (await alice.get("/api/v2/shares?given=true")).json()["data"]
        terms = ({"label": "ssh"}, {"label": "http", "lifetimeS": 31 * 86400}, {"label": "http", "lifetimeS": None})
        refused = [(await alice.post(f"{path}/links", json=each)).json()["code"] for each in terms]
        no_index = await alice.post(f"{path}/links", json={"label": "http", "index": 2**58})
        others = [(await each.post(f"{path}/links", json={"label": "http"})).status_code for each in (bob, root)]
        (kept,) = await api.store.grants.shares_in_force(job.uid, api.ctx.clock())
        files = database(tmp_path)
        for _ in range(MOST_LINKS - 1):
            assert (await alice.post(f"{path}/links", json={"label": "http"})).status_code == 201
        full = await alice.post(f"{path}/links", json={"label": "http"})
        assert (await alice.delete(f"{path}/shares/{made['user']}")).status_code == 204
        assert (await alice.post(f"{path}/links", json={"label": "http"})).status_code == 201
        events = await audited(alice)
    assert len(token) >= 43, "256 bits"
    assert [made] == listed == given
    assert (made["isLink"], made["services"], made["only"]) == (True, ["http"], ["port:http"])
    assert kept.link == hashlib.sha256(token.encode()).hexdigest()
    assert (token.encode() in files, kept.link.encode() in files) == (False, True)
    assert refused == ["NoServiceError", "InvalidParametersError", "InvalidParametersError"]
    assert others == [404, 403]
    assert full.json()["code"] == "InvalidParametersError"
    assert (no_index.status_code, no_index.json()["code"]) == (400, "InvalidParametersError")
    assert not any(token in text for event in events for text in event)
    assert not kept.is_for(kept.user), "no name of a user opens it"


@pytest.mark.asyncio
async def test_shares_count_for_nothing_while_the_owner_is_locked_out(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        job = await submitted(api, alice)
        who = await by_public_key(api.store, (await registered(bob))["fingerprint"], now)
        assert who is not None
        await alice.post(f"/api/v2/jobs/{job.id}/shares", json={"user": "bob"})
        await alice.post(f"/api/v2/jobs/{job.id}/links", json={"label": "http"})
        ticket = f"/api/v2/jobs/{job.id}/services/http/ticket"
        ours = {"Accept": "application/vnd.jupyter-pai+json"}
        signed_in = (await bob.post(ticket, headers=ours)).json()
        assert (signed_in["pathUrl"], ".pai/signin" in signed_in["url"]) == ("", True)
        assert len(await api.store.grants.shares_in_force(job.uid, now)) == 2
        await root.put("/api/v2/lockouts/alice")
        assert await api.store.grants.shares_in_force(job.uid, now) == []
        assert await still_valid(api, who, job, now) is None
        assert (await bob.post(ticket)).status_code == 404
        await root.delete("/api/v2/lockouts/alice")
        assert await still_valid(api, who, job, now) == EVERYTHING
        await api.store.grants.keep_accounts({"bob": False, "root": True})
        assert await api.store.grants.shares_in_force(job.uid, now) == []


@pytest.mark.asyncio
async def test_who_is_locked_out_gets_in_by_nothing(api: ApiSite) -> None:
    now = api.ctx.clock()
    async with api.client() as client, api.client(ROOT) as root:
        job = await submitted(api, client)
        made, key = await certified(client), await registered(client)
        job_key = (await client.get(f"/api/v2/jobs/{job.id}/key")).text
        names = [key["fingerprint"], parse_public_key(public_line(job_key)).fingerprint]

        async def found() -> list[Credential | None]:
            ways = [await by_public_key(api.store, name, now) for name in names]
            return [*ways, await by_certificate(api.store, facts(made), now)]

        before = await found()
        assert (await root.put("/api/v2/lockouts/alice")).status_code == 204
        during, listed = await found(), (await root.get("/api/v2/lockouts")).json()["data"]
        refused = await client.post("/api/v2/certificates", json={"publicKey": make_ed25519("")[1]})
        assert (await root.delete("/api/v2/lockouts/alice")).status_code == 204
        after = await found()
        everything = await audited(root, "")
    assert None not in before
    assert (during, listed, refused.status_code) == ([None] * 3, ["alice"], 403)
    assert after == before
    assert [event for event in everything if event[0].startswith("user.")] == [
        ("user.locked-out", "root", "127.0.0.1", "alice"),
        ("user.let-in", "root", "127.0.0.1", "alice"),
    ]


@pytest.mark.asyncio
async def test_a_jobs_keys_are_its_owners_and_leave_no_trace_after_its_end(api: ApiSite, tmp_path: Path) -> None:
    now, file = api.ctx.clock(), tmp_path / "pai.sqlite"
    async with api.client() as client, api.client(ROOT) as root:
        job = await submitted(api, client)
        texts = {
            form: await client.get(f"/api/v2/jobs/{job.id}/key?format={form}")
            for form in ("openssh", "pem", "ppk", "ppk2")
        }
        of_rsa = await client.get(f"/api/v2/jobs/{job.id}/key?format=openssh&type=rsa")
        not_his = await root.get(f"/api/v2/jobs/{job.id}/key")
        events = await audited(client)
        public = [parse_public_key(public_line(text)).fingerprint for text in (texts["openssh"].text, of_rsa.text)]
        found = [await by_public_key(api.store, fingerprint, now) for fingerprint in public]
        kept = [await sealed_bytes(api, slot) for slot in job_key_slots(job.uid)]
        assert all(traces(each, everything(file)) for each in kept), "they are looked for in the right place"
        assert not any(text in everything(file) for text in plain_parts([texts["openssh"].text, of_rsa.text]))
        await ended(api, job)
        gone = await client.get(f"/api/v2/jobs/{job.id}/key")
    assert [texts[form].text.split(maxsplit=1)[0] for form in ("ppk", "ppk2")] == [
        "PuTTY-User-Key-File-3:",
        "PuTTY-User-Key-File-2:",
    ]
    assert texts["pem"].text.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert texts["ppk"].headers["content-disposition"] == f'attachment; filename="{job.alias}.ppk"'
    assert texts["pem"].headers["cache-control"] == "no-store"
    assert [who is not None and (who.user, who.job) for who in found] == [("alice", job.uid)] * 2
    assert (not_his.status_code, gone.status_code, gone.json()["code"]) == (403, 403, "ReadOnlyJobError")
    assert {subject for type_, by, _, subject in events if (type_, by) == ("job-key.taken", "alice")} == set(public)
    assert [await by_public_key(api.store, fingerprint, now) for fingerprint in public] == [None, None]
    await api.store.aclose()  # SQLite empties its log into the file and removes it
    assert not any(traces(each, everything(file)) for each in kept)


def traces(value: bytes, kept: bytes) -> int:
    """How many pieces of a value are there; it may be spread over several pages."""
    return sum(value[start : start + 48] in kept for start in range(0, len(value) - 48, 48))


def everything(file: Path) -> bytes:
    """All that SQLite keeps."""
    return b"".join(path.read_bytes() for path in (file, file.with_name(f"{file.name}-wal")) if path.exists())


def plain_parts(pems: list[str]) -> list[bytes]:
    """A line in the middle of each key, which is in no other."""
    return [pem.splitlines()[-3].encode() for pem in pems]


async def sealed_bytes(api: ApiSite, slot: str) -> bytes:
    """What is stored of a key, as it is stored."""
    return (await api.store._database.read(partial(kept_keys, owners=[slot])))[slot]
