"""Credentials for images: from an authFile that is read beside the loop, or from a document's secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_backend.controller.plans import KEPT_S, MOMENT_S, ImageLogins, parse_auth_file
from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.model.job import Job
from pai_backend.model.plan import RegistryLogin
from pai_backend.model.spec import ImageAuth
from pai_backend.storage.faults import Away, StorageFault
from pai_backend.storage.reach import StorageReach
from pai_backend.testing.builders import make_job

GOOD = b"registry.example.org\nalice\n p@ss word \n"


def job(auth_file: str = "", auth: ImageAuth | None = None) -> Job:
    made = make_job()
    role = made.spec.task_roles[0].model_copy(update={"image_auth": auth})
    spec = made.spec.model_copy(update={"auth_file": auth_file, "task_roles": (role, *made.spec.task_roles[1:])})
    return made.model_copy(update={"spec": spec})


class ScriptedReach(StorageReach):
    """A reach whose files are answers in order: bytes, an error, or an event to wait for."""

    answers: list[bytes | Exception | asyncio.Event]
    asked: list[tuple[str, str]]

    @classmethod
    def of(cls, *answers: bytes | Exception | asyncio.Event) -> ScriptedReach:
        made = cls(default_fs_uri="hdfs://nn")
        object.__setattr__(made, "answers", list(answers))
        object.__setattr__(made, "asked", [])
        return made

    async def small_file(self, uri: str, user: str, max_bytes: int, timeout_s: float) -> bytes:
        self.asked.append((uri, user))
        answer = self.answers.pop(0)
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return GOOD
        if isinstance(answer, Exception):
            raise answer
        return answer


async def login(logins: ImageLogins, of: Job, **secrets: str) -> RegistryLogin | None:
    return await logins.of(of, of.spec.task_roles[0], secrets)


@pytest.mark.asyncio
async def test_the_three_lines_of_an_auth_file_are_the_login() -> None:
    reach = ScriptedReach.of(GOOD)
    logins = ImageLogins(reach)
    made = await login(logins, job("$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/auth"))
    assert made is not None
    assert (made.registry_uri, made.username) == ("registry.example.org", "alice")
    assert made.password.get_secret_value() == " p@ss word "
    assert "p@ss" not in repr(made)
    assert reach.asked == [(f"hdfs://nn/{make_job().user}/auth", make_job().user)]


@pytest.mark.asyncio
async def test_the_tasks_of_a_job_share_one_reading_and_a_later_retry_reads_anew() -> None:
    now = [0.0]
    reach = ScriptedReach.of(GOOD, b"r\nu\nnew\n")
    logins = ImageLogins(reach, clock=lambda: now[0])
    first, second = await asyncio.gather(login(logins, job("/auth")), login(logins, job("/auth")))
    assert (first, len(reach.asked)) == (second, 1)
    now[0] = KEPT_S + 1
    third = await login(logins, job("/auth"))
    assert third is not None
    assert third.password.get_secret_value() == "new"


@pytest.mark.asyncio
async def test_a_storage_that_hangs_puts_the_plan_off_and_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.controller.plans.MOMENT_S", 0.01)
    assert MOMENT_S <= 1
    answered = asyncio.Event()
    reach = ScriptedReach.of(answered)
    logins = ImageLogins(reach)
    for _ in range(2):
        with pytest.raises(EngineError, match="still being read"):
            await login(logins, job("/auth"))
    answered.set()
    monkeypatch.setattr("pai_backend.controller.plans.MOMENT_S", 5)
    assert await login(logins, job("/auth")) is not None
    assert len(reach.asked) == 1
    await logins.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (StorageFault("/auth does not exist", "upload it"), StartRefused, "authFile: /auth does not exist; upload it"),
        (Away("nn does not answer"), EngineError, "authFile: nn does not answer"),
        (b"only\ntwo\n", StartRefused, "the file has 2 lines; write three"),
        (b"\xff\xfe\x00", StartRefused, "not UTF-8"),
        (OSError("no more processes"), OSError, "no more processes"),
    ],
)
async def test_a_failure_says_why_and_the_next_try_reads_again(
    answer: bytes | Exception, kind: type[Exception], words: str
) -> None:
    logins = ImageLogins(ScriptedReach.of(answer, GOOD))
    with pytest.raises(kind, match=words) as caught:
        await login(logins, job("/auth"))
    assert type(caught.value) is kind
    assert await login(logins, job("/auth")) is not None


@pytest.mark.asyncio
async def test_a_v2_documents_auth_gets_its_secrets_put_in() -> None:
    auth = ImageAuth(username="bob", password="<% $secrets.registry %>", registry_uri="docker.io")
    made = await login(ImageLogins(StorageReach()), job(auth=auth), registry="a&b<\"'")
    assert made is not None
    assert made.password.get_secret_value() == "a&b<\"'"


@pytest.mark.asyncio
async def test_a_secret_that_is_missing_is_named_and_no_value_is_told() -> None:
    auth = ImageAuth(username="<% $secrets.user %>", password="<% $secrets.gone %>")
    with pytest.raises(StartRefused, match=r"\$secrets.gone") as caught:
        await login(ImageLogins(StorageReach()), job(auth=auth), user="hunter22")
    assert "hunter22" not in str(caught.value)


@pytest.mark.asyncio
async def test_a_document_without_credentials_has_no_login() -> None:
    assert await login(ImageLogins(StorageReach()), job()) is None


@pytest.mark.parametrize("text", [b"", b"\n\n\n", b"a\nb\nhunter22\nd\n", b"a\n\nhunter22\n"])
def test_what_is_no_auth_file_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(StorageFault) as caught:
        parse_auth_file(text)
    assert "hunter22" not in caught.value.line()


@pytest.mark.parametrize("text", [b"r\r\nu\r\np\r\n", b"\xef\xbb\xbfr\nu\np", b"r\nu\np\n\n\n"])
def test_line_ends_of_other_systems_are_fine(text: bytes) -> None:
    made = parse_auth_file(text)
    assert (made.registry_uri, made.username, made.password.get_secret_value()) == ("r", "u", "p")


def _files(root: Path, reach: Callable[[Path], StorageReach]) -> StorageReach:
    for name in ("alice", "bob", "team"):
        (root / name).mkdir()
        (root / name / "auth").write_bytes(GOOD)
    return reach(root)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "allowed"),
    [("alice/auth", True), ("team/auth", True), ("bob/auth", False), ("../token", False), ("alice/link", False)],
)
async def test_the_backend_reads_only_what_is_the_users_when_tasks_have_fewer_rights(
    tmp_path: Path, path: str, allowed: bool
) -> None:
    root = tmp_path / "fs"
    root.mkdir()
    (tmp_path / "token").write_bytes(GOOD)
    reach = _files(root, lambda root: StorageReach(default_fs_uri=str(root), shared=("team",)))
    (root / "alice" / "link").symlink_to(root / "bob" / "auth")
    if allowed:
        assert await reach.small_file(f"{root}/{path}", "alice", 4096, 10) == GOOD
    else:
        with pytest.raises(StorageFault) as caught:
            await reach.small_file(f"{root}/{path}", "alice", 4096, 10)
        assert "p@ss" not in caught.value.line()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "uri", ["http://127.0.0.1:1/auth", "s3://bucket/auth", "ftp://h/x", "memory://x", "webhdfs://127.0.0.1:1/x"]
)
async def test_the_backend_is_no_way_into_its_network(uri: str) -> None:
    for default in ("/srv/fs", "hdfs://nn:8020"):
        with pytest.raises(StorageFault, match="is not read by the backend"):
            await StorageReach(default_fs_uri=default).small_file(uri, "alice", 4096, 10)


@pytest.mark.asyncio
@pytest.mark.parametrize("shared", [False, True])
async def test_the_backends_own_credentials_open_nobody_elses_directory(shared: bool) -> None:
    reach = StorageReach(default_fs_uri="s3://team", options={"s3": {"key": "hunter22"}}, tasks_share_our_rights=shared)
    with pytest.raises(StorageFault) as caught:
        await reach.small_file("s3://team/bob/auth", "alice", 4096, 10)
    assert "not a directory of yours" in caught.value.line()
