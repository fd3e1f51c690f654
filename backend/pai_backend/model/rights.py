"""What a login may do inside a task, and the words users say it with (``shell``, ``sftp``, ``port:LABEL`` …).

Source of the rights: the requests of RFC 4254 that a session or a connection can make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.text import Text

PORT = "port:"
SSH_LABEL = "ssh"
"""The label of the port that every task's SSH server listens on."""
WORDS = ("shell", "exec", "sftp", "sftp-read", f"{PORT}LABEL")
"""What :func:`limits_of` takes: terminal and commands, commands alone, files, files to read only, one labelled port."""


class Sftp(StrEnum):
    """What SFTP may do, from least to most."""

    NONE = "none"
    READ = "read"
    WRITE = "write"


_SFTP_ORDER = tuple(Sftp)


@dataclass(frozen=True)
class Limits:
    """What a login may do; the default is everything.

    ``ports`` are the port labels that direct-tcpip may reach: None for any address inside the task, () for none.
    """

    pty: bool = True
    commands: bool = True
    """Shell and exec, and subsystems other than SFTP."""
    sftp: Sftp = Sftp.WRITE
    ports: tuple[str, ...] | None = None
    listen: bool = True
    """tcpip-forward and streamlocal-forward, and direct-streamlocal."""
    agent: bool = True
    x11: bool = True


EVERYTHING = Limits()
NOTHING = Limits(pty=False, commands=False, sftp=Sftp.NONE, ports=(), listen=False, agent=False, x11=False)


def narrower(one: Limits, other: Limits) -> Limits:
    """What both allow. Commutative and associative; ``EVERYTHING`` is its neutral element."""
    return Limits(
        pty=one.pty and other.pty,
        commands=one.commands and other.commands,
        sftp=min(one.sftp, other.sftp, key=_SFTP_ORDER.index),
        ports=_common_ports(one.ports, other.ports),
        listen=one.listen and other.listen,
        agent=one.agent and other.agent,
        x11=one.x11 and other.x11,
    )


def wider(one: Limits, other: Limits) -> Limits:
    """What either allows. Commutative and associative; ``NOTHING`` is its neutral element."""
    return Limits(
        pty=one.pty or other.pty,
        commands=one.commands or other.commands,
        sftp=max(one.sftp, other.sftp, key=_SFTP_ORDER.index),
        ports=None if one.ports is None or other.ports is None else tuple(sorted({*one.ports, *other.ports})),
        listen=one.listen or other.listen,
        agent=one.agent or other.agent,
        x11=one.x11 or other.x11,
    )


def _common_ports(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple(sorted(set(one) & set(other)))


def limits_of(only: Sequence[str], *, pty: bool = True) -> Limits:
    """The limits that these words mean; none of them means everything. ``pty``: whether a terminal is allowed.

    Who may run commands can write files whatever SFTP allows, so ``shell`` and ``exec`` bring SFTP along. The port of
    the task's SSH server cannot be named: who can read the task's files finds a key there that opens it for commands.
    Raises InvalidParameters for a word that is not one of ``WORDS``, and for that port.
    """
    limits = NOTHING if only else EVERYTHING
    for word in only:
        limits = _with(limits, word)
    return limits if pty else replace(limits, pty=False)


def _with(limits: Limits, word: str) -> Limits:
    if word == "shell":
        return replace(limits, pty=True, commands=True, sftp=Sftp.WRITE)
    if word == "exec":
        return replace(limits, commands=True, sftp=Sftp.WRITE)
    if word == "sftp":
        return replace(limits, sftp=Sftp.WRITE)
    if word == "sftp-read":
        return replace(limits, sftp=max(limits.sftp, Sftp.READ, key=_SFTP_ORDER.index))
    label = word.removeprefix(PORT)
    if label == SSH_LABEL and label != word:
        raise InvalidParameters(
            Text("A login cannot be limited to the port ssh: the SSH server behind it allows everything."),
            hint=Text("Say what is meant: shell, exec, sftp or sftp-read."),
        )
    if label and label != word:
        return replace(limits, ports=tuple(sorted({*(limits.ports or ()), label})))
    raise InvalidParameters(
        Text("{word} is not a permission of logins.", word=repr(word[:80])),
        hint=Text("Known are: {words}.", words=", ".join(WORDS)),
    )


def words_of(limits: Limits) -> tuple[str, ...]:
    """The words that say these limits, for people; ``()`` for everything."""
    if limits == EVERYTHING:
        return ()
    words: list[str] = []
    if limits.commands:
        words.append("shell" if limits.pty else "exec")
    elif limits.sftp is not Sftp.NONE:
        words.append("sftp" if limits.sftp is Sftp.WRITE else "sftp-read")
    words += ["port:*"] if limits.ports is None else [f"{PORT}{label}" for label in limits.ports]
    return tuple(words)


def to_text(limits: Limits) -> str:
    """The limits as one line of JSON, the same for the same limits."""
    return json.dumps(asdict(limits), sort_keys=True, separators=(",", ":"))


def from_text(text: str) -> Limits:
    """What :func:`to_text` wrote."""
    values = json.loads(text)
    ports: Iterable[str] | None = values["ports"]
    return Limits(**{**values, "sftp": Sftp(values["sftp"]), "ports": None if ports is None else tuple(ports)})
