"""Sessions of PuTTY and xshell as files to import. Pure.

Neither reads OpenSSH's configuration. The gateway's routing by user name is what lets them reach a task at
all: host, port, user and key are everything there is to type.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import PureWindowsPath
from urllib.parse import quote

from jupyter_pai.connect.ssh_config import KEEPALIVE_INTERVAL_S, HostEntry

_PUTTY = r"HKEY_CURRENT_USER\Software\SimonTatham\PuTTY"

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
"""The field and the constant of Ed25519. Source: RFC 8032 §5.1."""


@dataclass(frozen=True)
class PuttySession:
    """A login with the key file that PuTTY or xshell is to use, and the gateway's host key."""

    login: HostEntry
    key: PureWindowsPath
    host_key: str


def putty_host_key(public_key: str) -> tuple[str, str]:
    """A ``type base64`` public key as PuTTY stores it: the name of its algorithm there, and its value.

    Raises ValueError for a key that cannot be read, or of a type that PuTTY 0.70 to 0.83 has no form for.
    Source: PuTTY's ``sshpubk`` and the script ``kh2reg.py`` of its contributions.
    """
    kind, blob = _fields(public_key)
    if kind == "ssh-ed25519" and len(blob) == 1 and len(blob[0]) == 32:
        x, y = _edwards_point(blob[0])
        return kind, f"{x:#x},{y:#x}"
    if kind == "ssh-rsa" and len(blob) == 2:
        exponent, modulus = (int.from_bytes(each, "big") for each in blob)
        return "rsa2", f"{exponent:#x},{modulus:#x}"
    if kind.startswith("ecdsa-sha2-nistp") and len(blob) == 2 and blob[1][:1] == b"\x04":
        half = len(blob[1]) // 2
        x, y = int.from_bytes(blob[1][1 : half + 1], "big"), int.from_bytes(blob[1][half + 1 :], "big")
        return kind, f"{blob[0].decode('ascii')},{x:#x},{y:#x}"
    raise ValueError(f"PuTTY does not support keys of type {kind}")


def _fields(public_key: str) -> tuple[str, list[bytes]]:
    """The type and the other strings of a key's blob (RFC 4253 §6.6)."""
    words = public_key.split()
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ValueError("not a public key") from error
    strings: list[bytes] = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length or length == 0:
            raise ValueError("not a public key: it is cut short")
        strings.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    if not strings or strings[0] != words[0].encode("ascii", errors="replace"):
        raise ValueError("not a public key: its type is another than it says")
    return words[0], strings[1:]


def _edwards_point(encoded: bytes) -> tuple[int, int]:
    """The point that 32 bytes stand for. Raises ValueError when there is none. Source: RFC 8032 §5.1.3."""
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or y >= _P:
        raise ValueError("not a point of Ed25519")
    return (_P - x if x & 1 != encoded[31] >> 7 else x), y


def _registry_text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def putty_reg(session: PuttySession) -> str:
    r"""A ``.reg`` file with the session and the gateway's host key, so that PuTTY asks about nothing.

    Write it as ``utf-16`` with ``\r\n``, which regedit expects of version 5. Raises ValueError as
    :func:`putty_host_key`.
    """
    login = session.login
    kind, value = putty_host_key(session.host_key)
    lines = [
        "Windows Registry Editor Version 5.00",
        "",
        rf"[{_PUTTY}\SshHostKeys]",
        f"{_registry_text(f'{kind}@{login.port}:{login.host}')}={_registry_text(value)}",
        "",
        rf"[{_PUTTY}\Sessions\{quote(login.alias)}]",
        f'"HostName"={_registry_text(login.host)}',
        f'"PortNumber"=dword:{login.port:08x}',
        '"Protocol"="ssh"',
        f'"UserName"={_registry_text(login.alias)}',
        f'"PublicKeyFile"={_registry_text(str(session.key))}',
        f'"PingIntervalSecs"=dword:{KEEPALIVE_INTERVAL_S:08x}',
        '"TerminalType"="xterm-256color"',
        "",
    ]
    return "\r\n".join(lines)


def xshell_session(session: PuttySession) -> str:
    r"""A ``.xsh`` session for xshell. Write it as ``utf-16``; a user key is named, and imported beforehand.

    Source: sessions written by Xshell 6, which later ones take over; what is left out stands for xshell's
    defaults. ``SendKeepAlive`` is not meant: that types a text into the terminal.
    """
    login = session.login
    lines = [
        "[SessionInfo]",
        "Version=6.0",
        "[CONNECTION]",
        "Protocol=SSH",
        f"Host={login.host}",
        f"Port={login.port}",
        "[CONNECTION:AUTHENTICATION]",
        "Method=1",
        f"UserName={login.alias}",
        f"UserKey={session.key.stem}",
        "[CONNECTION:KEEPALIVE]",
        "KeepAlive=1",
        f"KeepAliveInterval={KEEPALIVE_INTERVAL_S}",
        "",
    ]
    return "\r\n".join(lines)
