"""What keys, certificates and shares open, what their limits keep shut, and what ends while it is open."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio
from pydantic.alias_generators import to_camel

from pai_backend.access.gateway.activity import LoginUse
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.keys import parse_public_key
from pai_backend.model.job import Phase, State
from pai_backend.model.rights import EVERYTHING, Limits, limits_of
from pai_backend.store.grants import Certificate, JobKey, Share
from pai_backend.testing.builders import make_role, make_spec, make_uid
from tests.support.ssh_world import World, eventually, login, make_world, program, run, running_job, write_key

pytestmark = pytest.mark.asyncio

CUT_S = 60.0  # ends what hangs; that it is 2 s is added up in unit/gateway/test_cut_in_time.py
HOUR = timedelta(hours=1)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, "sshd") as made:
        yield made


def _share(world: World, limits: Limits = EVERYTHING, ends: datetime | None = None) -> None:
    """Let bob in, and be bob from here on."""
    now = datetime.now(UTC)
    world.key = world.path / "bob"
    if not world.key.exists():
        world.store.register("bob", write_key(world.key))
    world.store.grants.given[:] = [Share(world.job.uid, "bob", limits, now, "alice", ends)]
    world.store.written()


def _certify(world: World, principals: tuple[str, ...] = ("demo",), limits: Limits = EVERYTHING, **options: Any) -> int:
    """Make a certificate for a fresh key of alice's and be its holder from here on; returns its serial."""
    ca = asyncssh.generate_private_key("ssh-ed25519")
    world.key = world.path / "certified"
    public = parse_public_key(write_key(world.key))
    now = datetime.now(UTC)
    certificate = ca.generate_user_certificate(
        asyncssh.import_public_key(public.line), "alice", serial=77, principals=list(principals), **options
    )
    (world.path / "certified-cert.pub").write_bytes(certificate.export_certificate())
    world.store.grants.issued[77] = Certificate(
        77, "alice", public.fingerprint, ca.get_fingerprint(), principals, limits, now, now + HOUR
    )
    world.store.written()
    return 77


async def test_an_administrators_certificate_opens_although_its_key_is_registered_too(world: World) -> None:
    """OpenSSH offers the key first, which is the administrator's and opens nothing of others."""
    serial = _certify(world)
    kept, store = world.store.grants.issued[serial], world.store
    store.grants.issued[serial] = replace(kept, user="ada", job=world.job.uid, reason="disk is full")
    store.grants.administrators.add("ada")
    store.register("ada", asyncssh.read_private_key(world.key).export_public_key().decode())
    outcome = await world.ssh("echo in")
    assert (outcome.status, outcome.stdout) == (0, b"in\n"), outcome.stderr
    store.grants.issued[serial] = replace(store.grants.issued[serial], revoked_at=datetime.now(UTC))
    outcome = await world.ssh("echo in")
    assert outcome.stderr.startswith('pai: No job that you may enter has the name "demo".')


async def test_a_share_opens_the_door_and_its_end_shuts_it(world: World) -> None:
    _share(world)
    assert (await world.ssh("echo in")).stdout == b"in\n"
    async with program(world.argv("echo started; exec sleep 60")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"started\n"
        world.store.grants.given.clear()
        world.store.written()
        async with asyncio.timeout(CUT_S):
            assert b"no longer shared with you" in await process.stderr.read()
    outcome = await world.ssh("true")
    assert outcome.stderr.startswith('pai: No job that you may enter has the name "demo".')


async def test_the_end_of_an_account_ends_its_logins(world: World) -> None:
    async with login(world) as conn:
        await conn.run("true")
        world.store.grants.gone.add("alice")
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()
    assert "Permission denied" in (await world.ssh("true")).stderr


async def test_a_key_that_is_registered_for_another_job_ends_what_it_opened(world: World) -> None:
    async with login(world) as conn:
        await conn.run("true")
        kept = world.store.registered
        kept.update({each: replace(key, job=make_uid(9)) for each, key in kept.items()})
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()


async def test_a_key_that_another_user_registered_goes_on_for_nobody(world: World) -> None:
    async with login(world) as conn:
        await conn.run("true")
        kept = world.store.registered
        kept.update({each: replace(key, user="bob") for each, key in kept.items()})
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()


async def test_rights_end_by_the_clock_and_by_a_lockout(world: World) -> None:
    _share(world, ends=datetime.now(UTC) + timedelta(seconds=15))
    async with login(world) as conn:
        await conn.run("true")
        async with asyncio.timeout(15 + CUT_S):
            await conn.wait_closed()
    _share(world)
    async with login(world) as conn:
        await conn.run("true")
        world.store.grants.locked.add("bob")
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()
    assert "Permission denied" in (await world.ssh("true")).stderr


async def test_a_narrowed_share_ends_what_was_opened_under_the_wider_one(world: World) -> None:
    _share(world)
    async with login(world) as conn:
        await conn.run("true")
        _share(world, limits_of(["sftp"]))
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()


async def test_files_only(world: World) -> None:
    _share(world, limits_of(["sftp"]))
    (world.path / "out").write_bytes(b"content")
    (world.path / "batch").write_text(f"put {world.path / 'out'} {world.path / 'there'}\n")
    argv = ["sftp", *world.common(), "-P", str(world.port), "-b", str(world.path / "batch"), "demo@127.0.0.1"]
    assert (await run(argv)).status == 0
    assert (world.path / "there").read_bytes() == b"content"
    outcome = await world.ssh("echo never")
    assert (outcome.status, outcome.stdout) == (255, b"")
    assert "exec request failed" in outcome.stderr
    async with login(world) as conn:
        with pytest.raises(asyncssh.ChannelOpenError, match="may not reach that port"):
            await conn.open_connection("127.0.0.1", world.task_port)
        with pytest.raises(asyncssh.ChannelListenError):
            await conn.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 1)
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.run("echo never")
        async with conn.start_sftp_client() as files:  # the rest of the connection goes on
            assert await files.exists(str(world.path / "there"))


