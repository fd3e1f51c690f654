"""Addresses as those see them who ask."""

from __future__ import annotations

import pytest

from pai_backend.model.urls import as_asked


@pytest.mark.parametrize(
    ("base_url", "host", "seen"),
    [
        ("http://127.0.0.1:8080", "localhost:34237", "http://127.0.0.1:34237"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "[::1]:34237", "http://[::1]:34237"),
        ("http://localhost:8080/below", "127.0.0.1:34237", "http://localhost:34237/below"),
        ("https://pai.example.org", "localhost:34237", "https://pai.example.org"),
        ("http://10.0.0.7:8080", "localhost:34237", "http://10.0.0.7:8080"),
        ("http://127.0.0.1:8080", "pai.example.org:34237", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "localhost", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "localhost:99999", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "localhost:0", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "[::1:5", "http://127.0.0.1:8080"),
    ],
)
def test_a_forwarded_port_of_loopback_counts_and_nothing_else_that_is_said(base_url: str, host: str, seen: str) -> None:
    assert as_asked(base_url, host) == seen
