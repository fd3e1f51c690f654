"""Wrong requests, each with its exact answer. One shape for all of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pai_backend.api.services import documents as services
from pai_backend.launch.jupyter import open_listener_warnings
from pai_backend.model.errors import Unavailable
from pai_backend.model.spec import DocumentWarning, JobSpec
from tests.support.api_site import ALICE, ApiSite
from tests.support.documents import scm_document
from tests.support.wordings import ERROR_KEYS

Wrong = tuple[str, str, bytes | None, int, str, str]
NAME_RULE = "name may hold letters, digits, and . _ ~ -, at most 255 of them, and is not . or .."


def assert_is_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The one shape of failures."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    assert set(body) == ERROR_KEYS
    assert body["code"] == code
    assert body["requestId"] == answer.headers["x-request-id"]
    return body


DOCUMENTS: list[tuple[str, bytes, int, str, str, int | None, int | None, str]] = [
    (
        "two trailing commas",
        scm_document().rstrip(b"}\n") + b",,\n}",
        400,
        "InvalidProtocolError",
        "$.taskRoles",
        None,
        None,
        "Check the commas, quotes and brackets just before it.",
    ),
    ("no JSON at all", b"hello", 400, "InvalidProtocolError", "$", 1, 1, ""),
    ("nothing", b"", 400, "InvalidProtocolError", "$", 1, 1, ""),
    (
        "an unknown field",
        scm_document(imagee="x"),
        400,
        "InvalidProtocolError",
        "$.imagee",
        27,
        3,
        'Did you mean "image"?',
    ),
    (
        "a wrong type",
        scm_document(retryCount="many"),
        400,
        "InvalidProtocolError",
        "$.retryCount",
        6,
        17,
        "Write a number like 1, without quotes, fraction or unit.",
    ),
    ("no image", scm_document(image=None), 400, "InvalidProtocolError", "$.image", 1, 1, 'Add "image": text.'),
    (
        "an unknown virtual cluster",
        scm_document(virtualCluster="reserch"),
        404,
        "NoVirtualClusterError",
        "$.virtualCluster",
        5,
        21,
        "Did you mean research?",
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "status", "code", "path", "line", "column", "hint"),
    [case[1:] for case in DOCUMENTS],
    ids=[case[0] for case in DOCUMENTS],
)
async def test_a_wrong_document_is_refused_with_its_place(
    api: ApiSite, text: bytes, status: int, code: str, path: str, line: int | None, column: int | None, hint: str
) -> None:
    async with api.client() as client:
        answer = await client.post("/api/v2/jobs", content=text)
        jobs = (await client.get("/api/v2/jobs")).json()
    fault = assert_is_error(answer, status, code)["errors"][0]
    if line is not None:
        assert (fault["path"], fault["line"], fault["column"]) == (path, line, column)
    if hint:
        assert fault["hint"] == hint
    assert fault["message"]
    assert jobs == []


@pytest.mark.asyncio
async def test_an_unknown_virtual_cluster_names_those_there_are(api: ApiSite) -> None:
    async with api.client() as client:
        answer = await client.post("/api/v2/jobs", content=scm_document(virtualCluster="gold"))
    body = assert_is_error(answer, 404, "NoVirtualClusterError")
    assert body["message"] == "There is no virtual cluster gold; there are: default, research."
    assert body["hint"] == "Set virtualCluster to one of: default, research."


REQUESTS: list[Wrong] = [
    ("POST", "/api/v2/jobs?nme=x", b"{}", 400, "InvalidParametersError", "The parameter nme is not known."),
    ("POST", "/api/v2/jobs?name=..", scm_document(), 400, "InvalidParametersError", NAME_RULE),
    ("POST", "/api/v2/jobs?name=.", scm_document(), 400, "InvalidParametersError", NAME_RULE),
    ("POST", "/api/v2/jobs?name=a/b", scm_document(), 400, "InvalidParametersError", NAME_RULE),
    ("POST", "/api/v2/jobs?name=a&name=b", b"{}", 400, "InvalidParametersError", "The parameter name is given twice."),
    (
        "GET",
        "/api/v2/jobs?limit=many",
        None,
        400,
        "InvalidParametersError",
        "limit must be a whole number.",
    ),
    ("GET", "/api/v2/jobs?limit=50001", None, 400, "InvalidParametersError", "limit must be at most 50000."),
    (
        "GET",
        "/api/v2/jobs?state=RUNNIN",
        None,
        400,
        "InvalidParametersError",
        "state must be a list of WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED, FAILED.",
    ),
    ("GET", "/api/v2/jobs?order=colour", None, 400, "InvalidParametersError", "Jobs cannot be ordered by 'colour'."),
    (
        "GET",
        "/api/v2/jobs?order=name,UP",
        None,
        400,
        "InvalidParametersError",
        "order must be a field, or a field with ,ASC or ,DESC.",
    ),
    (
        "PUT",
        "/api/v2/jobs/hello/executionType",
        b'{"value":\n 1x}',
        400,
        "InvalidParametersError",
        "The body is not valid JSON.",
    ),
    ("PUT", "/api/v2/jobs/hello/executionType", b"\xff", 400, "InvalidParametersError", "The body is not valid JSON."),
    ("PUT", "/api/v2/jobs/hello/executionType", b"{}", 400, "InvalidParametersError", "value is required."),
    (
        "PUT",
        "/api/v2/jobs/hello/executionType",
        b'{"value": "RESTART"}',
        400,
        "InvalidParametersError",
        "value must be one of 'START' or 'STOP'.",
    ),
    (
        "PUT",
        "/api/v2/jobs/hello/executionType",
        b'{"value": "STOP", "vaule": 1}',
        400,
        "InvalidParametersError",
        "vaule is not known.",
    ),
    ("GET", "/api/v2/jobs/nothing", None, 404, "NoJobError", "There is no job 'nothing'."),
    ("GET", "/api/v2/jobs/hello/logs?role=me", None, 404, "NoTaskError", "The job alice~hello has no task role me."),
    ("GET", "/api/v2/jobs/hello/logs?index=2", None, 404, "NoTaskError", "The task role worker has no task 2."),
    ("GET", "/api/v2/jobs/hello/logs?attempt=1", None, 404, "NoTaskError", "The task worker-0 has no attempt 1."),
    (
        "GET",
        "/api/v2/jobs/hello/logs?stream=both",
        None,
        400,
        "InvalidParametersError",
        "stream must be one of 'stdout', 'stderr' or 'all'.",
    ),
    (
        "POST",
        "/api/v2/jobs/hello/services/nope/ticket",
        None,
        404,
        "NoServiceError",
        "The job alice~hello has no service nope.",
    ),
    (
        "POST",
        "/api/v2/jobs/hello/services/ssh/ticket",
        None,
        404,
        "NoServiceError",
        "The job alice~hello has no service ssh.",
    ),
    (
        "POST",
        "/api/v2/jobs/hello/services/web/ticket?index=2",
        None,
        404,
        "NoTaskError",
        "The task role worker has no task 2.",
    ),
    ("POST", "/api/v2/jobs", scm_document(), 409, "ConflictJobError", "alice already has a job named hello."),
    ("DELETE", "/api/v2/keys/SHA256:nothing", None, 404, "NoKeyError", ""),
    ("PATCH", "/api/v2/jobs/hello", b"{}", 405, "MethodNotAllowedError", "PATCH is not possible here."),
    ("DELETE", "/healthz", None, 405, "MethodNotAllowedError", "DELETE is not possible here."),
    ("GET", "/api/v2/nothing", None, 404, "NoApiError", "/api/v2/nothing does not exist."),
    ("GET", "/", None, 404, "NoApiError", "/ does not exist."),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "message"), REQUESTS, ids=[f"{case[0]} {case[1]}" for case in REQUESTS]
)
async def test_a_wrong_request_is_refused_in_the_common_shape(
    api: ApiSite, method: str, path: str, body: bytes | None, status: int, code: str, message: str
) -> None:
    async with api.client() as client:
        assert (await client.post("/api/v2/jobs", content=scm_document())).status_code == 202
        answer = await client.request(method, path, content=body)
    said = assert_is_error(answer, status, code)
    assert said["message"] == message or not message


@pytest.mark.asyncio
async def test_broken_json_in_a_body_has_line_and_column(api: ApiSite) -> None:
    async with api.client() as client:
        answer = await client.put("/api/v2/jobs/hello/executionType", content=b'{"value":\n  STOP}')
    (fault,) = assert_is_error(answer, 400, "InvalidParametersError")["errors"]
    assert (fault["path"], fault["line"], fault["column"]) == ("$", 2, 3)


@pytest.mark.asyncio
async def test_a_misspelled_parameter_names_the_nearest(api: ApiSite) -> None:
    async with api.client() as client:
        body = (await client.get("/api/v2/jobs?keywrod=x")).json()
    assert body["hint"] == "Did you mean keyword?"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "This needs a token."),
        ("Bearer wrong-token-0123456789", "The token is not known."),
        ("Bearer", "The token is not known."),
        ("Basic YWxpY2U6eA==", "The token is not known."),
        (ALICE, "The token is not known."),
    ],
)
async def test_a_wrong_token_is_refused_everywhere_and_not_repeated(
    api: ApiSite, header: str | None, message: str
) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with httpx.AsyncClient(base_url=api.url, headers=headers) as client:
        for path in ("/api/v2/jobs", "/api/v2/keys", "/api/v2/jobs/x/events/stream", "/api/v2/cluster/nodes"):
            answer = await client.get(path)
            assert assert_is_error(answer, 401, "UnauthorizedUserError")["message"] == message
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "wrong-token" not in answer.text


@pytest.mark.asyncio
async def test_a_token_in_the_url_is_no_token(api: ApiSite) -> None:
    async with api.client(None) as client:
        answer = await client.get(f"/api/v2/jobs?token={ALICE}")
    assert_is_error(answer, 401, "UnauthorizedUserError")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/v2/jobs", "/api/v2/validate"])
async def test_a_huge_body_is_refused_with_its_limit(api: ApiSite, path: str) -> None:
    async with api.client() as client:
        answer = await client.post(path, content=b"x" * 2_000_000)
        after = await client.get("/api/v2/jobs")
    body = assert_is_error(answer, 413, "TooLargeError")
    assert body["message"] == "The body is larger than 1048576 bytes."
    assert after.status_code == 200


@pytest.mark.asyncio
async def test_a_huge_body_of_unknown_length_is_refused_too(api: ApiSite) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100_000

    async with api.client() as client:
        answer = await client.post("/api/v2/jobs", content=parts())
    assert_is_error(answer, 413, "TooLargeError")


@pytest.mark.asyncio
async def test_small_bodies_have_a_small_limit(api: ApiSite) -> None:
    async with api.client() as client:
        answer = await client.post("/api/v2/keys", content=json.dumps({"publicKey": "x" * 100_000}))
    assert assert_is_error(answer, 413, "TooLargeError")["message"] == "The body is larger than 65536 bytes."


@pytest.mark.asyncio
async def test_a_fault_of_ours_tells_the_request_id_and_nothing_else(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: object) -> None:
        raise RuntimeError("the secret is 1234")

    monkeypatch.setattr(api.store.jobs, "page", breaks)
    async with api.client() as client:
        answer = await client.get("/api/v2/jobs", headers={"X-Request-Id": "ask-me-42"})
    body = assert_is_error(answer, 500, "UnknownError")
    assert "1234" not in answer.text
    assert body["requestId"] == "ask-me-42"
    logged = [record for record in caplog.records if "ask-me-42" in record.getMessage()]
    assert len(logged) == 1


@pytest.mark.asyncio
async def test_a_request_id_that_could_forge_a_log_line_is_replaced(api: ApiSite) -> None:
    async with api.client() as client:
        answer = await client.get("/api/v2/jobs/x", headers={"X-Request-Id": "a b=c"})
    assert answer.headers["x-request-id"] != "a b=c"


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/v2/jobs/a%00b", "/api/v2/jobs/%ff", "/api/v2/jobs/a%0Ab", "/" + "x" * 3000])
async def test_paths_that_no_name_can_have_are_the_callers_mistake(api: ApiSite, path: str) -> None:
    async with api.client() as client:
        answer = await client.get(path)
    assert answer.status_code in (400, 404)
    assert set(answer.json()) == ERROR_KEYS
    assert len(answer.content) < 1000


@pytest.mark.asyncio
async def test_a_database_that_is_away_is_503(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object, **__: object) -> None:
        raise Unavailable("The database does not answer.", hint="Try again.")

    monkeypatch.setattr(api.store.jobs, "submit", away)
    async with api.client() as client:
        answer = await client.post("/api/v2/jobs", content=scm_document())
    assert assert_is_error(answer, 503, "UnavailableError")["message"] == "The database does not answer."


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/nothing", b""),
        ("POST", "/nothing", b"x" * 300_000),
        ("POST", "/api/v2/jobs?nme=x", b"x" * 300_000),
        ("POST", "/api/v2/jobs", b"x" * 3_000_000),
        ("GET", "/api/v2/jobs/nothing", b""),
    ],
)
async def test_a_refusal_leaves_the_connection_usable(api: ApiSite, method: str, path: str, body: bytes) -> None:
    """Clients keep connections; one that is closed without a word loses their next request."""
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"Host: {host}\r\nAuthorization: Bearer {ALICE}\r\nContent-Length: "
    try:
        for number in range(2):
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}{len(body)}\r\n\r\n".encode() + body)
            answer = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode().lower()
            assert answer.startswith("http/1.1 4"), number
            assert "connection: close" not in answer
            length = next(line for line in answer.splitlines() if line.startswith("content-length:"))
            await reader.readexactly(int(length.split()[1]))
    finally:
        writer.close()


@pytest.mark.asyncio
async def test_what_takes_long_on_a_document_is_done_in_a_thread(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, and looking for an open Jupyter in the commands: 1 MB without a space held everybody up for 11 s."""
    threads: list[bool] = []

    def looked(spec: JobSpec) -> tuple[DocumentWarning, ...]:
        threads.append(threading.current_thread() is threading.main_thread())
        return open_listener_warnings(spec)

    monkeypatch.setattr(services, "open_listener_warnings", looked)
    document = json.loads(scm_document())
    document["taskRoles"][0]["command"] = "x" * 900_000
    async with api.client(ALICE) as client:
        answer = await client.post("/api/v2/validate", content=json.dumps(document))
    assert answer.json()["valid"] is True
    assert threads == [False]


