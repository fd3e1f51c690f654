"""Sessions of PuTTY and xshell, character for character; host keys as PuTTY itself computes them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path, PureWindowsPath

import pytest

from jupyter_pai.connect import putty
from jupyter_pai.connect.putty import PuttySession
from jupyter_pai.connect.ssh_config import HostEntry
from tests.support.lacking import needs

LOGIN = HostEntry("train--w-0", "gateway.example.org", 2222, "pai-local")


def key_line(kind: str, *parts: bytes) -> str:
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(blob).decode()}"


BASE_X = 0x216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A
BASE_Y = 0x6666666666666666666666666666666666666666666666666666666666666658
BASE = key_line("ssh-ed25519", bytes.fromhex("58" + "66" * 31))
"""The base point of Ed25519 as if it were a key. Source: RFC 8032 §5.1."""


def test_a_session_of_putty() -> None:
    session = PuttySession(LOGIN, PureWindowsPath(r"C:\keys\train.ppk"), BASE)
    assert putty.putty_reg(session) == (
        "Windows Registry Editor Version 5.00\r\n"
        "\r\n"
        "[HKEY_CURRENT_USER\\Software\\SimonTatham\\PuTTY\\SshHostKeys]\r\n"
        f'"ssh-ed25519@2222:gateway.example.org"="0x{BASE_X:x},0x{BASE_Y:x}"\r\n'
        "\r\n"
        "[HKEY_CURRENT_USER\\Software\\SimonTatham\\PuTTY\\Sessions\\train--w-0]\r\n"
        '"HostName"="gateway.example.org"\r\n'
        '"PortNumber"=dword:000008ae\r\n'
        '"Protocol"="ssh"\r\n'
        '"UserName"="train--w-0"\r\n'
        '"PublicKeyFile"="C:\\\\keys\\\\train.ppk"\r\n'
        '"PingIntervalSecs"=dword:0000001e\r\n'
        '"TerminalType"="xterm-256color"\r\n'
    )


def test_a_session_of_xshell() -> None:
    session = PuttySession(LOGIN, PureWindowsPath(r"C:\keys\train.pem"), BASE)
    assert putty.xshell_session(session) == (
        "[SessionInfo]\r\nVersion=6.0\r\n"
        "[CONNECTION]\r\nProtocol=SSH\r\nHost=gateway.example.org\r\nPort=2222\r\n"
        "[CONNECTION:AUTHENTICATION]\r\nMethod=1\r\nUserName=train--w-0\r\nUserKey=train\r\n"
        "[CONNECTION:KEEPALIVE]\r\nKeepAlive=1\r\nKeepAliveInterval=30\r\n"
    )


def test_host_keys_of_other_types() -> None:
    assert putty.putty_host_key(key_line("ssh-rsa", b"\x01\x00\x01", b"\x00\xc3")) == ("rsa2", "0x10001,0xc3")
    point = b"\x04" + bytes(31) + b"\x05" + bytes(31) + b"\x07"
    assert putty.putty_host_key(key_line("ecdsa-sha2-nistp256", b"nistp256", point)) == (
        "ecdsa-sha2-nistp256",
        "nistp256,0x5,0x7",
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 ???",
        "ssh-ed25519 AAAA",
        key_line("ssh-ed25519", bytes(31)),
        key_line("ssh-ed25519", b"\xff" * 32),
        key_line("ssh-ed25519", (2).to_bytes(32, "little")),  # no point has this y
        "ssh-rsa " + BASE.split()[1],
        key_line("ssh-dss", b"\x01"),
    ],
)
def test_what_is_no_key_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a|does not support"):
        putty.putty_host_key(line)


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_putty_reads_the_same_point(tmp_path: Path, kind: str) -> None:
    """puttygen prints a public key's numbers; ours are the same, for keys that ssh-keygen made."""
    needs("puttygen")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(key)], check=True, timeout=60)
    shown = subprocess.run(
        ["puttygen", str(key), "-O", "text"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    numbers = dict(line.split("=", 1) for line in shown.splitlines() if "=0x" in line)
    _, value = putty.putty_host_key(key.with_name("key.pub").read_text())
    ours = [part for part in value.split(",") if part.startswith("0x")]
    names = ("public_exponent", "public_modulus") if kind == "rsa" else ("public_affine_x", "public_affine_y")
    assert ours == [numbers[name] for name in names]
