"""Reading keys as people paste them, refusing what is none, and making the backend's own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
from pathlib import Path

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.keys import (
    fingerprint,
    gateway_client_key,
    gateway_host_key,
    gateway_host_public_key,
    gateway_public_key,
    known_hosts_alias_line,
    known_hosts_line,
    make_ed25519,
    parse_public_key,
    public_line,
    task_host_key,
)
from pai_backend.model.errors import InvalidParameters
from tests.support.ssh_fakes import MemoryStore


def _generated(path: Path, *args: str) -> tuple[str, str]:
    """(public line, fingerprint) of a key that OpenSSH made."""
    key = path / "key"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", "me@laptop", "-f", str(key), *args], check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", f"{key}.pub"], check=True, capture_output=True, text=True).stdout
    return Path(f"{key}.pub").read_text(), shown.split()[1]


@pytest.mark.parametrize(
    "args",
    [("-t", "ed25519"), ("-t", "rsa", "-b", "2048"), ("-t", "rsa", "-b", "4096")]
    + [("-t", "ecdsa", "-b", bits) for bits in ("256", "384", "521")],
    ids=" ".join,
)
def test_keys_of_openssh_are_read_with_its_own_fingerprint(tmp_path: Path, args: tuple[str, ...]) -> None:
    line, shown = _generated(tmp_path, *args)
    key = parse_public_key(line)
    assert key.fingerprint == shown
    assert f"{key.line} {key.comment}\n" == line
    assert (key.type, key.comment) == (line.split()[0], "me@laptop")


def test_a_security_token_key_is_read() -> None:
    blob = (b"sk-ssh-ed25519@openssh.com", bytes(range(32)), b"ssh:")

    data = b"".join(len(part).to_bytes(4, "big") + part for part in blob)
    line = f"sk-ssh-ed25519@openssh.com {base64.b64encode(data).decode()}"
    assert parse_public_key(line).fingerprint == fingerprint(data)
    assert parse_public_key(line).fingerprint == asyncssh.import_public_key(line).get_fingerprint()


def test_surrounding_blanks_and_comments_do_not_matter(tmp_path: Path) -> None:
    line, shown = _generated(tmp_path, "-t", "ed25519")
    assert parse_public_key(f"\n# my laptop\n\n   {line.strip()}  \r\n").fingerprint == shown


def test_the_file_that_puttygen_saves_is_read(tmp_path: Path) -> None:
    _, shown = _generated(tmp_path, "-t", "rsa", "-b", "2048")
    exported = subprocess.run(
        ["ssh-keygen", "-e", "-m", "RFC4716", "-f", str(tmp_path / "key.pub")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    key = parse_public_key(exported.replace('Comment: "', 'Comment: "laptop \\\nof '))
    assert key.fingerprint == shown
    with pytest.raises(InvalidParameters, match="end of the key is missing"):
        parse_public_key("\n".join(exported.splitlines()[:-1]))


PRIVATE = asyncssh.generate_private_key("ssh-ed25519")
PUBLIC = PRIVATE.export_public_key().decode().strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There is no key in it"),
        ("# only a comment", "There is no key in it"),
        (f"{PUBLIC}\n{PUBLIC}", "2 lines were given"),
        ("hello world", "does not begin with a public key type"),
        ("ssh-ed25519", "no key data"),
        ("ssh-ed25519 not*base64", "not base64"),
        (f"ssh-ed25519 {PUBLIC.split()[1][:-8]}", "damaged or cut short"),
        ("ssh-ed25519 AAAA", "an unsupported type or is damaged"),
        ("ssh-dss AAAAB3NzaC1kc3MAAA", "DSA keys are too weak"),
        (f'command="ls" {PUBLIC}', "Options before the key"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "certificate, not a public key"),
        ("x" * 20_000, "longer than"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "private key"),
    ],
    ids=[f"case{number}" for number in range(13)],  # the texts hold a key that is new in every process
)
def test_what_is_no_key_is_refused_with_reason_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InvalidParameters, match=message) as caught:
        parse_public_key(text)
    assert caught.value.hint


def test_a_short_rsa_key_is_refused(tmp_path: Path) -> None:
    line, _ = _generated(tmp_path, "-t", "rsa", "-b", "1024")
    with pytest.raises(InvalidParameters, match="1024 bits; at least 2048"):
        parse_public_key(line)


@pytest.mark.parametrize("form", ["openssh", "pkcs8-pem", "pkcs1-pem"])
def test_a_private_key_is_refused_and_not_repeated(form: str) -> None:
    text = asyncssh.generate_private_key("ssh-rsa", key_size=2048).export_private_key(form).decode()
    with pytest.raises(InvalidParameters, match="private key") as caught:
        parse_public_key(text)
    shown = f"{caught.value!r} {caught.value.message} {caught.value.hint}"
    assert not any(line in shown for line in text.splitlines()[1:-1])


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: "ssh-ed25519 " + raw.hex()))
def test_any_text_is_read_or_refused_but_never_breaks(text: str) -> None:
    with contextlib.suppress(InvalidParameters):
        assert parse_public_key(text).line.startswith("ssh-ed25519 ")


@given(st.text(max_size=300))
def test_a_comment_cannot_carry_control_characters(comment: str) -> None:
    try:
        key = parse_public_key(f"{PUBLIC} {comment}")
    except InvalidParameters:
        return
    assert key.comment.isprintable()
    assert key.line == " ".join(PUBLIC.split()[:2])


def test_a_made_key_is_one_that_openssh_reads(tmp_path: Path) -> None:
    pem, public = make_ed25519("pai")
    (tmp_path / "key").write_text(pem)
    (tmp_path / "key").chmod(0o600)
    shown = subprocess.run(["ssh-keygen", "-yf", str(tmp_path / "key")], check=True, capture_output=True, text=True)
    assert shown.stdout.split()[:2] == public.split()[:2]
    assert public.endswith(" pai")
    assert public_line(pem) == " ".join(public.split()[:2])


def test_a_wrong_private_key_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ValueError, match="not an OpenSSH private key") as caught:
        public_line("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n")
    assert "c2VjcmV0" not in repr(caught.value)


def test_known_hosts_lines_are_found_by_openssh(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    lines = [
        known_hosts_line("127.0.0.1", 2222, PUBLIC),
        known_hosts_line("gw.example.org", 22, PUBLIC),
        known_hosts_alias_line("pai-local", PUBLIC),
    ]
    file.write_text("\n".join(lines) + "\n")
    for name in ("[127.0.0.1]:2222", "gw.example.org", "pai-local"):
        assert subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True).returncode == 0


@pytest.mark.asyncio
async def test_the_backends_keys_are_made_once() -> None:
    store = MemoryStore().as_store()
    keys = await asyncio.gather(*(task_host_key(store, "j0-0-0") for _ in range(5)))
    assert len(set(keys)) == 1
    assert await task_host_key(store, "j0-0-1") not in keys
    assert await gateway_host_key(store) == await gateway_host_key(store)
    assert await gateway_client_key(store) != await gateway_host_key(store)
    assert (await gateway_public_key(store)).startswith(public_line(await gateway_client_key(store)))
    assert await gateway_host_public_key(store) == public_line(await gateway_host_key(store))
