"""Which ports a gateway tries, in which order."""

from pathlib import Path

from pai_backend.config.gateway import GatewaySettings
from pai_backend.roles.gateway import FIRST_PORT, PORTS_TRIED, _candidates, _options

ALL = list(range(FIRST_PORT, FIRST_PORT + PORTS_TRIED))


def test_a_configured_port_is_the_only_one() -> None:
    assert list(_candidates(GatewaySettings(port=22), 2300, Path("/a"))) == [22]


def test_the_kept_port_comes_first_and_then_every_port_of_the_range_once() -> None:
    first, *rest = _candidates(GatewaySettings(), 2300, Path("/a"))
    assert first == 2300
    assert sorted(rest) == ALL


def test_backends_of_different_directories_do_not_try_the_same_port_first() -> None:
    firsts = {next(_candidates(GatewaySettings(), None, Path(f"/home/user{number}"))) for number in range(20)}
    assert len(firsts) > 15


def test_a_gateway_drains_as_long_as_it_is_told() -> None:
    assert _options(GatewaySettings(drain_s=3600), 2222).drain_s == 3600
