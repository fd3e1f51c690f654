"""What users do at either door, and others do beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import AsyncIterator

import aiohttp

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.deploy.release import LIMIT_S
from tests.kubernetes.policies.conftest import DAN, let_in, new_namespace
from tests.kubernetes.policies.knocking import Knocker, stand_in
from tests.kubernetes.routes.front import SERVE, Front, says

MIB = 1 << 20
WAITS = "echo begun; until [ -e go ]; do sleep 0.2; done; echo ended"
ODD = "a b#c%d?e;ü.txt"  # each of these is written otherwise in a path


async def follow_a_job(front: Front) -> None:
    """Hand a job in and follow its log to its end, as a page of the API's origin does."""
    async with (
        front.job("told", WAITS) as name,
        front.socket(front.log(name), Origin=front.url, **front.credentials) as log,
    ):
        heard = b""
        while b"begun\n" not in heard:
            heard += await log.receive_bytes(timeout=LIMIT_S)
        made = await front.release.ssh(name, "touch", "go")
        assert made.code == 0, made.err
        async for message in log:
            assert message.type is aiohttp.WSMsgType.BINARY
            heard += message.data
        assert log.close_code == 1000
        assert heard == b"begun\nended\n"
        await front.release.until_state(name, "SUCCEEDED")


async def send_much(front: Front, mebibytes: int) -> None:
    """A file to the default file system and back, and a document as large as is taken."""
    client = front.release.client
    content = os.urandom(MIB) * mebibytes
    where = f"/api/v2/fs/alice/{uuid.uuid4().hex}"
    sent = await client.put(where, content=content)
    assert sent.status_code == 200, sent.text
    assert sent.json()["complete"]
    got = await client.get(where)
    assert hashlib.sha256(got.content).digest() == hashlib.sha256(content).digest()
    document = json.dumps({"jobName": "large", "padding": "x" * (MIB - 100)}).encode()
    told = await client.post("/api/v2/validate", content=document)
    assert told.status_code == 200, told.text
    assert (await client.post("/api/v2/validate", content=document + b" " * MIB)).status_code == 413


async def work_in_jupyter(front: Front) -> None:
    """Pages, files with odd names, a large file and a terminal of a real Jupyter, by its own name."""
    async with front.job("lab", SERVE) as name, front.browser(name) as browser:
        cookie = await browser.sign_in()
        assert "Secure" in cookie
        await browser.until_it_answers()
        for file, size in ((ODD, 10), ("large.txt", 20 * MIB)):
            text = {"type": "file", "format": "text", "content": "x" * size}
            where = f"{browser.origin}/api/contents/{quoted(file)}"
            saved = await browser.client.put(where, json=text, headers={"Origin": browser.origin})
            assert saved.status_code == 201, saved.text[:500]
            got = await browser.get(f"/files/{quoted(file)}")
            assert (got.status_code, len(got.content)) == (200, size)
        foreign = await browser.client.put(where, json={"type": "directory"}, headers={"Origin": front.url})
        assert foreign.status_code == 403
        async with browser.terminal() as terminal:
            await says(terminal, "ls -1 | wc -l; echo $((6*7))-is-it", "42-is-it")


def quoted(name: str) -> str:
    """A name as a browser puts it into a path, with all that may be misread written in hexadecimal."""
    return "".join(f"%{byte:02X}" for byte in name.encode())


async def stay_through_a_reschedule(front: Front) -> None:
    """The pod of a job goes; its page, signed in as before, and its SSH name are those of the next."""
    async with front.job("moved", SERVE) as name, front.browser(name) as browser:
        await browser.sign_in()
        await browser.until_it_answers()
        begun = (await browser.get("/api/status")).json()["started"]
        (pod,) = await front.release.task_pods(name)
        await front.release.tasks("delete", "pod", pod, "--wait=false")

        async def moved() -> bool:
            answer = await browser.get("/api/status")
            # While it is away the proxy says so itself, at the same address.
            assert answer.status_code in (200, 502, 503), answer.text
            return answer.status_code == 200 and answer.json()["started"] != begun

        await until(moved, f"the next Jupyter at {browser.origin}", LIMIT_S, 0.2)
        async with browser.terminal() as terminal:
            await says(terminal, "echo $((6*7))-again", "42-again")
        inside = await front.release.ssh(name, "hostname")
        assert (inside.code, inside.out) == (0, "r-0\n"), inside.err


@contextlib.asynccontextmanager
async def stranger(front: Front) -> AsyncIterator[tuple[Knocker, dict[str, str]]]:
    """A pod of nobody's, and where API and gateway would be reached past the door."""
    release = front.release
    found = await release.kubectl.get("pods", "-l", "app.kubernetes.io/component in (api, gateway)")
    ports = {"api": 8080, "gateway": 2222}
    at = {}
    for pod in found["items"]:
        part = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        at[part] = f"{pod['status']['podIP']}:{ports[part]}"
    async with new_namespace(release.cluster) as kubectl:
        (knocker,) = await let_in(kubectl, stand_in("stranger", DAN, {}))
        yield knocker, at
