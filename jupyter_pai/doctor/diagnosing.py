"""Why login is not possible: the fault that is found decides the words.

A login that failed says little (``Permission denied``), so what it needs is looked at one thing after the other: the
configuration that OpenSSH really uses, the key's file, the address, who answers there, and what the backend knows.
Nothing is looked at while the login works.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_pai.connect.ssh_config import HostEntry
from jupyter_pai.doctor.findings import Finding
from jupyter_pai.doctor.running import OpenSshRoute, ProgramExit, run

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_REACHING = frozenset({"proxycommand", "proxyjump"})
"""Options that none of our blocks has: whatever they say comes from elsewhere."""


ANSWER_S = 5.0


@dataclass(frozen=True)
class Meant:
    """What the login is meant to use. ``config`` is our file, ``user_config`` the user's that includes it."""

    login: HostEntry
    identity: Path
    config: Path
    user_config: Path


@dataclass(frozen=True)
class AccountFacts:
    """What the backend knows of the user and the key; ``is_over``: a certificate beside the key that has run out.

    ``is_key_over``: the key is registered for a time that is over.
    """

    is_registered: bool = True
    is_locked_out: bool = False
    is_over: bool = False
    is_key_over: bool = False


def effective(way: OpenSshRoute) -> Mapping[str, Sequence[str]]:
    """The options that OpenSSH takes for the name, by lower-case keyword; empty when it cannot read its files."""
    found: dict[str, list[str]] = {}
    for line in run(way.ssh("-G", way.alias)).out.decode(errors="replace").splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword, []).append(value)
    return found


def cause(meant: Meant, options: Mapping[str, Sequence[str]], ran: ProgramExit, account: AccountFacts) -> Finding:
    """The fault behind a login that ended so. ``options`` are those of :func:`effective`."""
    said = ran.err.decode(errors="replace")
    return _of_configuration(meant, options) or _of_key_file(meant) or _of_words(meant, said, account, ran.complaint)


def _of_configuration(meant: Meant, options: Mapping[str, Sequence[str]]) -> Finding | None:
    login, places = meant.login, {"config": str(meant.user_config), "ours": str(meant.config)}
    if options.get("hostname") == [login.alias]:
        return Finding("no-include", {**places, "alias": login.alias})
    wanted = {"hostname": login.host, "port": str(login.port), "user": login.alias}
    wanted |= {"hostkeyalias": login.host_key_alias, "identityfile": str(meant.identity)}
    for keyword, value in wanted.items():
        found = [os.path.expanduser(each) for each in options.get(keyword, ())]
        if found and found[0].lower() != value.lower():
            return Finding("foreign-option", {**places, "option": keyword, "value": found[0]})
    for keyword in sorted(_REACHING & options.keys()):
        if options[keyword] != ["none"]:
            return Finding("foreign-option", {**places, "option": keyword, "value": options[keyword][0]})
    return None


def _of_key_file(meant: Meant) -> Finding | None:
    try:
        mode = meant.identity.stat().st_mode
    except OSError:
        return Finding("no-key-file", {"path": str(meant.identity)})
    if os.name == "posix" and mode & _OTHERS:
        return Finding("key-mode", {"path": str(meant.identity), "mode": f"{stat.S_IMODE(mode):04o}"})
    return None


def _of_words(meant: Meant, said: str, account: AccountFacts, complaint: str) -> Finding:
    public = f"{meant.identity}.pub"
    where = {"host": meant.login.host, "port": str(meant.login.port), "path": public}
    for code, words in _WORDS.items():
        if any(word in said for word in words):
            is_other = code == "gateway-draining" and _answers_otherwise(meant.login)
            return Finding("other-host" if is_other else code, where)
    if "Permission denied" not in said:
        return Finding("no-login", {"detail": complaint})
    if account.is_locked_out:
        return Finding("locked-out")
    if not account.is_registered:
        return Finding("certificate-over" if account.is_over else "key-unregistered", {"path": public})
    if account.is_key_over:
        return Finding("key-over", {"path": public})
    return Finding("no-login", {"detail": complaint})


def _answers_otherwise(login: HostEntry) -> bool:
    """Whether what answers at the address is no SSH server at all; one that closes without a word may be."""
    try:
        with socket.create_connection((login.host, login.port), ANSWER_S) as there:
            there.sendall(b"SSH-2.0-pai-doctor\r\n")
            said = there.recv(16)
    except OSError:
        return False
    return said != b"" and not said.startswith(b"SSH-"[: len(said)])


_WORDS = {
    "key-limited": ("is not for the job with the name",),
    "other-host": ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed"),
    "port-refused": ("Connection refused",),
    "port-dropped": ("timed out", "No route to host", "Network is unreachable", "it took longer than"),
    "no-name": ("Could not resolve hostname",),
    "gateway-draining": ("The gateway is stopping", "kex_exchange_identification", "Connection closed by"),
}
"""OpenSSH's words by what they tell of, most telling first; the gateway's own are in ``access.gateway.server``."""
