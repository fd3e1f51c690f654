"""Which requests are for services, and what of them the task is asked."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from pai_backend.access.proxy.address import ServiceAddress, host_service, query_values, read_address, without_parameter


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("lab--web.localhost:8000", "lab--web"),
        ("LAB--Web.LocalHost.", "lab--web"),
        ("lab--worker-0--web.localhost", "lab--worker-0--web"),
        ("lab.localhost", None),
        ("localhost:8000", None),
        ("a.lab--web.localhost", None),
        ("lab--web.example.com", None),
        ("lab--web.localhost.evil.com", None),
        ("lab--w_b.localhost", None),
        (f"{'a' * 60}--web.localhost", None),
        ("", None),
    ],
)
def test_a_host_name_names_a_service_or_not(host: str, service: str | None) -> None:
    assert host_service(host, "localhost") == service


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/s/lab--web/a/b?c=d", ServiceAddress("lab--web", "/s/lab--web", "/a/b?c=d")),
        ("/s/lab--web/", ServiceAddress("lab--web", "/s/lab--web", "/")),
        ("/s/lab--web", ServiceAddress("lab--web", "/s/lab--web", "")),
        ("/s/lab--web?x", ServiceAddress("lab--web", "/s/lab--web", "?x")),
        ("/s/lab/", None),
        ("/s/", None),
        ("/api/v2/info", None),
        ("/x/s/lab--web/", None),
    ],
)
def test_a_path_names_a_service_or_not(target: str, expected: ServiceAddress | None) -> None:
    assert read_address("127.0.0.1:8000", target, "localhost") == expected


def test_on_a_service_host_every_path_belongs_to_the_service() -> None:
    found = read_address("lab--web.localhost", "/s/other--web/x", "localhost")
    assert found == ServiceAddress("lab--web", "", "/s/other--web/x")


@pytest.mark.parametrize(
    ("target", "path", "expected"),
    [
        ("/", "/tree", "./tree"),
        ("/a", "/tree?x", "./tree?x"),
        ("/a/b", "/tree", "../tree"),
        ("/a/b/?q=/", "/", "../../"),
    ],
)
def test_references_are_relative_to_the_request(target: str, path: str, expected: str) -> None:
    assert ServiceAddress("lab--web", "/s/lab--web", target).relative(path) == expected


def test_one_query_parameter_is_read_and_removed_exactly() -> None:
    target = "/a%2Fb?x=1&token=a%20b&y=%zz&t%6fken=c&z"
    assert query_values(target.partition("?")[2], "token") == ["a b", "c"]
    assert without_parameter(target, "token") == "/a%2Fb?x=1&y=%zz&z"
    assert without_parameter("/a?token=x", "token") == "/a"
    assert without_parameter("/a", "token") == "/a"


@pytest.mark.parametrize(
    ("path", "reference"),
    [
        ("/x?a=../b", "../x?a=../b"),
        ("/..//x", "../x"),
        ("/../../api/v2/jobs", "../api/v2/jobs"),
        ("//evil.example/x", "../evil.example/x"),
        ("/a/%2E%2e/..//y#f", "../y#f"),
        ("/a\\..\\..\\..\\y", "../y"),
        ("/a/b/..", "../a/"),
        ("/a//b/", "../a//b/"),
        ("/", "../"),
    ],
)
def test_a_reference_never_leaves_its_service(path: str, reference: str) -> None:
    asked = ServiceAddress("lab--web", "/s/lab--web", "/deep/page")
    assert asked.relative(path) == reference
    whole = urljoin("http://h/s/lab--web/deep/page", asked.relative(path))
    assert whole.startswith("http://h/s/lab--web/")
