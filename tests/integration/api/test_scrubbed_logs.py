"""Secrets in what tasks print: covered for everyone, however a log is read, at its own offsets."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.access.keys import job_key_slot
from pai_backend.access.secrecy import JobSecrets
from pai_backend.model.ids import slot_of
from pai_backend.model.job import Job
from pai_backend.model.spec import PortSpec
from pai_backend.store.base import peer_key_slot
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.api_site import ALICE, ROOT, ApiSite

SECRET = "correct horse battery staple"
STARS = "*" * len(SECRET)
JOB_KEY = "the private key of the job"
PEER_KEY = "the private key of its tasks"
LINE = f"login with {SECRET} done\n".encode()
COVERED = f"login with {STARS} done\n".encode()


async def running(api: ApiSite, text: bytes, *, ended: bool = False, oldest: int = 0) -> Job:
    """A job of alice with a secret, whose first task has printed this."""
    role = make_role(ports=[PortSpec(label="ssh")])
    spec = make_spec(roles=[role]).model_copy(update={"secret_names": ("key",)})
    job = make_job(spec.name, uid=make_uid(1), user="alice", spec=spec)
    job = await api.store.jobs.submit(job, b"{}", "", "", [], secrets={"key": SECRET, "pin": [12345], "on": True})
    uid = job.tasks[0].uid
    await api.engine.write(uid, text, end=ended)
    api.engine.tasks[uid].oldest = oldest
    return job


async def read(api: ApiSite, token: str = ALICE, **query: int | str) -> tuple[int, bytes]:
    async with api.client(token) as client:
        answer = await client.get("/api/v2/jobs/alice~job/logs", params=query)
    assert answer.status_code == 200, answer.text
    assert int(answer.headers["X-Pai-Next"]) == int(answer.headers["X-Pai-Offset"]) + len(answer.content)
    return int(answer.headers["X-Pai-Offset"]), answer.content


async def followed(api: ApiSite, offset: int = 0) -> list[bytes]:
    """Messages of the stream, until the server closes it."""
    request = HTTPRequest(
        f"{api.websocket_url}/api/v2/jobs/alice~job/logs/stream?offset={offset}",
        headers={"Authorization": f"Bearer {ALICE}"},
    )
    socket = await websocket_connect(request)
    found: list[bytes] = []
    while (message := await asyncio.wait_for(socket.read_message(), 60)) is not None:
        assert isinstance(message, bytes)
        found.append(message)
    return found


@pytest.mark.asyncio
@pytest.mark.parametrize("token", [ALICE, ROOT])
async def test_a_secret_is_covered_for_owner_and_admin_alike(api: ApiSite, token: str) -> None:
    await running(api, LINE)

    assert await read(api, token) == (0, COVERED)


@pytest.mark.asyncio
async def test_every_range_shows_what_the_whole_log_shows(api: ApiSite) -> None:
    text = LINE * 2
    await running(api, text)

    for first in range(len(text)):
        for limit in (1, 7, len(LINE), len(text)):
            assert await read(api, offset=first, limit=limit) == (first, (COVERED * 2)[first : first + limit])
        assert await read(api, offset=-first - 1) == (len(text) - first - 1, (COVERED * 2)[-first - 1 :])


@pytest.mark.asyncio
async def test_a_secret_across_the_engines_pieces_is_covered_in_the_stream(api: ApiSite) -> None:
    text = b"." * 990 + LINE * 200  # the engine gives a thousand bytes at a time
    await running(api, text, ended=True)

    assert b"".join(await followed(api)) == b"." * 990 + COVERED * 200
    assert b"".join(await followed(api, offset=1005)) == (b"." * 990 + COVERED * 200)[1005:]


@pytest.mark.asyncio
async def test_what_may_become_a_secret_is_shown_when_it_did_not(api: ApiSite) -> None:
    job = await running(api, b"Password: corr")
    stream = asyncio.create_task(followed(api))
    assert await read(api) == (0, b"Password: "), "a running task may still print the rest"

    await api.engine.write(job.tasks[0].uid, b"ect! and correct horse", end=True)

    assert b"".join(await asyncio.wait_for(stream, 60)) == b"Password: correct! and correct horse"


@pytest.mark.asyncio
async def test_numbers_and_words_of_secrets(api: ApiSite) -> None:
    await running(api, b"pin 12345 is true\n")

    assert await read(api) == (0, b"pin ***** is true\n")


@pytest.mark.asyncio
async def test_the_rest_of_a_secret_whose_beginning_was_rotated_away_is_covered(api: ApiSite) -> None:
    await running(api, LINE * 2, oldest=len("login with correct "))

    first, shown = await read(api)

    assert first == len("login with correct ")
    assert shown == (COVERED * 2)[first:]


@pytest.mark.asyncio
async def test_what_the_platform_gave_the_job_is_covered_too(api: ApiSite) -> None:
    token = await JobSecrets(api.store).token(make_uid(1))
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----\n"
    job = await running(api, f"http://x/?token={token}\n{json.dumps(pem)}\n{JOB_KEY}\n{PEER_KEY}\n".encode())
    await api.store.task_keys.put(slot_of(job.tasks[0].uid), pem, "ssh-ed25519 AAAA")
    await api.store.task_keys.put(job_key_slot(job.uid), JOB_KEY, "ssh-ed25519 AAAA")
    await api.store.task_keys.put(peer_key_slot(job.uid), PEER_KEY, "ssh-ed25519 AAAA")

    _, shown = await read(api)

    assert token.encode() not in shown
    assert b"b3BlbnNz" not in shown
    assert JOB_KEY.encode() not in shown
    assert PEER_KEY.encode() not in shown
    assert shown.startswith(b"http://x/?token=" + b"*" * len(token))


@pytest.mark.asyncio
async def test_a_secret_in_a_header_of_basic_authentication_is_covered(api: ApiSite) -> None:
    coded = base64.b64encode(f"alice:{SECRET}".encode())
    await running(api, b"Authorization: Basic " + coded)

    _, shown = await read(api)

    assert SECRET[4:].encode() not in base64.b64decode(shown.removeprefix(b"Authorization: Basic ").replace(b"*", b"A"))


@pytest.mark.asyncio
async def test_a_long_log_is_scrubbed_quickly(api: ApiSite) -> None:
    """64 KiB of ordinary output cost a few milliseconds; the limit only catches a search that is not linear."""
    await running(api, b"step 1000, loss 0.25, nothing secret here\n" * 100_000, ended=True)

    async with asyncio.timeout(60):
        assert len(b"".join(await followed(api))) == 4_200_000
