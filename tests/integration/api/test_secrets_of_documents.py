"""Documents with secrets over the API: who reads them, what is refused, what is told back."""

from __future__ import annotations

import pytest

from pai_backend.model.ids import JobUid
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document

SECRET = "planted-Secret-0123456789"
PASSWORD = "registry-Password"
MASKED = b'"******"'


def document(secret: str = SECRET, name: str = "hush") -> bytes:
    return f"""\
# a comment
protocolVersion: 2
name: {name}
type: job
secrets: {{token: "{secret}", "pin": 12345}}
prerequisites:
  - {{name: i, type: dockerimage, uri: u, auth: {{username: a, password: {PASSWORD}}}}}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}
    commands: ["echo <% $secrets.token %>"]
""".encode()


@pytest.mark.asyncio
async def test_values_are_kept_for_the_task_and_shown_to_nobody(api: ApiSite) -> None:
    async with api.client(ALICE) as client:
        submitted = await client.post("/api/v2/jobs?filename=job.yaml", content=document())
        assert submitted.status_code == 202, submitted.text
        answers = [submitted, await client.post("/api/v2/validate?filename=job.yaml", content=document())]
        answers += [await client.get(f"/api/v2/jobs/alice~hush{path}") for path in ("", "/events", "/ssh")]
        answers.append(await client.get("/metrics"))

    assert [answer.status_code for answer in answers[1:]] == [200] * 5
    assert not any(value in answer.text for answer in answers for value in (SECRET, PASSWORD))
    (row,) = await api.store.jobs.dirty()
    kept = await api.store.jobs.secrets(JobUid(row.uid))
    assert {SECRET, PASSWORD} <= set(kept.values()), "a password that stands outright is a secret as well"
    assert set(row.spec.secret_names) == set(kept)
    assert SECRET not in repr(row)


@pytest.mark.asyncio
async def test_the_owner_reads_the_bytes_an_admin_the_rest_and_others_nothing(api: ApiSite) -> None:
    async with api.client(ALICE) as client:
        await client.post("/api/v2/jobs?filename=job.yaml", content=document())
    answers = {}
    for token in (ALICE, ROOT, BOB):
        async with api.client(token) as client:
            answers[token] = await client.get("/api/v2/jobs/alice~hush/config")

    assert answers[ALICE].content == document()
    assert answers[BOB].status_code == 404
    masked = answers[ROOT].text
    assert [token for token, answer in answers.items() if "X-Pai-Masked" in answer.headers] == [ROOT]
    assert answers[ROOT].headers["Content-Type"] == answers[ALICE].headers["Content-Type"]
    assert not any(value in masked for value in (SECRET, PASSWORD, "12345"))
    assert masked.startswith("# a comment\nprotocolVersion: 2\nname: hush\ntype: job\n")
    assert 'commands: ["echo <% $secrets.token %>"]' in masked


@pytest.mark.asyncio
async def test_more_secrets_than_can_be_kept_out_of_logs_are_refused(api: ApiSite) -> None:
    async with api.client(ALICE) as client:
        for path in ("/api/v2/jobs", "/api/v2/validate"):
            answer = await client.post(f"{path}?filename=job.yaml", content=document("s" * 65_600))
            (fault,) = answer.json()["errors"]
            assert (fault["path"], fault["line"]) == ("$.secrets", 5)
            assert "at most 65536" in fault["message"]
            assert "sss" not in answer.text
        assert await api.store.jobs.counts() == {}


def masked(text: bytes) -> bytes:
    return text.replace(f'"{SECRET}"'.encode(), MASKED).replace(b"12345", MASKED).replace(PASSWORD.encode(), MASKED)


@pytest.mark.asyncio
async def test_a_masked_document_is_submitted_with_the_secrets_of_its_job_and_of_nobody_elses(api: ApiSite) -> None:
    async with api.client(ALICE) as alice, api.client(BOB) as bob:
        await alice.post("/api/v2/jobs?filename=job.yaml", content=document())
        seen = await alice.get("/api/v2/jobs/hush/config?masked=true")
        assert seen.content == masked(document())
        again = seen.content.replace(b"name: hush", b"name: again")
        alone = await alice.post("/api/v2/jobs", content=again)
        assert alone.status_code == 400
        assert {fault["path"] for fault in alone.json()["errors"]} == {
            "$.secrets.token",
            "$.secrets.pin",
            "$.secrets.auth_0_password",
        }
        checked = await alice.post("/api/v2/validate?secretsOf=hush", content=again)
        assert checked.json()["valid"], checked.text
        made = await alice.post("/api/v2/jobs?secretsOf=hush", content=again)
        assert made.status_code == 202, made.text
        first, second = [(await api.store.jobs.find(name, "alice")).uid for name in ("hush", "again")]
        assert await api.store.jobs.secrets(second) == await api.store.jobs.secrets(first)
        third = await alice.post("/api/v2/jobs?secretsOf=again&name=third", content=again)
        assert third.status_code == 202, "the clone of a clone has them, too"
        theirs = await bob.post("/api/v2/jobs?secretsOf=alice~hush", content=again)
        assert (theirs.status_code, theirs.json()["code"]) == (404, "NoJobError")
        assert SECRET not in theirs.text
    async with api.client(ROOT) as root:
        admins = await root.post("/api/v2/jobs?secretsOf=alice~hush", content=again)
        assert admins.status_code == 404, "an administrator may see the job, and not its secrets"


@pytest.mark.asyncio
async def test_masked_variables_of_v1_are_those_of_the_job(api: ApiSite) -> None:
    async with api.client(ALICE) as alice:
        await alice.post("/api/v2/jobs", content=scm_document("one", jobEnvs={"API_TOKEN": SECRET, "MODE": "fast"}))
        text = (await alice.get("/api/v2/jobs/one/config?masked=true")).content
        assert SECRET.encode() not in text
        refused = await alice.post("/api/v2/jobs?name=two", content=text)
        assert refused.json()["errors"][0]["path"] == "$.jobEnvs.API_TOKEN"
        made = await alice.post("/api/v2/jobs?name=two&secretsOf=one", content=text)
        assert made.status_code == 202, made.text
        assert (await api.store.jobs.find("two", "alice")).spec.env == {"API_TOKEN": SECRET, "MODE": "fast"}
