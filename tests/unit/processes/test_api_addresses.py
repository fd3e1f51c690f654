"""Addresses that users are told where nothing says what they are from outside."""

from __future__ import annotations

import socket

import pytest

from pai_backend.processes.roles import api


@pytest.mark.parametrize(
    ("host", "told"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.7", "10.0.0.7"), ("gate.example.org", "gate.example.org")],
)
def test_all_addresses_are_no_address(host: str, told: str) -> None:
    assert api._reachable(host) == told


def test_the_url_of_a_listener_can_be_opened_on_its_machine() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        assert api._url(listener, "http") == f"http://127.0.0.1:{listener.getsockname()[1]}"
    if socket.has_ipv6:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
            assert api._url(listener, "http") == f"http://[::1]:{listener.getsockname()[1]}"
