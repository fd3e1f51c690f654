"""Keys with terms, certificates, shares, lockouts and their audit, on both databases."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta

import pytest

from pai_backend.access.keys import fingerprint
from pai_backend.model.account import Group
from pai_backend.model.errors import InvalidParameters, NoSuchCertificate, NoSuchGroup, NoSuchShare, ReadOnlyJob
from pai_backend.model.job import Job, State
from pai_backend.model.rights import limits_of
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import NewEvent, UserKey, job_key_slots
from pai_backend.store.certificates import KEPT
from pai_backend.store.grants import Act, Certificate, GroupUpdate, JobKey, Share, UserCa
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid

HOUR = timedelta(hours=1)
ACT = Act("alice", T0, "192.0.2.7")


async def submit(store: Store, number: int = 1) -> Job:
    job = make_job(f"job-{number}", uid=make_uid(number))
    return await store.jobs.submit(job, b"", "", "", [NewEvent("job.submitted")])


async def end(store: Store, job: Job) -> None:
    lease = await store.leadership.acquire("test", 60, T0, force=True)
    assert lease is not None
    ended = job.model_copy(update={"state": State.FAILED})
    await store.jobs.save(ended, seen=job, epoch=lease.epoch, events=[], at=T0)


def certificate(serial: int, user: str = "alice", **changes: object) -> Certificate:
    made = Certificate(serial, user, "SHA256:k", "SHA256:ca", ("a", "b"), limits_of(["sftp"]), T0, T0 + HOUR)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_certificates_are_kept_until_long_after_their_end(store: Store) -> None:
    largest = certificate(2**53 - 1, job=make_uid(1))
    await store.grants.issue(largest, ACT)
    await store.grants.issue(certificate(2, "bob"), replace(ACT, by="bob"))
    assert await store.grants.certificate(2**53 - 1) == largest
    assert await store.grants.certificates("alice", T0) == [largest]
    assert {each.serial for each in await store.grants.certificates(None, T0)} == {2, 2**53 - 1}
    assert await store.grants.certificates(None, T0 + HOUR) == []
    with pytest.raises(NoSuchCertificate):
        await store.grants.revoke("alice", 2, ACT)
    await store.grants.note_certificate_use(2, T0, "192.0.2.1")
    await store.grants.note_certificate_use(2, T0 + timedelta(seconds=59), "192.0.2.2")
    await store.grants.revoke(None, 2, replace(ACT, by="root"))
    kept = await store.grants.certificate(2)
    assert kept is not None
    assert (kept.revoked_at, kept.last_used_from) == (T0, "192.0.2.1")
    await store.grants.issue(certificate(3), replace(ACT, at=T0 + HOUR + KEPT + HOUR))
    assert await store.grants.certificate(2) is None
    events = await store.audit.page(AuditFilter("bob"))
    assert [(event.type, event.by, event.subject) for event in events] == [
        ("certificate.revoked", "root", "2"),
        ("certificate.issued", "bob", "2"),
    ]
    assert await store.audit.page(AuditFilter("bob", before=events[0].position)) == events[1:]


@pytest.mark.asyncio
async def test_of_two_authorities_made_at_once_one_counts(store: Store, other_store: Store) -> None:
    def following(who: Store, after: int, name: str) -> asyncio.Task[UserCa]:
        made = UserCa(after + 1, f"ssh-ed25519 {name}", f"SHA256:{name}", T0)
        return asyncio.ensure_future(who.grants.follow_ca(after, made, f"private {name}", ACT))

    first = await asyncio.gather(following(store, 0, "one"), following(other_store, 0, "two"))
    assert first[0] == first[1]
    name = first[0].fingerprint.removeprefix("SHA256:")
    assert await other_store.grants.ca_key(1) == f"private {name}"
    await store.grants.issue(certificate(1, ca=first[0].fingerprint), ACT)
    await following(store, 1, "three")
    assert [ca.number for ca in await store.grants.user_cas(T0)] == [2, 1]
    assert [ca.number for ca in await store.grants.user_cas(T0 + HOUR)] == [2]
    assert (await store.grants.ca_key(1), await store.grants.ca_key(2)) == (None, "private three")


@pytest.mark.asyncio
async def test_shares_and_a_jobs_keys_go_with_its_end(store: Store) -> None:
    job, other = await submit(store), await submit(store, 2)
    share = Share(job.uid, "bob", limits_of(["port:web"]), T0, "alice", T0 + HOUR)
    await store.grants.share(replace(share, limits=limits_of([])), ACT)
    await store.grants.share(share, ACT)
    await store.grants.share(replace(share, job=other.uid, expires_at=None), ACT)
    assert await store.grants.shares(job.uid) == [share]
    assert [each.job for each in await store.grants.shared_with("bob", T0)] == [job.uid, other.uid]
    assert [each.job for each in await store.grants.shared_with("bob", T0 + HOUR)] == [other.uid]
    assert [each.job for each in await store.grants.shared_by("alice", T0)] == [job.uid, other.uid]
    assert [each.job for each in await store.grants.shared_by("alice", T0 + HOUR)] == [other.uid]
    assert await store.grants.shared_by("bob", T0) == []
    for slot in (*job_key_slots(job.uid), *job_key_slots(other.uid)):
        await store.task_keys.put(slot, f"private {slot}", "ssh-ed25519 AAAA")
    await end(store, job)
    assert await store.grants.shares(job.uid) == []
    assert [each.job for each in await store.grants.shared_by("alice", T0)] == [other.uid]
    assert [await store.task_keys.get(slot) for slot in job_key_slots(job.uid)] == [None, None]
    assert None not in [await store.task_keys.get(slot) for slot in job_key_slots(other.uid)]
    name = fingerprint(base64.b64decode("AAAA"))
    assert await store.grants.job_key(name) == JobKey(other.uid, "alice", name)
    with pytest.raises(ReadOnlyJob):
        await store.task_keys.put(job_key_slots(job.uid)[0], "private", "ssh-ed25519 AAAA")
    with pytest.raises(ReadOnlyJob):
        await store.grants.share(share, ACT)
    with pytest.raises(NoSuchShare):
        await store.grants.unshare(job.uid, "bob", ACT)
    await store.grants.unshare(other.uid, "bob", ACT)
    events = await store.audit.page(AuditFilter("alice"))
    assert [event.type for event in events] == ["share.ended", "share.given", "share.given", "share.given"]


@pytest.mark.asyncio
async def test_what_is_shared_with_a_group_is_its_members_while_they_are(store: Store) -> None:
    job, grants = await submit(store), store.grants
    share = Share(job.uid, "group:vision", limits_of(["sftp"]), T0, "alice", T0 + HOUR)
    with pytest.raises(NoSuchGroup):
        await grants.share(share, ACT)
    await store.groups.add(Group("vision", members=("bob", "carol", "alice")), ACT)
    await store.groups.add(Group("group:vision", members=("eve",)), ACT)
    await grants.share(share, ACT)
    (found,) = await grants.shares_in_force(job.uid, T0)
    assert found == replace(share, members=frozenset({"alice", "bob", "carol"}))
    assert [(await grants.shared_with(user, T0)) for user in ("bob", "eve", "vision")] == [[share], [], []]
    assert await grants.shared_with("alice", T0) == [], "it is hers"
    assert await grants.shared_with("bob", T0 + HOUR) == []

    await store.groups.change("vision", GroupUpdate(members=("carol",)), ACT)
    assert (await grants.shares_in_force(job.uid, T0))[0].members == {"carol"}
    assert await grants.shared_with("bob", T0) == []
    await store.groups.remove("vision", ACT)
    assert await grants.shares_in_force(job.uid, T0) == []
    await store.groups.add(Group("vision", members=("bob",)), ACT)
    assert await grants.shares(job.uid) == [], "another group of the name gets nothing"
    said = [event.type for event in await store.audit.page(AuditFilter("alice")) if event.type.startswith("share.")]
    assert said == ["share.ended", "share.given"]


@pytest.mark.asyncio
async def test_keys_get_other_terms_and_take_the_place_of_others(store: Store) -> None:
    old = UserKey("SHA256:old", "alice", "ssh-ed25519 old", "", T0)
    new = UserKey("SHA256:new", "alice", "ssh-ed25519 new", "", T0 + HOUR, replaces="SHA256:old")
    await store.user_keys.add(old, ACT)
    await store.user_keys.add(replace(old, name="laptop", expires_at=T0 + HOUR), ACT)
    await store.user_keys.add(replace(old, name="laptop", expires_at=T0 + HOUR), ACT)
    await store.user_keys.add(old, ACT)
    limited = await store.grants.key("SHA256:old")
    assert limited is not None
    assert limited.expires_at == T0 + HOUR, "registering it again lifts no limit"
    await store.user_keys.add(new, ACT)
    with pytest.raises(InvalidParameters, match="to replace"):
        await store.user_keys.add(UserKey("SHA256:b", "bob", "ssh-ed25519 b", "", T0, replaces="SHA256:old"), ACT)
    mark = await store.changes.wait(-1, 0)
    await store.grants.note_key_use("SHA256:old", T0, "192.0.2.1")
    assert await store.grants.key("SHA256:old") is not None
    await store.grants.note_key_use("SHA256:new", T0, "192.0.2.1")
    assert await store.changes.wait(mark, 60) != mark, "gateways are woken to cut logins of the old one"
    assert await store.grants.key("SHA256:old") is None
    assert [event.type for event in reversed(await store.audit.page(AuditFilter()))] == [
        *("key.registered", "key.changed", "key.registered", "key.removed"),
    ]


@pytest.mark.asyncio
async def test_lockouts(store: Store) -> None:
    for _ in range(2):
        await store.grants.lock_out("bob", ACT)
    assert await store.grants.locked_out(("alice", "bob")) == {"bob"}
    assert await store.grants.lockouts() == ["bob"]
    for _ in range(2):
        await store.grants.let_in("bob", ACT)
    assert await store.grants.locked_out(("alice", "bob")) == frozenset()
    assert [event.type for event in await store.audit.page(AuditFilter("bob"))] == ["user.let-in", "user.locked-out"]