async def test_files_to_read_only(world: World) -> None:
    _share(world, limits_of(["sftp-read"]))
    kept = world.path / "kept"
    kept.write_bytes(b"x" * 300_000)
    async with login(world) as conn, conn.start_sftp_client() as files:
        await files.get(str(kept), str(world.path / "got"))
        assert (world.path / "got").read_bytes() == kept.read_bytes()
        assert "kept" in await files.listdir(str(world.path))
        assert (await files.statvfs(str(world.path))).bsize > 0
        for change in (
            files.remove(str(kept)),
            files.rename(str(kept), str(world.path / "moved")),
            files.posix_rename(str(kept), str(world.path / "moved")),
            files.link(str(kept), str(world.path / "linked")),
            files.symlink(str(kept), str(world.path / "linked")),
            files.mkdir(str(world.path / "made")),
            files.chmod(str(kept), 0o777),
            files.truncate(str(kept), 0),
            files.put(str(kept), str(world.path / "new")),
            files.put(str(world.key), str(kept)),
        ):
            with pytest.raises(asyncssh.SFTPError):
                await change
        assert await files.getsize(str(kept)) == 300_000
    assert {"moved", "linked", "made", "new"}.isdisjoint(path.name for path in world.path.iterdir())
    assert kept.read_bytes() == b"x" * 300_000
    assert kept.stat().st_mode & 0o777 != 0o777


async def test_one_port_only(world: World) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        task = world.task()
        assert task.placement is not None
        place = task.placement.model_copy(update={"ports": {**task.placement.ports, "jupyter": (port,)}})
        world.job = world.job.model_copy(update={"tasks": (task.model_copy(update={"placement": place}),)})
        world.store.put(world.job)
        _share(world, limits_of(["port:jupyter"]))
        outcome = await world.ssh(options=("-W", f"localhost:{port}"))
        assert outcome.stdout == b"hello"
        outcome = await world.ssh(options=("-W", f"127.0.0.1:{world.task_port}"))
        assert "This login may not reach that port. Ports it may reach, by label: jupyter." in outcome.stderr
        assert "for forwarded ports only" in (await world.ssh("true")).stderr


async def test_a_limited_login_does_not_reach_the_tasks_own_ssh_server(world: World) -> None:
    """Files that it may read have a key which opens that for everything."""
    _share(world, replace(limits_of(["sftp-read"]), ports=("ssh",)))
    outcome = await world.ssh(options=("-W", f"127.0.0.1:{world.task_port}"))
    assert "This login may not reach that port." in outcome.stderr


async def test_certificates_open_what_they_name_until_they_are_revoked(world: World) -> None:
    serial = _certify(world)
    async with login_certified(world) as conn:
        assert (await conn.run("echo in")).stdout == "in\n"
        assert (await world.ssh("echo in", name="alice+demo")).stdout == b"in\n"
        kept = world.store.grants.issued[serial]
        world.store.grants.issued[serial] = replace(kept, revoked_at=datetime.now(UTC))
        world.store.written()
        async with asyncio.timeout(CUT_S):
            await conn.wait_closed()
    assert "Permission denied" in (await world.ssh("true")).stderr
    _certify(world, principals=("other",))
    assert 'is not for the job with the name "demo"' in (await world.ssh("true")).stderr


def login_certified(world: World) -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
    """A client that offers its certificate."""
    return asyncssh.connect(
        *("127.0.0.1", world.port),
        username="demo",
        client_keys=[(str(world.key), str(world.path / "certified-cert.pub"))],
        known_hosts=str(world.path / "known_hosts"),
        config=None,
        agent_path=None,
    )


