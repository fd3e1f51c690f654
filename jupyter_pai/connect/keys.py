"""The user's SSH key for a cluster: made once, never sent anywhere but its public half.

Without a passphrase on purpose: editors that connect on their own cannot ask for one. The file is
private to the user and opens only this cluster's gateway.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

KEYGEN_TIMEOUT_S = 30.0


def ensure_key(identity: Path, comment: str) -> str:
    """The public key of ``identity``, made when there is none. Raises ClientError when it cannot be made."""
    public = identity.with_name(identity.name + ".pub")
    if not identity.exists():
        try:
            identity.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(identity, comment)
        except (OSError, subprocess.SubprocessError) as error:
            raise ClientError(
                Text("No SSH key could be made at {identity}: {error}", identity=identity, error=error),
                code="InvalidParametersError",
                hint="Check that the directory can be written to, or choose another with --ssh-dir.",
            ) from error
    if not public.exists():
        public.write_text(_public_half(identity) + "\n", encoding="ascii")
    return public.read_text(encoding="ascii").strip()


def _make(identity: Path, comment: str) -> None:
    """Make the pair under another name and rename, so that two at once cannot mix their halves."""
    draft = identity.with_name(f".{identity.name}.{os.getpid()}")
    draft_public = draft.with_name(draft.name + ".pub")
    keygen = shutil.which("ssh-keygen")
    if keygen is not None:
        command = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(draft)]
        subprocess.run(command, check=True, timeout=KEYGEN_TIMEOUT_S, stdin=subprocess.DEVNULL, capture_output=True)
    else:
        _make_without_openssh(draft, draft_public, comment)
    try:
        os.link(draft, identity)  # fails when another process was faster: its key stays
    except FileExistsError:
        draft_public.unlink()
    else:
        os.replace(draft_public, identity.with_name(identity.name + ".pub"))
    finally:
        draft.unlink()


def _make_without_openssh(private: Path, public: Path, comment: str) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    half = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode("ascii")
    public.write_text(f"{half} {comment}\n", encoding="ascii")


def _public_half(identity: Path) -> str:
    from cryptography.hazmat.primitives import serialization as form

    key = form.load_ssh_private_key(identity.read_bytes(), password=None)
    return key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode("ascii")
