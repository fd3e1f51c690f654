"""Templates and drafts over HTTP: whose they are, which one a name means, and that no secret is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from pai_backend.api.services.templates import MAX_BYTES
from pai_backend.protocol import read_document
from pai_backend.store.kept_documents import MOST, DocumentKind
from tests.support.api_site import BOB, ApiSite, running_api
from tests.support.documents import scm_document

SECRET = b"""protocolVersion: 2
name: mine
type: job
secrets:
  token: hunter22  # of the tracker
taskRoles: {}
"""


async def names(client: httpx.AsyncClient, kind: str = "templates") -> list[str]:
    return [each["name"] for each in (await client.get(f"/api/v2/{kind}")).json()["data"]]


@pytest.mark.asyncio
async def test_every_shipped_template_is_valid_and_introduced_in_both_languages(api: ApiSite) -> None:
    async with api.client() as alice:
        listed = (await alice.get("/api/v2/templates")).json()["data"]
        assert {"hello-gpu", "jupyter", "pytorch-ddp", "tensorflow-distributed", "sweep"} < {t["name"] for t in listed}
        for each in listed:
            assert each["origin"] == "shipped"
            assert all(each["words"][language][word] for language in ("en", "zh_CN") for word in ("title", "about"))
            answer = await alice.get(f"/api/v2/templates/{each['name']}")
            assert not read_document(answer.content, each["filename"]).warnings


@pytest.mark.asyncio
async def test_own_templates_hide_others_of_their_name_and_are_nobody_elses(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        document = scm_document("mine")
        for name in ("sweep", "mine"):
            put = await alice.put(f"/api/v2/templates/{name}", params={"filename": "a.json"}, content=document)
            assert put.status_code == 204
        assert (await alice.get("/api/v2/templates/sweep")).content == document
        listed = {each["name"]: each for each in (await alice.get("/api/v2/templates")).json()["data"]}
        assert (listed["sweep"]["origin"], listed["sweep"]["filename"]) == ("own", "a.json")
        assert "mine" not in await names(bob)
        assert (await bob.get("/api/v2/templates/mine")).status_code == 404
        assert (await bob.delete("/api/v2/templates/mine")).status_code == 404
        assert (await bob.get("/api/v2/templates/sweep")).content != document
        assert (await alice.delete("/api/v2/templates/sweep")).status_code == 204
        assert b"rates" in (await alice.get("/api/v2/templates/sweep")).content
        assert (await alice.delete("/api/v2/templates/sweep")).status_code == 404, "a shipped one stays"


@pytest.mark.asyncio
async def test_no_secret_is_kept_and_a_text_that_may_hide_one_is_refused(api: ApiSite) -> None:
    async with api.client() as alice:
        await alice.put("/api/v2/drafts/d1", params={"filename": "a.yaml"}, content=SECRET)
        kept = (await alice.get("/api/v2/drafts/d1")).content
        assert kept == SECRET.replace(b"hunter22", b'"******"')
        half = SECRET + b"  - {"
        refused = await alice.put("/api/v2/drafts/d1", content=half)
        assert (refused.status_code, refused.json()["code"]) == (400, "InvalidParametersError")
        assert (await alice.get("/api/v2/drafts/d1")).content == kept, "the last good one stays"
        plain = b'{"jobName": "half'
        assert (await alice.put("/api/v2/drafts/d2", content=plain)).status_code == 204
        assert (await alice.get("/api/v2/drafts/d2")).content == plain
        assert await names(alice, "drafts") == ["d2", "d1"], "the newest first"
        assert "d1" not in await names(alice)


@pytest.mark.asyncio
async def test_what_is_kept_is_bounded(api: ApiSite) -> None:
    async with api.client() as alice:
        large = await alice.put("/api/v2/templates/large", content=b" " * (MAX_BYTES + 1))
        assert large.status_code == 413
        for name in (".hidden", "a" * 64, "a%20b"):
            assert (await alice.put(f"/api/v2/templates/{name}", content=b"{}")).status_code == 400
        for number in range(MOST):
            await api.store.kept_documents.put("alice", DocumentKind.TEMPLATE, f"t{number}", b"{}", "", api.ctx.clock())
        more = await alice.put("/api/v2/templates/one-more", content=b"{}")
        assert more.status_code == 400
        assert (await alice.put("/api/v2/templates/t0", content=b"{}")).status_code == 204, "but changed"


@pytest.mark.asyncio
async def test_the_sites_directory_is_read_at_each_look(tmp_path: Path) -> None:
    """With what no directory should hold: pipes of hidden names, texts of no encoding, links to nowhere."""
    directory = tmp_path / "templates"
    directory.mkdir()
    (directory / "train.yaml").write_text("# Our training.\n# With V100.\nprotocolVersion: 2\n")
    (directory / "sweep.json").write_bytes(scm_document("ours"))
    (directory / "words.json").write_text(json.dumps({"sweep": {"zh_CN": {"title": "我们的", "about": ""}}}))
    (directory / "latin.yaml").write_bytes(b"name: \xe9")
    (directory / "nowhere.yaml").symlink_to(tmp_path / "none")
    (directory / ".secret.yaml").write_text("name: x")
    (directory / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    async with running_api(tmp_path) as api:
        object.__setattr__(api.ctx, "site", replace(api.ctx.site, templates=directory))
        async with api.client() as alice:
            listed = {each["name"]: each for each in (await alice.get("/api/v2/templates")).json()["data"]}
            assert [name for name, each in listed.items() if each["origin"] == "site"] == ["sweep", "train"]
            assert listed["train"]["words"] == {"en": {"title": "train", "about": "Our training. With V100."}}
            assert listed["sweep"]["words"]["zh_CN"]["title"] == "我们的"
            assert (await alice.get("/api/v2/templates/sweep")).content == scm_document("ours")
            for name in ("..%2Fwords", "words", ".secret", "latin", "nowhere", "large"):
                assert (await alice.get(f"/api/v2/templates/{name}")).status_code == 404
            (directory / "train.yaml").unlink()
            assert "train" not in await names(alice)
