"""The API as its own description says: requests are made from it, answers are held to it.

Against a real backend in its own processes, from a fixed seed: no 5xx, no status, media type or body that the
description does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.api.wire import MEDIA_TYPE
from tests.support.backend_process import Backend, backend
from tests.support.documents import scm_document

pytestmark = pytest.mark.xdist_group("schema")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 12  # for each operation, about 0.3 s
KNOWN: dict[str, list[str]] = {
    "job": ["hello", "user~nothing"],
    "user": ["me", "nobody"],
    "role": ["worker", "none"],
    "attempt": ["0", "1"],
    "index": ["0", "9"],
    "run": ["0", "1"],
    "label": ["web", "none"],
    "vc": ["default", "none"],
    "template": ["empty", "mine"],
    "draft": ["mine", "none"],
}
"""Parts of paths that lead somewhere, or just beside it: from random text alone nearly all would be 404."""


def description() -> dict[str, Any]:
    """What is served, but for streams, with examples for parts of paths."""
    whole = describe(ROUTES, "0")
    whole["paths"] = {
        path: verbs
        for path, verbs in whole["paths"].items()
        if all("101" not in entry["responses"] for entry in verbs.values())
    }
    entries = [entry for verbs in whole["paths"].values() for entry in verbs.values()]
    for parameter in (each for entry in entries for each in entry["parameters"]):
        if parameter["in"] == "path" and parameter["name"] in KNOWN:
            parameter["schema"] = {"type": "string", "enum": KNOWN[parameter["name"]]}
    return whole


SCHEMA = schemathesis.openapi.from_dict(description())
OPERATIONS = {each.label: each for each in (cast(Any, made).ok() for made in SCHEMA.get_all_operations())}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("schema") / "data") as one:
        with one.client() as client:
            client.post("/api/v2/jobs", content=scm_document()).raise_for_status()
        yield one


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """One for all requests: a session for each would look for proxies and connect each time. It keeps no cookies."""
    with requests.Session() as one:
        one.trust_env = False
        one.headers.clear()
        one.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        yield one


def test_the_description_is_the_one_that_is_served(running: Backend) -> None:
    with running.client() as client:
        served = client.get("/openapi.json").json()
    assert {**served, "info": None} == {**describe(ROUTES, "0"), "info": None}


@pytest.mark.parametrize("label", OPERATIONS)
def test_answers_are_as_described(running: Backend, session: requests.Session, label: str) -> None:
    headers = {"Authorization": f"Bearer {running.token}"}
    ours = {**headers, "Accept": MEDIA_TYPE}

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[label].as_strategy(), asks_for_ours=booleans())
    def every_answer(case: schemathesis.Case[Any], asks_for_ours: bool) -> None:
        given_headers = ours if asks_for_ours else headers
        case.call_and_validate(base_url=running.url, session=session, headers=given_headers, checks=CHECKS, timeout=60)

    every_answer()
