"""Whatever is sent, the answer is never a fault of ours and always has the one shape."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_backend.api.routes import ROUTES, Route
from tests.support.api_site import ALICE, running_api
from tests.support.wordings import ERROR_KEYS

PLAIN = [
    (verb, route)
    for route in ROUTES
    for verb in route.handler.verbs()
    if route.template.startswith("/api/") and not route.template.endswith("/stream")
]
words = st.text(max_size=20) | st.sampled_from(["hello", "alice~hello", "0", "-1", "worker", "all", "true", "9" * 30])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of an API that runs in another thread, as hypothesis runs no coroutines."""
    directory: Path = tmp_path_factory.mktemp("api")
    started: list[str] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with running_api(directory) as site:
            started.append(site.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        headers = {"Authorization": f"Bearer {ALICE}"}
        with httpx.Client(base_url=started[0], headers=headers, timeout=60, verify=False) as client:
            yield client
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    choice=st.sampled_from(PLAIN),
    parts=st.lists(words, min_size=6, max_size=6),
    query=st.dictionaries(st.sampled_from(["limit", "offset", "state", "order", "index", "role", "name", "x"]), words),
    body=st.binary(max_size=300)
    | st.recursive(words, lambda inner: st.dictionaries(words, inner)).map(lambda value: json.dumps(value).encode()),
)
def test_no_request_makes_the_backend_fail(
    client: httpx.Client, choice: tuple[str, Route], parts: list[str], query: dict[str, str], body: bytes
) -> None:
    verb, route = choice
    path = route.template
    for name, part in zip(route.parts, parts, strict=False):
        path = path.replace(f"{{{name}}}", quote(part, safe=""))
    answer = client.request(verb, path, params=query, content=body if verb in ("POST", "PUT") else None)
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    if answer.status_code >= 400 and verb != "HEAD":
        assert set(answer.json()) == ERROR_KEYS
