"""What the database holds of secrets: nothing that can be read, and everything for whoever has the key."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from pai_backend.model.errors import NoSuchJob, Unavailable
from pai_backend.model.spec import ImageAuth
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import key_id, new_key
from pai_backend.store.grants import Act
from pai_backend.store.keyring import GivenKeys, KeyFile, SecretKeyError
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.postgres import PostgresServer, programs
from tests.support.sealing import KEYS

PLANTED = "planted-Secret-0123456789"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = GivenKeys((new_key(),), "secret_key of another backend")


@pytest.fixture
def raw(database_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> RawDatabase:
    """Everything that the database keeps, as bytes, past all of our code."""
    return RawDatabase(database_url, tmp_path, request)


class RawDatabase:
    def __init__(self, url: str, directory: Path, request: pytest.FixtureRequest) -> None:
        self._url, self._directory, self._request = url, directory, request

    def read(self) -> bytes:
        if self._url.startswith("sqlite"):
            # The third file, -shm, is where SQLite's processes agree on who reads what; it holds no content.
            return b"".join((self._directory / name).read_bytes() for name in ("pai.sqlite", "pai.sqlite-wal"))
        server: PostgresServer = self._request.getfixturevalue("postgres_server")
        _, _, name = self._url.rpartition("/")
        words = [word for word in server.psql(name)[1:] if word not in ("-XAtq", "-v", "ON_ERROR_STOP=1")]
        dump = subprocess.run([programs() / "pg_dump", "--inserts", *words], capture_output=True, timeout=60)
        assert dump.returncode == 0, dump.stderr
        return dump.stdout


def holds(raw: bytes, value: str) -> bool:
    """Whether a value can be found as it is, in base64 or in PostgreSQL's hexadecimal."""
    return any(
        form in raw for form in (value.encode(), base64.b64encode(value.encode())[:-4], value.encode().hex().encode())
    )


async def submit(store: Store, number: int = 1, source: bytes = PLANTED.encode()) -> None:
    role = make_role(command=f"login {PLANTED}").model_copy(
        update={"image_auth": ImageAuth(username="alice", password=PLANTED)}
    )
    spec = make_spec(f"job-{number}", roles=[role], env={"PASSWORD": PLANTED})
    job = make_job(spec.name, uid=make_uid(number), spec=spec)
    await store.jobs.submit(
        job, source, "", "", [NewEvent("job.submitted")], secrets={"key": PLANTED, "n": [1, {"x": None}]}
    )


@pytest.mark.asyncio
async def test_nothing_secret_can_be_read_in_the_database(store: Store, raw: RawDatabase) -> None:
    await submit(store)
    await store.secrets.get("signing", PLANTED)
    await store.task_keys.put("slot", PLANTED, "ssh-ed25519 AAAA")
    await store.user_secrets.set("alice", "token", PLANTED, Act("alice", NOW))
    await store.user_secrets.used("alice", ["token"], NOW)

    kept = raw.read()

    assert holds(kept, "ssh-ed25519 AAAA"), "the search itself works"
    assert not holds(kept, PLANTED)


@pytest.mark.asyncio
async def test_everything_comes_back_as_it_was(store: Store, other_store: Store) -> None:
    large = PLANTED.encode() * 40_000
    await submit(store, 1)
    await submit(store, 2, large)
    await store.jobs.submit(make_job("plain", uid=make_uid(3)), b"", "", "", [])

    assert (await other_store.jobs.document(make_uid(1)))[0] == PLANTED.encode()
    assert (await other_store.jobs.document(make_uid(2)))[0] == large
    assert await other_store.jobs.secrets(make_uid(1)) == {"key": PLANTED, "n": [1, {"x": None}]}
    assert await other_store.jobs.secrets(make_uid(3)) == {}
    assert (await other_store.jobs.get(make_uid(1))).spec.env == {"PASSWORD": PLANTED}
    with pytest.raises(NoSuchJob):
        await other_store.jobs.secrets(make_uid(9))


@pytest.mark.asyncio
async def test_a_secret_may_be_text_that_is_not_unicode(store: Store) -> None:
    await store.jobs.submit(make_job(), b"", "", "", [], secrets={"odd": "\ud800\0é"})

    assert await store.jobs.secrets(make_uid(1)) == {"odd": "\ud800\0é"}


@pytest.mark.asyncio
async def test_a_wrong_key_is_refused_at_the_start_and_changes_nothing(
    store: Store, database_url: str, raw: RawDatabase
) -> None:
    await submit(store)
    before = raw.read()

    with pytest.raises(SecretKeyError) as refusal:
        await Store(database_url, OTHER).open()

    assert "secret_key of another backend" in str(refusal.value)
    assert key_id(KEYS.read()[0]) in str(refusal.value)
    assert "put it back" in str(refusal.value)
    assert without_volatile(raw.read()) == without_volatile(before)
    assert (await store.jobs.document(make_uid(1)))[0] == PLANTED.encode()


