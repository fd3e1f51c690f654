"""How our SSH servers introduce themselves, and the algorithms that they offer, by asyncssh's names: none that
ssh-audit calls broken or weak.

What a build of asyncssh lacks (post-quantum key exchange, UMAC) is left out.
"""

from __future__ import annotations

from functools import cache
from typing import TypedDict

import asyncssh

SPEAKS = "OpenSSH_9.9"
"""The software whose extensions our servers have, sockets in the file system above all: clients such as ssh2 and libssh
use them only where the server's version begins so, which is what it is for (RFC 4253 §4.2).
"""

KEX = ("mlkem768x25519-sha256", "curve25519-sha256", "curve25519-sha256@libssh.org")
CIPHERS = (
    *("chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes128-gcm@openssh.com"),
    *("aes256-ctr", "aes192-ctr", "aes128-ctr"),
)
MACS = ("umac-128-etm@openssh.com", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")

OLD_KEX = ("ecdh-sha2-nistp256", "ecdh-sha2-nistp384", "ecdh-sha2-nistp521", "diffie-hellman-group14-sha256")
OLD_MACS = ("hmac-sha2-256", "hmac-sha2-512")


class Algorithms(TypedDict):
    """Arguments of asyncssh's options."""

    kex_algs: list[str]
    encryption_algs: list[str]
    mac_algs: list[str]


def algorithms(*, old_clients: bool = False) -> Algorithms:
    """What to offer; ``old_clients`` adds what clients of before 2018 need, such as JSch, and nothing with SHA-1."""
    kex = (*KEX, *(OLD_KEX if old_clients else ()))
    macs = (*MACS, *(OLD_MACS if old_clients else ()))
    return {
        "kex_algs": [name for name in kex if _is_known("kex_algs", name)],
        "encryption_algs": list(CIPHERS),
        "mac_algs": [name for name in macs if _is_known("mac_algs", name)],
    }


@cache
def _is_known(option: str, name: str) -> bool:
    """Whether asyncssh has an algorithm: it refuses options with one that it has not."""
    others = {"config": None, "known_hosts": None, "client_keys": None, "agent_path": None}
    try:
        asyncssh.SSHClientConnectionOptions(host="", **{option: [name]}, **others)
    except ValueError:
        return False
    return True
