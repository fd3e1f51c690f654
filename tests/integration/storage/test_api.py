"""The default file system over the API: whole, resumable, bounded, and to each user their own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio

from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.launch.directories import TaskReach, directories
from pai_backend.storage.areas import partial_name
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.reach import TeamMount
from pai_backend.storage.room import FileRoom
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.living_trees import contents_below

pytestmark = pytest.mark.asyncio
MIB = 1 << 20


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[ApiSite]:
    async with running_api(tmp_path) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "fs"


def fs(path: str) -> str:
    return "/api/v2/fs" + quote(path)


def untouched(root: Path) -> bool:
    """Whether nothing was ever made here."""
    return not root.exists()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def chunks(data: bytes, size: int = 100_000) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


async def test_a_file_comes_back_as_it_was_sent(site: ApiSite, root: Path) -> None:
    data = os.urandom(5 * MIB + 17)
    async with site.client() as client:
        sent = await client.put(fs("/alice/data/b c.bin"), content=data, params={"sha256": digest(data)})
        assert (sent.status_code, sent.json()) == (200, {"path": "/alice/data/b c.bin", "kept": 0, "complete": True})
        got = await client.get(fs("/alice/data/b c.bin"))
        assert got.content == data
        assert got.headers["Content-Type"] == "application/octet-stream"
        assert got.headers["Content-Disposition"] == "attachment"
        end = await client.get(fs("/alice/data/b c.bin"), params={"offset": 5 * MIB})
        assert end.content == data[5 * MIB :]
        head = await client.head(fs("/alice/data/b c.bin"))
        assert (head.headers["Content-Length"], head.headers["X-Pai-Kind"]) == (str(len(data)), "file")
    assert (root / "alice" / "data" / "b c.bin").read_bytes() == data


async def test_a_volume_that_tasks_alone_have_is_said_to_be_away_and_none_is_made(tmp_path: Path) -> None:
    volume = tmp_path / "jobs"
    reach = TaskReach(str(volume), (str(volume),))
    files = FileRoom(LocalFiles(volume))
    async with running_api(tmp_path, task_reach=reach, files=files) as site, site.client() as client:
        asked = [client.put(fs("/alice/code.py"), content=b"pass"), client.get(fs("/alice")), client.get(fs("/"))]
        for answer in [await each for each in asked]:
            assert (answer.status_code, answer.json()["code"]) == (503, "UnavailableError"), answer.text
            assert f"{volume}, a volume that tasks have" in answer.json()["message"]
            assert "storage.default_uri" in answer.text
        assert untouched(volume)
        volume.mkdir()
        assert (await client.put(fs("/alice/code.py"), content=b"pass")).status_code == 200


async def test_an_upload_goes_on_where_it_was_left(site: ApiSite, root: Path) -> None:
    data = os.urandom(3 * MIB)
    query: dict[str, str | int] = {"size": len(data), "sha256": digest(data)}
    async with site.client() as client:
        first = await client.put(fs("/alice/f"), content=data[:MIB], params=query)
        assert first.json() == {"path": "/alice/f", "kept": MIB, "complete": False}
        head = await client.head(fs("/alice/f"))
        assert (head.status_code, head.headers["X-Pai-Kept"]) == (404, str(MIB))
        assert not (root / "alice" / "f").exists()
        listed = await client.get(fs("/alice"))
        assert listed.json()["data"] == []
        rest = await client.put(fs("/alice/f"), content=data[MIB:], params={**query, "offset": MIB})
        assert rest.json()["complete"] is True
        assert (await client.get(fs("/alice/f"))).content == data


async def test_what_came_before_the_client_was_gone_is_kept(site: ApiSite, root: Path) -> None:
    data = os.urandom(2 * MIB + 5)
    host, port = site.url.removeprefix("http://").split(":")
    head = f"PUT /api/v2/fs/alice/f?size={len(data)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ALICE}\r\n"
    with socket.create_connection((host, int(port))) as connection:
        request = head.encode() + f"Content-Length: {len(data)}\r\n\r\n".encode() + data[:-5]
        await asyncio.to_thread(connection.sendall, request)
    async with site.client() as client, asyncio.timeout(60):
        while (kept := int((await client.head(fs("/alice/f"))).headers["X-Pai-Kept"])) < len(data) - 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # only the API knows, and has no event for it
        assert kept == len(data) - 5
        rest = await client.put(fs("/alice/f"), content=data[-5:], params={"offset": kept})
        while rest.status_code == 409:  # the one who is gone has not let go yet
            await asyncio.sleep(0.01)
            rest = await client.put(fs("/alice/f"), content=data[-5:], params={"offset": kept})
        assert rest.json()["complete"] is True
        assert (await client.get(fs("/alice/f"))).content == data


async def test_a_wrong_offset_says_what_is_here_and_changes_nothing(site: ApiSite, root: Path) -> None:
    async with site.client() as client:
        await client.put(fs("/alice/f"), content=b"0123", params={"size": 10})
        answer = await client.put(fs("/alice/f"), content=b"x", params={"size": 10, "offset": 5})
        assert (answer.status_code, answer.json()["code"]) == (409, "ConflictFileError")
        assert "Go on from offset 4" in answer.json()["hint"]
        assert (await client.head(fs("/alice/f"))).headers["X-Pai-Kept"] == "4"


async def test_damaged_bytes_never_get_the_name(site: ApiSite, root: Path) -> None:
    async with site.client() as client:
        await client.put(fs("/alice/f"), content=b"old")
        answer = await client.put(fs("/alice/f"), content=b"new", params={"sha256": digest(b"other")})
        assert (answer.status_code, "SHA-256" in answer.json()["message"]) == (409, True)
        assert (await client.get(fs("/alice/f"))).content == b"old"
        assert (await client.head(fs("/alice/f"))).headers["X-Pai-Kept"] == "0"


async def test_an_upload_that_may_not_replace_leaves_what_is_there(site: ApiSite) -> None:
    async with site.client() as client:
        only_new = {"replace": "false"}
        assert (await client.put(fs("/alice/d/f"), content=b"first", params=only_new)).json()["complete"] is True
        for path in ("/alice/d/f", "/alice/d"):
            refused = await client.put(fs(path), content=b"second", params=only_new)
            assert (refused.status_code, refused.json()["code"]) == (409, "ConflictFileError")
            assert refused.json()["message"] == f"{path} exists already."
        begun = await client.put(fs("/alice/d/g"), content=b"01", params={**only_new, "size": 4})
        assert begun.json() == {"path": "/alice/d/g", "kept": 2, "complete": False}
        ended = await client.put(fs("/alice/d/g"), content=b"23", params={**only_new, "size": 4, "offset": 2})
        assert ended.json()["complete"] is True
        assert (await client.get(fs("/alice/d/f"))).content == b"first"
        assert (await client.put(fs("/alice/d/f"), content=b"third")).status_code == 200
        assert (await client.get(fs("/alice/d/f"))).content == b"third"


async def test_more_bytes_than_announced_are_refused(site: ApiSite, root: Path) -> None:
    async with site.client() as client:
        answer = await client.put(fs("/alice/f"), content=b"12345", params={"size": 4})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    assert not (root / "alice" / "f").exists()


async def test_a_body_of_unknown_length_ends_where_it_ends(site: ApiSite) -> None:
    data = os.urandom(2 * MIB)

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks(data):
            yield chunk

    async with site.client() as client:
        assert (await client.put(fs("/alice/f"), content=body())).json()["complete"] is True
        assert (await client.get(fs("/alice/f"))).content == data


async def test_two_uploads_of_one_file_at_once_do_not_mix(site: ApiSite) -> None:
    async with site.client() as client:
        answers = await asyncio.gather(
            *(client.put(fs("/alice/f"), content=bytes([number]) * 4 * MIB) for number in range(4))
        )
        assert {answer.status_code for answer in answers} <= {200, 409}
        data = (await client.get(fs("/alice/f"))).content
    assert len(set(data)) == 1
    assert len(data) == 4 * MIB


async def test_directories_are_made_listed_copied_and_removed(site: ApiSite) -> None:
    async with site.client() as client:
        assert (await client.post(fs("/alice/d/e"), json={})).status_code == 204
        await client.put(fs("/alice/d/f"), content=b"123")
        assert (await client.post(fs("/alice/copy"), json={"source": "/alice/d"})).status_code == 204
        listed = (await client.get(fs("/alice/copy"))).json()
        assert (listed["path"], listed["truncated"]) == ("/alice/copy", False)
        assert [(e["name"], e["kind"], e["size"]) for e in listed["data"]] == [("e", "directory", 0), ("f", "file", 3)]
        page = (await client.get(fs("/alice/copy"), params={"limit": 1})).json()
        assert ([e["name"] for e in page["data"]], page["truncated"]) == (["e"], True)
        page = (await client.get(fs("/alice/copy"), params={"limit": 1, "after": "e"})).json()
        assert ([e["name"] for e in page["data"]], page["truncated"]) == (["f"], False)
        full = await client.delete(fs("/alice/copy"))
        assert (full.status_code, full.json()["code"]) == (409, "ConflictFileError")
        assert (await client.delete(fs("/alice/copy"), params={"recursive": "true"})).status_code == 204
        gone = await client.get(fs("/alice/copy"))
        assert (gone.status_code, gone.json()["code"]) == (404, "NoFileError")


async def test_a_directory_is_not_copied_into_itself(site: ApiSite) -> None:
    async with site.client() as client:
        await client.put(fs("/alice/d/f"), content=b"123")
        for target in ("/alice/d", "/alice/d/e"):
            answer = await client.post(fs(target), json={"source": "/alice/d"})
            assert (answer.status_code, "into itself" in answer.json()["message"]) == (400, True)


async def test_users_reach_their_own_and_what_is_shared_and_cannot_tell_what_else_is_there(
    site: ApiSite, root: Path
) -> None:
    async with site.client() as alice, site.client(BOB) as bob, site.client(ROOT) as admin:
        await alice.put(fs("/alice/f"), content=b"1")
        await alice.put(fs("/team/f"), content=b"2")
        assert (await bob.get(fs("/team/f"))).content == b"2"
        answers = [await bob.get(fs(path)) for path in ("/alice/f", "/alice/nothing", "/alice", "/Output", "/other")]
        assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(403, "ForbiddenUserError")}
        assert len({answer.json()["message"] for answer in answers}) == 1
        for answer in (
            await bob.put(fs("/alice/f"), content=b"9"),
            await bob.delete(fs("/alice/f")),
            await bob.post(fs("/bob/f"), json={"source": "/alice/f"}),
            await bob.post(fs("/alice/d"), json={}),
            await bob.delete(fs("/team"), params={"recursive": "true"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "ForbiddenUserError")
        assert [e["name"] for e in (await bob.get(fs("/"))).json()["data"]] == ["team"]
        assert [e["name"] for e in (await alice.get(fs("/"))).json()["data"]] == ["alice", "team"]
        assert (await admin.get(fs("/alice/f"))).content == b"1"
    assert (root / "alice" / "f").read_bytes() == b"1"


async def test_a_users_directory_is_one_before_anything_is_put_there(site: ApiSite, root: Path) -> None:
    async with site.client() as client:
        found = await client.head(fs("/alice"))
        assert (found.status_code, found.headers["X-Pai-Kind"], found.headers["X-Pai-Kept"]) == (200, "directory", "0")
        listed = await client.get(fs("/alice"))
        assert (listed.status_code, listed.json()["data"], listed.headers["X-Pai-Kind"]) == (200, [], "directory")
        assert found.headers["Content-Type"] == listed.headers["Content-Type"] == "application/json"
        assert (await client.head(fs("/alice/d"))).status_code == 404
        assert untouched(root)


@pytest.mark.parametrize(
    ("token", "place"),
    [(ALICE, "alice"), *((ROOT, place) for place in ("root", "team", "alice", "Output", "Output/job"))],
)
async def test_what_belongs_to_users_or_jobs_never_becomes_a_file(
    site: ApiSite, root: Path, token: str, place: str
) -> None:
    async with site.client(token) as client:
        refused = await client.put(fs(f"/{place}"), content=b"1")
        assert (refused.status_code, refused.json()["code"]) == (409, "ConflictFileError")
        assert untouched(root)
        await client.put(fs(f"/{place.partition('/')[0]}/elsewhere/f"), content=b"2")
        refused = await client.post(fs(f"/{place}"), json={"source": f"/{place.partition('/')[0]}/elsewhere/f"})
        assert (refused.status_code, "only be a directory" in refused.json()["message"]) == (409, True)
        assert not (root / place).is_file()
        assert (await client.put(fs(f"/{place}/d/f"), content=b"3")).status_code == 200


async def test_a_job_says_where_its_output_is(tmp_path: Path, root: Path) -> None:
    reach = TaskReach(str(root))
    async with running_api(tmp_path, task_reach=reach) as site, site.client() as client:
        submitted = await client.post("/api/v2/jobs", content=scm_document(), params={"name": "train"})
        detail = (await client.get("/api/v2/jobs/train", headers={"Accept": MEDIA_TYPE})).json()
        path = f"/Output/alice/{detail['uid']}"
        assert detail["outputPath"] == path, submitted.text
        (root / path[1:]).mkdir(parents=True)
        (root / path[1:] / "model").write_text("weights")
        assert (await client.get(fs(f"{detail['outputPath']}/model"))).text == "weights"


async def test_jobs_of_one_name_have_outputs_of_their_own(site: ApiSite, root: Path) -> None:
    places = {}
    async with site.client() as alice, site.client(BOB) as bob, site.client(ROOT) as admin:
        for client, user in ((bob, "bob"), (alice, "alice")):  # whoever comes first has no more than the other
            answer = await client.post("/api/v2/jobs", content=scm_document(), params={"name": "train"})
            assert answer.status_code == 202, answer.text
            job = await site.store.jobs.find(f"{user}~train")
            places[user] = directories(job, str(root)).output_dir
            place = root / "Output" / user / job.uid
            assert places[user] == str(place)
            place.mkdir(parents=True)
            (place / "model").write_text(user)
        for client, user, other in ((alice, "alice", "bob"), (bob, "bob", "alice")):
            assert (await client.get(fs("/Output/train/model"))).text == user
            assert (await client.put(fs("/Output/train/mine"), content=b"1")).status_code == 200
            real, theirs = (place.removeprefix(str(root)) for place in (places[user], places[other]))
            assert (await client.get(fs(f"{real}/model"))).text == user
            for verb, path in (("GET", f"{theirs}/model"), ("PUT", f"{theirs}/model"), ("DELETE", f"{theirs}/mine")):
                assert (await client.request(verb, fs(path), content=b"x")).status_code == 403
            for path in (f"/Output/{other}", f"/Output/{other}/train/model", "/Output/other/model", "/Output"):
                assert (await client.get(fs(path))).status_code == 403
            assert (await admin.get(fs(f"{real}/model"))).text == user
    assert {path.name for path in (root / "Output" / "alice").glob("*/*")} == {"model", "mine"}


@pytest.mark.parametrize(
    ("quotas", "place", "fit"),
    [
        ({"quota_bytes": 4 * MIB}, "/alice/{}", 4),
        ({"quota_bytes": 4 * MIB}, "/Output/train/{}", 4),
        ({"quota_bytes": 4 * MIB}, "/team/{}", 4),
        ({"quota_bytes": 4 * MIB, "shared_quota_bytes": 2 * MIB}, "/team/{}", 2),
    ],
)
@pytest.mark.parametrize("sized", [True, False])
async def test_the_quota_holds_however_many_uploads_are_under_way(
    tmp_path: Path, quotas: dict[str, Any], place: str, fit: int, sized: bool
) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), shared=("team",), **quotas)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        await client.post("/api/v2/jobs", content=scm_document(), params={"name": "train"})

        async def body() -> AsyncIterator[bytes]:
            for chunk in chunks(bytes(MIB), 1 << 16):
                yield chunk
                await asyncio.sleep(0)

        async def send(number: int) -> int:
            size = {"size": MIB} if sized else {}
            try:
                return (await client.put(fs(place.format(number)), content=body(), params=size)).status_code
            except httpx.TransportError:  # refused and closed before all of it was sent
                return 403

        codes = await asyncio.gather(*(send(number) for number in range(12)))
        assert codes.count(200) <= fit
        assert set(codes) <= {200, 403}
        assert sum(len(content) for _, content in contents_below(tmp_path / "fs")) <= fit * MIB
        if sized:
            assert codes.count(200) == fit


async def test_a_users_outputs_and_own_directory_are_under_one_quota(tmp_path: Path) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client, site.client(BOB) as bob:
        for each in (client, bob):
            await each.post("/api/v2/jobs", content=scm_document(), params={"name": "train"})
        assert (await client.put(fs("/Output/train/a"), content=bytes(2 * MIB))).status_code == 200
        refused = await client.put(fs("/alice/b"), content=bytes(2 * MIB))
        assert (refused.status_code, refused.json()["code"]) == (403, "NoEnoughQuotaError")
        assert (await bob.put(fs("/bob/b"), content=bytes(2 * MIB))).status_code == 200
        copied = await client.post(fs("/alice/c"), json={"source": "/Output/train/a"})
        assert copied.status_code == 403
        assert (await client.delete(fs("/Output/train/a"))).status_code == 204
        await client.delete(fs("/alice/b"))
        assert (await client.put(fs("/alice/b"), content=bytes(2 * MIB))).status_code == 200


async def test_without_a_token_nothing_is_taken(site: ApiSite, root: Path) -> None:
    async with site.client(None) as client:
        for answer in (await client.put(fs("/alice/f"), content=b"1"), await client.get(fs("/alice/f"))):
            assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")
    assert untouched(root)


BAD_PATHS = ["/alice/../bob/f", "/alice/%2e%2e/bob/f", "/alice/..%2fbob/f", "/alice/./f", "//etc/passwd"]
BAD_PATHS += ["/../../etc/passwd", "/%2e%2e", "/..", "/alice/a%00b", "/alice/a%0ab", "/alice/%ff", "/alice/a%5cb"]
BAD_PATHS += ["/alice/%ed%a0%80"]
BAD_PATHS += [
    f"/alice/{partial_name('f')}",
    f"/alice/{'x' * 300}",
    "/alice" + "/d" * 100,
    "/alice/" + "%F0%9F%98%80" * 70,
]


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_no_path_leads_out_and_a_bad_one_is_the_callers_mistake(site: ApiSite, root: Path, path: str) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    for verb in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        body = "{}" if verb == "POST" else ""
        request = f"{verb} /api/v2/fs{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ALICE}\r\n"
        request += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request.encode())
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        assert answer.split(b" ", 2)[1] in (b"400", b"403", b"404"), answer
    assert untouched(root)


async def test_a_link_that_a_task_left_leads_nobody_out(site: ApiSite, root: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter22")
    (root / "alice").mkdir(parents=True)
    (root / "alice" / "link").symlink_to(tmp_path / "token")
    (root / "alice" / "dir").symlink_to(tmp_path)
    async with site.client() as client:
        for path in ("/alice/link", "/alice/dir/token", "/alice/dir"):
            answer = await client.get(fs(path))
            assert (answer.status_code, "hunter22" in answer.text) == (409, False)
        assert (await client.get(fs("/alice"))).json()["data"] == []
        assert (await client.delete(fs("/alice/link"))).status_code == 204
    assert (tmp_path / "token").read_text() == "hunter22"


async def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), max_file_bytes=MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        over = await client.put(fs("/alice/f"), content=b"x" * (MIB + 1))
        assert (over.status_code, over.json()["code"]) == (413, "TooLargeError")
        announced = await client.put(fs("/alice/f"), content=b"x", params={"size": MIB + 1})
        assert announced.status_code == 413
        assert (await client.put(fs("/alice/f"), content=b"x" * MIB)).status_code == 200


async def test_a_body_without_a_length_is_cut_at_the_limit(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    room = FileRoom(LocalFiles(tmp_path / "fs"), max_file_bytes=MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        try:
            answer = await client.put(fs("/alice/f"), content=endless())
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # the connection ended while the client was still sending: that is allowed (RFC 9112 §9.3)
        assert (await client.head(fs("/alice/f"))).status_code == 404


async def test_a_user_may_fill_their_own_directory_up_to_the_quota(tmp_path: Path) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), shared=("team",), quota_bytes=3 * MIB)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        assert (await client.put(fs("/alice/a"), content=b"x" * 2 * MIB)).status_code == 200
        for answer in (
            await client.put(fs("/alice/b"), content=b"x" * 2 * MIB),
            await client.put(fs("/alice/b"), content=b"x", params={"size": 2 * MIB}),
            await client.post(fs("/alice/b"), json={"source": "/alice/a"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "NoEnoughQuotaError")
        assert (await client.put(fs("/team/b"), content=b"x" * 2 * MIB)).status_code == 200
        assert (await client.put(fs("/alice/c"), content=b"x" * MIB)).status_code == 200
        assert (await client.delete(fs("/alice/a"))).status_code == 204
        assert (await client.put(fs("/alice/b"), content=b"x" * 2 * MIB)).status_code == 200


async def test_a_storage_that_hangs_is_away_and_holds_up_nothing_else(tmp_path: Path) -> None:
    import threading

    free = threading.Event()

    class Hanging(LocalFiles):
        def kept(self, path: tuple[str, ...]) -> int:
            free.wait(60)
            return 0

    room = FileRoom(Hanging(tmp_path / "fs"))
    patience = pytest.MonkeyPatch()
    patience.setattr("pai_backend.storage.room.TIMEOUT_S", 0.2)
    patience.setattr(FileRoom.do, "__defaults__", (0.2,))
    try:
        async with running_api(tmp_path, files=room) as site, site.client() as client:
            answer = await client.get(fs("/alice/f"))
            assert (answer.status_code, answer.json()["code"]) == (503, "UnavailableError")
            assert (await client.get("/api/v2/info")).status_code == 200
            free.set()
    finally:
        free.set()
        patience.undo()


async def test_a_large_upload_does_not_stay_in_memory(site: ApiSite) -> None:
    import psutil

    process, block = psutil.Process(), os.urandom(MIB)

    async def body() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield block

    async with site.client() as client:
        await client.put(fs("/alice/warm"), content=block)
        before = process.memory_info().rss
        assert (await client.put(fs("/alice/big"), content=body())).json()["complete"] is True
        grown = process.memory_info().rss - before
    assert grown < 60 * MIB


V2 = """
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{type: dockerimage, name: image, uri: example/image}}
taskRoles:
  r: {{instances: 1, dockerImage: image, resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}, commands: ["true"]}}
extras:
  storages: [{{name: {storage}}}]
"""


async def test_a_storage_that_is_not_granted_is_refused_at_submit(tmp_path: Path) -> None:
    mounts = (TeamMount("datasets", "/srv/datasets"), TeamMount("models", "hdfs://nn/models", users=("bob",)))
    room = FileRoom(LocalFiles(tmp_path / "fs"), mounts=mounts)
    async with running_api(tmp_path, files=room) as site, site.client() as client:
        for storage, code in (("datasets", 202), ("models", 404), ("nothing", 404)):
            document = V2.format(name=f"j-{storage}", storage=storage).encode()
            answer = await client.post("/api/v2/jobs", content=document, params={"filename": "job.yaml"})
            assert answer.status_code == code, answer.text
        assert answer.json()["code"] == "NoStorageError"
        assert answer.json()["message"] == "There is no storage nothing for alice."
        assert answer.json()["hint"] == "You may use: datasets."
        assert answer.json()["errors"][0]["line"] == 10
        checked = await client.post("/api/v2/validate", content=document, params={"filename": "job.yaml"})
        assert (checked.json()["valid"], checked.json()["errors"][0]["path"]) == (False, "$.extras.storages")