def without_volatile(dump: bytes) -> list[bytes]:
    """Lines of a dump, but for those in which pg_dump puts a random word at each call."""
    return [line for line in dump.split(b"\n") if b"restrict" not in line]


@pytest.mark.asyncio
async def test_a_missing_key_file_is_not_made_anew_over_a_database_that_needs_it(
    database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "keys" / "secret.key"
    store = Store(database_url, KeyFile(path))
    await store.open()
    await submit(store)
    await store.aclose()
    kept = path.read_text()
    path.unlink()

    with pytest.raises(SecretKeyError, match=r"missing.*restore it"):
        await Store(database_url, KeyFile(path)).open()

    assert not path.exists()
    path.write_text(kept)
    path.chmod(0o600)
    again = Store(database_url, KeyFile(path))
    await again.open()
    assert (await again.jobs.document(make_uid(1)))[0] == PLANTED.encode()
    await again.aclose()


@pytest.mark.asyncio
async def test_of_backends_with_different_keys_on_a_new_database_one_goes_on(database_url: str) -> None:
    stores = [Store(database_url, GivenKeys((new_key(),))) for _ in range(3)]

    outcomes = await asyncio.gather(*(store.open() for store in stores), return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "SecretKeyError", "SecretKeyError"]
    for store in stores:
        await store.aclose()


@pytest.mark.asyncio
async def test_keys_are_rotated_under_a_store_that_goes_on(database_url: str, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "secret.key")
    busy, rotating = Store(database_url, file), Store(database_url, file)
    await busy.open()
    await rotating.open()
    for number in range(1, 121):
        await submit(busy, number)
    await busy.task_keys.put("slot", PLANTED, "public")
    await busy.secrets.get("signing", PLANTED)
    await busy.user_secrets.set("alice", "token", PLANTED, Act("alice", NOW))
    old = file.read()[0]
    new = file.add()[0]
    counts: list[int] = []

    lost, *_ = await asyncio.gather(
        rotating.reseal(counts.append), *(submit(busy, number) for number in range(200, 260))
    )

    assert lost == []
    assert sum(counts) >= 125, "documents, a key, two secrets, the mark and the end of the audit"
    assert (await busy.jobs.document(make_uid(7)))[0] == PLANTED.encode(), "the new key is picked up from the file"
    await rotating.reseal(counts.append)
    assert await rotating.sealed_with() == {key_id(new)}
    await busy.aclose()
    await rotating.aclose()
    assert file.read() == (new, old)
    await readable_with(database_url, new, 120)


async def readable_with(database_url: str, key: str, count: int) -> None:
    """Everything can be opened with this key alone."""
    store = Store(database_url, GivenKeys((key,)))
    await store.open()
    for number in range(1, count + 1):
        assert (await store.jobs.secrets(make_uid(number)))["key"] == PLANTED
        assert (await store.jobs.document(make_uid(number)))[0] == PLANTED.encode()
    assert await store.task_keys.get("slot") == PLANTED
    assert await store.secrets.get("signing", "") == PLANTED
    assert await store.user_secrets.values("alice", ["token"]) == {"token": PLANTED}
    await store.aclose()


class _Killed(Exception):
    pass


@pytest.mark.asyncio
async def test_a_rotation_that_was_cut_short_goes_on_where_it_was(database_url: str) -> None:
    old, new = new_key(), new_key()
    first = Store(database_url, GivenKeys((old,)))
    await first.open()
    for number in range(1, 121):
        await submit(first, number)
    await first.task_keys.put("slot", PLANTED, "public")
    await first.secrets.get("signing", PLANTED)
    await first.user_secrets.set("alice", "token", PLANTED, Act("alice", NOW))
    await first.aclose()
    done: list[int] = []

    def killed(count: int) -> None:
        done.append(count)
        raise _Killed

    for _ in range(2):
        store = Store(database_url, GivenKeys((new, old)))
        await store.open()
        with pytest.raises(_Killed):
            await store.reseal(killed)
        await store.aclose()
    with pytest.raises(SecretKeyError, match=key_id(old)):
        await Store(database_url, GivenKeys((new,))).open()
    store = Store(database_url, GivenKeys((new, old)))
    await store.open()
    await store.reseal(done.append)
    await store.aclose()

    assert sum(done) == 125, "nothing is done twice"
    await readable_with(database_url, new, 120)


@pytest.mark.asyncio
async def test_what_no_key_opens_is_named_and_left_alone(store: Store, database_url: str) -> None:
    await submit(store, 1)
    await submit(store, 2)
    damage = text("UPDATE documents SET source = :junk WHERE job = :job")
    await store._database.write(
        lambda conn: conn.execute(damage, {"junk": b"damaged", "job": make_uid(1)}), announce=False
    )
    rotating = Store(database_url, GivenKeys((new_key(), *KEYS.read())))
    await rotating.open()

    lost = await rotating.reseal(lambda _count: None)
    await rotating.aclose()

    assert lost == [f"documents {make_uid(1)}"]
    with pytest.raises(Unavailable, match="damaged") as refusal:
        await store.jobs.document(make_uid(1))
    assert refusal.value.hint