@pytest.mark.parametrize(
    "option",
    [
        {"valid_before": "-1m", "valid_after": "-2h"},
        {"valid_after": "+1h", "valid_before": "+2h"},
        {"source_address": ["192.0.2.0/24"]},
    ],
    ids=["expired", "not yet", "another address"],
)
async def test_what_a_certificate_says_of_itself_counts_too(world: World, option: dict[str, Any]) -> None:
    _certify(world, **option)
    assert "Permission denied" in (await world.ssh("true")).stderr


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp521"])
async def test_keys_of_every_kind_log_in(world: World, kind: str) -> None:
    key = asyncssh.generate_private_key(kind)
    world.key = world.path / "other"
    world.key.write_bytes(key.export_private_key())
    world.key.chmod(0o600)
    world.store.register("alice", key.export_public_key().decode())
    assert (await world.ssh("echo in")).stdout == b"in\n"


async def test_a_jobs_own_key_opens_that_job_alone(world: World) -> None:
    world.key = world.path / "job"
    public = parse_public_key(write_key(world.key))
    world.store.grants.job_keys[public.fingerprint] = JobKey(world.job.uid, "alice", public.fingerprint)
    assert (await world.ssh("echo in")).stdout == b"in\n"
    world.store.put(running_job(world.task_port, name="second", uid=make_uid(2)))
    assert "Permission denied" in (await world.ssh("true", name="second")).stderr
    assert (await world.ssh("echo in", name="root")).stdout == b"in\n", "as OpenPAI's guides log in"
    roles = [make_role("main", instances=2)]
    world.store.put(running_job(world.task_port, uid=world.job.uid, spec=make_spec(roles=roles)))
    several = await world.ssh("true", name="root")
    assert "Log in as demo--TASK instead of root. Its tasks: main-0 to main-1." in several.stderr
    world.key = world.path / "id_ed25519"
    unnamed = await world.ssh("true", name="root")
    assert 'No job that you may enter has the name "root"' in unnamed.stderr, "any other key is for many jobs"


async def test_logins_and_their_ends_are_events_of_the_job(world: World) -> None:
    fingerprint = next(iter(world.store.registered))
    for _ in range(3):
        assert (await world.ssh("cat", stdin=b"x" * 1000)).status == 0
    noted = world.store.noted
    await eventually(lambda: len(noted) >= 2, "a login and its end are not told")
    assert [event.type for _, event in noted] == ["access.login", "access.end"]
    (entry,) = world.store.entries
    assert (entry.type, entry.by, entry.source, entry.job) == ("ssh.entered", "alice", "127.0.0.1", world.job.uid)
    assert (fingerprint in entry.detail, entry.result) == (True, "done")
    (job, first), (_, ended) = noted
    assert job == world.job.uid
    assert first.payload["user"] == "alice"
    assert first.payload["source"] == "127.0.0.1"
    assert first.payload["key"] == fingerprint
    assert str(first.payload["client"]).startswith("SSH-2.0-OpenSSH")
    assert (ended.payload["kind"], ended.payload["reason"], ended.payload["count"]) == ("exec", "closed", 1)
    assert (ended.payload["bytes_in"], ended.payload["bytes_out"]) == (1000, 1000)
    assert world.store.grants.uses[0] == (fingerprint, "127.0.0.1")
    _share(world)
    world.store.grants.given.clear()
    await world.ssh("true")
    await eventually(lambda: len(noted) == 3, "a refusal is not told")
    assert noted[2][1].type == "access.refused"
    assert (noted[2][1].payload["user"], noted[2][1].payload["reason"]) == ("bob", "denied")
    page = (Path(__file__).parents[3] / "docs" / "ssh-gateway.md").read_text()
    rows = dict(re.findall(r"^\| `(access\.\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert {event.type: set(map(to_camel, event.payload)) for _, event in noted} == {
        name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows.items()
    }
    assert all(f"`{reason}`" in page for reason in RefusalReason)
    assert all(f"`{kind}`" in page for kind in LoginUse)


async def test_a_login_waits_for_its_job_where_that_is_wanted(tmp_path: Path) -> None:
    async with make_world(tmp_path, wait_s=60) as world:
        queued = {"state": State.WAITING, "phase": Phase.QUEUED, "why": "needs 4 GPUs; carol has 1 free."}
        world.store.put(world.job.model_copy(update=queued))
        async with program(world.argv("echo in")) as process:
            assert process.stderr is not None
            async with asyncio.timeout(60):
                assert b"pai: Job demo is queued: needs 4 GPUs; carol has 1 free." in await process.stderr.readline()
            world.store.put(world.job)
            out, _ = await asyncio.wait_for(process.communicate(b""), 60)
        assert (process.returncode, out) == (0, b"in\n")
    async with make_world(tmp_path, wait_s=0.2) as world:
        world.store.put(world.job.model_copy(update=queued))
        outcome = await world.ssh("echo never")
        assert (outcome.status, outcome.stdout) == (255, b"")
        assert outcome.stderr.count("is queued") == 2  # in the banner, and when the time was up
