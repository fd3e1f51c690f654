"""How ways are compared: in turn, by medians, after a round that does not count."""

from __future__ import annotations

from pathlib import Path

import psutil

from bench.ssh.figures import _in_turn, _share
from bench.ssh.site import BRIDGE, CIPHER, PEER, Site


def test_every_way_is_gone_once_a_round_and_the_first_round_does_not_count() -> None:
    gone: list[str] = []
    taken = {"ours": iter([100.0, 3.0, 1.0, 2.0]), "theirs": iter([0.0, 6.0, 6.0, 9.0])}

    def measured(way: str) -> float:
        gone.append(way)
        return next(taken[way])

    assert _in_turn(measured, ("ours", "theirs"), 3) == {"ours": 2.0, "theirs": 6.0}
    assert gone == ["ours", "theirs"] * 4


def test_a_share_is_in_percent_of_the_peer() -> None:
    assert _share("login_bridge", 150.0, 200.0, "told").value == 75.0


def test_a_client_is_told_one_cipher_for_all_its_connections_or_chooses() -> None:
    site = Site(Path("home"), psutil.Process(), 1, 2)
    told, free = site.ssh(BRIDGE, "true", cipher=CIPHER), site.ssh(PEER, "true", cipher="")
    assert told == ["ssh", "-F", "home/ssh_config-aes128-gcm", BRIDGE, "true"]
    assert free == ["ssh", "-F", "home/ssh_config", PEER, "true"]
