"""The description is valid, complete, and says what the handlers do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from pai_backend.api.openapi import describe
from pai_backend.api.operation import OPERATIONS
from pai_backend.api.routes import ROUTES

SIGN_IN = ("authn/info", "authn/basic/login", "token")
REST_PAGE = Path(__file__).parents[3] / "docs" / "rest.md"


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return describe(ROUTES, "1.2.3")


def test_the_description_is_valid_openapi_3_1(description: dict[str, Any]) -> None:
    assert description["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(description).validate()


def test_every_route_and_verb_is_described(description: dict[str, Any]) -> None:
    for route in ROUTES:
        verbs = {verb.lower() for verb in route.handler.verbs()}
        assert verbs, route.template
        assert set(description["paths"][route.template]) == verbs
    assert len(description["paths"]) == len(ROUTES)


def test_every_verb_but_the_descriptions_own_is_an_operation() -> None:
    bare = [
        route.template
        for route in ROUTES
        for verb in route.handler.verbs()
        if getattr(route.handler, verb.lower()) not in OPERATIONS
    ]
    assert bare == ["/openapi.json"]


def test_operation_ids_are_unique(description: dict[str, Any]) -> None:
    ids = [entry["operationId"] for path in description["paths"].values() for entry in path.values()]
    assert len(ids) == len(set(ids))


def test_parameters_and_errors_come_from_the_code(description: dict[str, Any]) -> None:
    listing = description["paths"]["/api/v2/jobs"]["get"]
    names = {parameter["name"] for parameter in listing["parameters"]}
    filters = {"state", "username", "vc", "keyword", "tagsContain", "tagsNotContain", "jobPriority", "submittedSince"}
    assert filters | {"gpuType", "order", "offset", "limit", "withTotalCount"} == names
    submit = description["paths"]["/api/v2/jobs"]["post"]
    assert set(submit["responses"]) == {"202", "400", "401", "403", "404", "409", "413", "429", "500", "503"}
    assert "InvalidProtocolError" in submit["responses"]["400"]["description"]


@pytest.mark.parametrize("verb", ["get", "head"])
def test_a_path_of_files_answers_a_listing_or_bytes(description: dict[str, Any], verb: str) -> None:
    content = description["paths"]["/api/v2/fs/{path}"][verb]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "application/octet-stream"}


def test_paths_without_a_token_are_those_of_the_page(description: dict[str, Any]) -> None:
    open_paths = {
        path
        for path, verbs in description["paths"].items()
        if all(entry.get("security") == [] for entry in verbs.values())
    }
    signing_in = {f"/api/{version}/{path}" for version in ("v1", "v2") for path in SIGN_IN}
    probes = {"/healthz", "/readyz", "/metrics", "/openapi.json"}
    assert open_paths == probes | signing_in | {"/api/v2/authn/oidc/login", "/api/v2/info", "/api/v1/ssh-keys/{name}"}


def test_every_path_of_the_page_exists_and_the_other_way_round() -> None:
    """The page names path parts in its own way, so parts are compared by position."""
    rows = re.findall(r"^\| (.*)$", REST_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = set()
    for row in rows:
        cell = re.split(r"(?<!\\)\|", row)[0]
        for path in re.findall(r"(?<!\w)/[a-z][A-Za-z0-9_{}/.-]*", cell):
            written.add(re.sub(r"\{\w+\}", "{}", path))
    routed = {re.sub(r"\{\w+\}", "{}", route.template) for route in ROUTES}
    assert written == routed