@pytest.mark.asyncio
async def test_large_documents_are_read_one_at_a_time(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight at once left a ninth of the interpreter to all other requests."""
    together = threading.Barrier(2)
    met: list[bool] = []

    def looked(spec: JobSpec) -> tuple[DocumentWarning, ...]:
        try:
            together.wait(0.2)  # nobody comes, unless two are read at once
            met.append(True)
        except threading.BrokenBarrierError:
            together.reset()
        return ()

    monkeypatch.setattr(services, "open_listener_warnings", looked)
    document = json.loads(scm_document())
    document["taskRoles"][0]["command"] = "x" * 900_000
    async with api.client(ALICE) as client:
        sent = [client.post("/api/v2/validate", content=json.dumps(document)) for _ in range(4)]
        answers = await asyncio.gather(*sent)
    assert [answer.json()["valid"] for answer in answers] == [True] * 4
    assert met == []


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["username", "vc", "tagsContain", "tagsNotContain", "gpuType", "state", "jobPriority"])
async def test_a_list_in_a_parameter_has_a_hundred_words_and_repeats_count_once(api: ApiSite, name: str) -> None:
    """1,000 tags were too deep an expression for the database, which answered 500 after seconds."""
    known = {"state": "RUNNING", "jobPriority": "test"}.get(name)
    many = ",".join(f"w{number}" for number in range(3_000))
    async with api.client() as client:
        answers = [await client.get("/api/v2/jobs", params={name: many})] if known is None else []
        repeated = await client.get("/api/v2/jobs", params={name: ",".join([known or "a"] * 5_000)})
        longest = ",".join(f"w{number}" for number in range(100))
        taken = await client.get("/api/v2/jobs", params={name: known or longest})
    assert [assert_is_error(each, 400, "InvalidParametersError")["errors"][0]["path"] for each in answers] == [
        f"?{name}" for _ in answers
    ]
    assert (repeated.status_code, taken.status_code) == (200, 200)
