"""Who asks, when a proxy of ours may stand between."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from pai_backend.api.forwarded import source

PROXIES = [ip_network("10.0.0.0/24"), ip_network("fd00::/64")]


@pytest.mark.parametrize(
    ("peer", "values", "found"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["6.6.6.6, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["6.6.6.6", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.7, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7,"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("fd00::1", ["[2001:db8::2]"], "2001:db8::2"),
        ("fd00::1%eth0", ["::ffff:198.51.100.7"], "198.51.100.7"),
    ],
)
def test_a_proxy_of_ours_is_believed_and_what_its_client_says_is_not(peer: str, values: list[str], found: str) -> None:
    assert source(peer, values, PROXIES) == found


def test_without_proxies_nobody_is_believed() -> None:
    assert source("10.0.0.1", ["198.51.100.7"], []) == "10.0.0.1"
