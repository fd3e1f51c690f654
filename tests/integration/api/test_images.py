"""Images of the machine: who learns of which name, who removes one, and what is never removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_backend.api.services.images import offered_images
from pai_backend.api.services.templates import SHIPPED
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_key_commands import Pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document
from tests.support.played_images import PlayedImages, played_image

PRIVATE, PUBLIC, OFFERED = "registry.lab:5000/alice/private:1", "docker.io/library/python:3.12", "docker.io/lab/base:1"


@pytest.fixture
def images(api: ApiSite) -> PlayedImages:
    """Alice's alone, one that she and bob ran by different names, one of the site, one of the machine's people."""
    both = played_image(2, PUBLIC, "registry.lab:5000/alice/copy:1")
    both = replace(both, users={**both.users, PUBLIC: frozenset({"bob"})})
    hand = played_image(4, "localhost/by-hand:1", users={}, is_fetched=False, used_at=None)
    api.engine.images = PlayedImages([played_image(1, PRIVATE), both, played_image(3, OFFERED, users={}), hand])
    object.__setattr__(api.ctx.site, "images", ("lab/base:1",))
    return api.engine.images


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


async def seen(api: ApiSite, token: str) -> list[list[str]]:
    """The names that a user is shown, an image each."""
    async with api.client(token) as client:
        answer = await client.get("/api/v2/images")
    assert answer.status_code == 200, answer.text
    return sorted(each["names"] for each in answer.json()["data"])


@pytest.mark.asyncio
async def test_a_user_learns_the_names_they_ran_and_those_of_the_site(api: ApiSite, images: PlayedImages) -> None:
    assert await seen(api, ALICE) == [[OFFERED], ["registry.lab:5000/alice/copy:1"], [PRIVATE]]
    assert await seen(api, BOB) == [[OFFERED], [PUBLIC]]
    assert len(await seen(api, ROOT)) == len(images.images)
    async with api.client(BOB) as bob, api.client(ROOT) as root:
        answer = (await bob.get("/api/v2/images")).text
        assert "alice" not in answer
        assert "by-hand" not in answer
        assert (await bob.get("/api/v2/images")).json()["totalBytes"] is None
        assert (await root.get("/api/v2/images")).json()["totalBytes"] == 40_000_000


@pytest.mark.asyncio
async def test_it_says_why_each_image_stays(api: ApiSite, images: PlayedImages) -> None:
    images.images[1] = replace(images.images[1], tasks=2)
    async with api.client() as client:
        document = scm_document("waits", image=PRIVATE)
        assert (await client.post("/api/v1/jobs", content=document)).status_code in (201, 202)
    async with api.client(ROOT) as root:
        data = (await root.get("/api/v2/images")).json()["data"]
    kept = {each["names"][0]: each["kept"] for each in data}
    assert kept[PRIVATE] == ["waiting"]
    assert kept[PUBLIC] == ["in-use"]
    assert kept[OFFERED] == ["offered"]
    assert kept["localhost/by-hand:1"] == ["not-fetched"]


@pytest.mark.asyncio
async def test_administrators_remove_an_image_and_the_audit_has_it(
    pai: Pai, api: ApiSite, images: PlayedImages
) -> None:
    code, _, err = await pai("images", "remove", PUBLIC)
    assert code != 0
    assert "administrators" in err
    assert len(images.images) == 4
    code, out, _ = await pai("images", "remove", "python:3.12", token=ROOT)
    assert (code, out) == (0, "Removed python:3.12.\n")
    code, _, _ = await pai("images", "remove", f"{1:064x}", token=ROOT)
    assert code == 0
    assert [each.names for each in images.images] == [(OFFERED,), ("localhost/by-hand:1",)]
    found = await api.store.audit.page(AuditFilter(types=("image.removed",), limit=10))
    told = sorted((each.subject, each.by, each.result) for each in found)
    assert told == [
        (f"{1:064x}", "root", "done"),
        (PUBLIC, "alice", "ForbiddenUserError"),
        ("python:3.12", "root", "done"),
    ]
    code, _, err = await pai("images", "remove", "nothing:1", token=ROOT)
    assert code == 2
    assert "There is no image 'nothing:1' here." in err


@pytest.mark.asyncio
async def test_what_is_in_use_is_not_removed(pai: Pai, api: ApiSite, images: PlayedImages) -> None:
    images.images[1] = replace(images.images[1], tasks=1)
    images.images[2] = replace(images.images[2], is_runtime=True)
    images.busy.add(images.images[3].identity)  # a task began after the list was read
    async with api.client() as client:
        await client.post("/api/v1/jobs", content=scm_document("waits", image=PRIVATE))
    before = list(images.images)
    for name, why in (
        (PRIVATE, "a job that has not ended names it"),
        (PUBLIC, "a task or a container uses it"),
        (OFFERED, "every task needs"),
        ("localhost/by-hand:1", "it is in use"),
    ):
        code, _, err = await pai("images", "remove", name, token=ROOT)
        assert code == 2
        assert why in err, name
    assert images.images == before


@pytest.mark.asyncio
async def test_pai_images_is_a_table(pai: Pai, images: PlayedImages) -> None:
    code, out, _ = await pai("images", token=ROOT)
    assert code == 0
    head, *rows, total = out.splitlines()
    assert head.split()[:2] == ["IMAGE", "SIZE"]
    assert any(row.startswith(PRIVATE) and "10 MB" in row for row in rows)
    assert any("put here by hand" in row for row in rows)
    assert total == "Together: 40 MB; containers.images.most_bytes sets no limit."
    images.images.clear()
    assert (await pai("images"))[1] == "There is no image that you ran a task with.\n"
    assert (await pai("images", "remove"))[0] == 2


@pytest.mark.asyncio
async def test_an_engine_without_images_says_so(pai: Pai, api: ApiSite) -> None:
    code, _, err = await pai("images", token=ROOT)
    assert code == 2
    assert "This engine keeps no images of its own." in err


def test_images_of_templates_are_offered_and_a_broken_template_names_none(tmp_path: object) -> None:
    assert "docker.io/lab/base:1" in offered_images(["lab/base:1"], None)
    shipped = offered_images([], None)
    assert shipped
    assert all("/" in each and not each.startswith(str(SHIPPED)) for each in shipped)
