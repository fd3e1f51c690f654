"""Texts of an OpenSSH configuration for tasks: host blocks, known hosts, the Include line. Pure.

Rules these texts keep, because programs that read them are stricter than ``ssh``:

- the included file begins with a ``Host`` line and has one concrete name per block, nothing global and
  no wildcard (VS Code's reader; microsoft/vscode#235569, vscode-remote-release#65, #4339);
- one explicit identity and ``IdentitiesOnly``, or agents with many keys end in "Too many authentication
  failures";
- ``HostKeyAlias`` with an own known_hosts file, so strict checking works for every name behind the
  one gateway address, and never meets lines of another program.

A block for a jump has the same rules. There the task itself is recognised, by the certificate that the cluster's host
CA has given it for its name, and accepts the identity that the gateway has let in (ADR 0021).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

KEEPALIVE_INTERVAL_S = 30
KEEPALIVE_COUNT = 4
JUMP = ".jump"
"""Behind a name: the same task, entered through the gateway by the client's own SSH. No alias has a dot."""
TASK_USER = "root"
"""Who a task's own SSH server lets in, with every engine (OpenPAI's ``ssh -p PORT root@IP``)."""
TASK_PORT = 22
"""What a jump asks the gateway for, wherever the task's server listens."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9.:_-]+", re.ASCII)
_MARK = "# jupyter-pai:"


@dataclass(frozen=True)
class HostEntry:
    """One name to log in by; the gateway's user name is the alias itself.

    ``user``: the gateway's user name where it is not the alias. ``jump_certificate``: what a task of an older backend
    takes when it is jumped to; None: it has no name for that.
    """

    alias: str
    host: str
    port: int
    host_key_alias: str
    jump_certificate: PurePath | None = None
    user: str = ""


@dataclass(frozen=True)
class ConfigFiles:
    """Files that the texts name."""

    identity: PurePath
    known_hosts: PurePath


def path_word(path: PurePath) -> str:
    """A path as one word of ssh_config: forward slashes (Windows too), quotes where it has spaces.

    Raises ValueError for a path that ssh_config cannot spell (a quote or line break in it).
    """
    text = path.as_posix()
    if any(char in text for char in '"\n\r'):
        raise ValueError(f"ssh_config has no spelling for the path {text!r}")
    text = text.replace("%", "%%")  # ssh_config(5) TOKENS
    return _word(text)


def _word(text: str) -> str:
    return f'"{text}"' if any(char in text for char in " \t'") else text


def host_block(login: HostEntry, places: ConfigFiles) -> str:
    """The block of one name. Raises ValueError for values that could break out of their line."""
    if (
        not _NAME.fullmatch(login.alias)
        or not _NAME.fullmatch(login.user or login.alias)
        or not _NAME.fullmatch(login.host_key_alias.lower())
    ):
        raise ValueError(f"not a name for ssh_config: {login.alias!r} or {login.host_key_alias!r}")
    if not _HOST.fullmatch(login.host):
        raise ValueError(f"not a host name: {login.host!r}")
    options = (
        ("HostName", login.host),
        ("Port", login.port),
        ("User", login.user or login.alias),
        ("IdentityFile", path_word(places.identity)),
        *_strict(places, login.host_key_alias),
    )
    return _block(login.alias, options)


def jump_block(login: HostEntry, certificate: PurePath, places: ConfigFiles) -> str:
    """The block of the jump to a task, through the name that :func:`host_block` makes and raises ValueError for."""
    options = (
        ("HostName", login.alias),
        ("Port", TASK_PORT),
        ("User", TASK_USER),
        ("ProxyJump", f"{login.alias}@{login.alias}"),  # without a user OpenSSH takes the two hops for a loop
        ("IdentityFile", path_word(places.identity)),
        ("CertificateFile", path_word(certificate)),
        *_strict(places, login.alias),
    )
    return _block(login.alias + JUMP, options)


def _strict(places: ConfigFiles, host_key_alias: str) -> Sequence[tuple[str, object]]:
    return (
        ("IdentitiesOnly", "yes"),
        ("UserKnownHostsFile", path_word(places.known_hosts)),
        ("StrictHostKeyChecking", "yes"),
        ("HostKeyAlias", host_key_alias),
        ("ServerAliveInterval", KEEPALIVE_INTERVAL_S),
        ("ServerAliveCountMax", KEEPALIVE_COUNT),
    )


def _block(name: str, options: Iterable[tuple[str, object]]) -> str:
    return "\n".join([f"Host {name}", *(f"    {key} {value}" for key, value in options)]) + "\n"


def config_text(logins: Iterable[HostEntry], places: ConfigFiles) -> str:
    """The whole included file: blocks in the order of their names, each name once, its jump behind it."""
    unique = {login.alias: login for login in logins}
    blocks = []
    for alias in sorted(unique):
        login = unique[alias]
        blocks.append(host_block(login, places))
        if login.jump_certificate is not None:
            blocks.append(jump_block(login, login.jump_certificate, places))
    return "\n".join(blocks)


def has_jumps(text: str) -> bool:
    """Whether an included file has names for jumps."""
    return any(line.startswith("Host ") and line.endswith(JUMP) for line in text.splitlines())


def known_hosts_text(lines: Iterable[str]) -> str:
    """A known_hosts file of these lines, each once. Raises ValueError for a line with a line break."""
    kept = sorted({line.strip() for line in lines if line.strip()})
    if any("\n" in line or "\r" in line for line in kept):
        raise ValueError("a known_hosts line has a line break in it")
    return "".join(f"{line}\n" for line in kept)


def include_line(config: PurePath) -> str:
    """The line for the user's own configuration; the comment says whose it is.

    The path is a pattern of glob(7), in which OpenSSH 9.9 and later also reads tokens and variables, and ``%%`` for a
    single one; earlier releases do not. Spelt ``?``, for any sign, a sign that begins one is the same for both.
    """
    path_word(config)  # raises for what has no spelling
    return f"Include {_word(re.sub(r'[%$[]', '?', config.as_posix()))}"


def with_include(text: str, config: PurePath) -> str:
    """The user's configuration with our line at its top; unchanged when it is there already.

    At the top, because an Include behind a ``Host`` line belongs to that block (ssh_config(5)).
    """
    line = include_line(config)
    if line in _leading_lines(text):
        return text
    rest = without_include(text, config)
    return f"{_MARK} names of running tasks\n{line}\n" + (f"\n{rest}" if rest else "")


def without_include(text: str, config: PurePath) -> str:
    """The user's configuration without our line; every other byte stays as it was."""
    lines = text.splitlines(keepends=True)
    line = include_line(config)
    for number, found in enumerate(lines):
        if found.rstrip("\r\n") == line:
            first = number - 1 if number and lines[number - 1].startswith(_MARK) else number
            behind = number + 1
            if first == 0 and behind < len(lines) and not lines[behind].strip():
                behind += 1  # the empty line that with_include put there
            return "".join(lines[:first] + lines[behind:])
    return text


def _leading_lines(text: str) -> Sequence[str]:
    """Lines before the first block."""
    leading: list[str] = []
    for line in text.splitlines():
        if re.match(r"\s*(host|match)\b", line, re.IGNORECASE):
            break
        leading.append(line)
    return leading
