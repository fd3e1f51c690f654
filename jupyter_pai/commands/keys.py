"""``keys``: registered keys, the keys of jobs and certificates."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.arguments import JOB, job_names, key_names
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked, connected
from jupyter_pai.durations import seconds
from jupyter_pai.errors import OK, ClientError, NotFound
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import CertificateWire, KeyWire

FORMATS = ("openssh", "pem", "ppk", "ppk2")
GROUPS["keys"] = "SSH keys and certificates: register, rotate, certify, revoke"

JOB_OF_KEY = argument("--job", help="only for this job", completer=job_names)
USER = argument("user", help="their name")
ONLY = argument(
    "--only",
    action="append",
    default=[],
    metavar="WHAT",
    help="allow only this: shell, exec, sftp, sftp-read, port:LABEL; more than one may be given",
)


def duration(text: str) -> int:
    """A length of time of the command line, in seconds. Raises ArgumentTypeError."""
    try:
        return seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@verb("keys list")
def list_keys(args: argparse.Namespace, out: Output) -> int:
    """Your registered keys."""
    from jupyter_pai import broker

    found = asked(broker.keys)
    out.result(found, "\n".join(map(_key_line, found)) or tr("No key is registered."))
    return OK


@verb(
    "keys add",
    argument("file", type=Path, help="the .pub file"),
    argument("--name", default="", help="what to call it; default: its comment"),
    argument("--for", dest="lifetime", type=duration, metavar="TIME", help="for how long, such as 30d"),
    JOB_OF_KEY,
)
def add_key(args: argparse.Namespace, out: Output) -> int:
    """Register a public key."""
    from jupyter_pai import broker

    public = _public(args.file)
    key = asked(lambda api: broker.add_key(api, public, name=args.name, lifetime_s=args.lifetime, job=args.job))
    out.result(key, _key_line(key))
    return OK


@verb("keys remove", argument("key", help="its fingerprint or name", completer=key_names))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a key; its logins end."""
    with connected() as client:
        fingerprint = _find(client, args.key)
        client.delete_key(fingerprint)
    out.result({"removed": fingerprint}, tr("Removed {fingerprint}.", fingerprint=fingerprint))
    return OK


@verb(
    "keys rotate",
    argument("key", help="the old one: its fingerprint or name", completer=key_names),
    argument("--to", type=Path, required=True, metavar="FILE", help="the .pub file of the new one"),
    flag("--now", help="remove the old one at once, not when the new one is used"),
)
def rotate(args: argparse.Namespace, out: Output) -> int:
    """Register a key in place of another."""
    from jupyter_pai import broker

    public = _public(args.to)
    with connected() as client:
        old = _find(client, args.key)
        key = client.thread.run(broker.add_key(client.api, public, replaces="" if args.now else old))
        if args.now and key["fingerprint"] != old:
            client.delete_key(old)
    told = (
        tr("{old} was removed.", old=old)
        if args.now
        else tr("{old} is removed when the new one is first used.", old=old)
    )
    out.result(key, f"{_key_line(key)}\n{told}")
    return OK


@verb(
    "keys job",
    JOB,
    argument("--format", choices=FORMATS, default="openssh", help="pem: RSA, for old clients; ppk: PuTTY"),
    argument("--type", choices=("ed25519", "rsa"), help="default: ed25519, of pem rsa"),
    argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write, readable by you only"
    ),
)
def job_key(args: argparse.Namespace, out: Output) -> int:
    """Fetch the private key of a job of yours."""
    from jupyter_pai import broker

    text = asked(lambda api: broker.job_key(api, args.job, args.format, args.type))
    _write_private(args.output, text)
    out.result({"path": str(args.output)}, tr("wrote {path}", path=args.output))
    return OK


@verb(
    "keys certify",
    argument("file", type=Path, help="the .pub file; the certificate is written beside it"),
    argument("--job", help="only for this job; default: all of yours", completer=job_names),
    argument("--for", dest="lifetime", type=duration, metavar="TIME", help="default 1h, at most 24h"),
    ONLY,
    flag("--no-pty", help="without a terminal"),
    flag("--as-admin", help="for another user's job; for administrators"),
    argument("--reason", default="", metavar="TEXT", help="with --as-admin: the reason, which the owner sees"),
)
def certify(args: argparse.Namespace, out: Output) -> int:
    """Get a certificate for a public key."""
    from jupyter_pai import broker
    from jupyter_pai.certificates import certificate_file, write

    public = _public(args.file)
    terms = {"job": args.job, "lifetime_s": args.lifetime, "only": args.only, "pty": not args.no_pty}
    terms |= {"as_admin": args.as_admin, "reason": args.reason}
    made = asked(lambda api: broker.certify(api, public, **terms))
    path = certificate_file(args.file.with_suffix(""))
    write(path, made["certificate"])
    out.result({**made, "path": str(path)}, tr("wrote {path}", path=path) + "\n" + _certificate_line(made))
    return OK


@verb("keys certificates")
def list_certificates(args: argparse.Namespace, out: Output) -> int:
    """Your valid certificates."""
    from jupyter_pai import broker

    found = asked(broker.certificates)
    out.result(found, "\n".join(map(_certificate_line, found)) or tr("You have no valid certificate."))
    return OK


@verb("keys revoke", argument("serial", type=int, help="its number"))
def revoke(args: argparse.Namespace, out: Output) -> int:
    """Revoke a certificate; its logins end."""
    from jupyter_pai import broker

    asked(lambda api: broker.revoke(api, args.serial))
    out.result({"revoked": args.serial}, tr("Revoked {serial}.", serial=args.serial))
    return OK


@verb("keys authority", flag("--rotate", help="sign with a new key from now on; for administrators"))
def authority(args: argparse.Namespace, out: Output) -> int:
    """The keys that sign accepted certificates.

    They are lines for ``TrustedUserCAKeys``.
    """
    from jupyter_pai import broker

    found = asked(broker.rotate_authority if args.rotate else broker.authority)
    out.result(found, "\n".join(found["keys"]))
    return OK


def _public(path: Path) -> str:
    """The text of a .pub file. Raises ClientError, also for a private key, which is not sent anywhere."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            Text("{path} cannot be read: {error}", path=path, error=error),
            code="InvalidParametersError",
            hint="Name the .pub file of a key.",
        ) from None
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        raise ClientError(
            Text("{path} is a private key; nothing was sent.", path=path),
            code="InvalidParametersError",
            hint=Text("Name {path}.pub.", path=path),
        )
    return text


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads and that was not there before. Raises ClientError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ClientError(
            Text("{path} cannot be written: {strerror}", path=path, strerror=error.strerror),
            code="InvalidParametersError",
            hint="Name a new file; existing files are not overwritten.",
        ) from None
    with os.fdopen(handle, "w", encoding="ascii", newline="") as file:
        file.write(text)


def _find(client: Client, named: str) -> str:
    """The fingerprint of the key of that fingerprint or name. Raises NotFound."""
    from jupyter_pai import broker

    found = client.thread.run(broker.keys(client.api))
    fitting = [key["fingerprint"] for key in found if named in (key["fingerprint"], key["name"])]
    if len(fitting) != 1:
        none = Text("No key of yours has the name {name}.", name=repr(named))
        many = Text("{number} keys of yours have the name {name}.", number=len(fitting), name=repr(named))
        raise NotFound(
            many if fitting else none,
            code="NoKeyError",
            hint="`pai keys list` shows fingerprints and names.",
        )
    return fitting[0]


def _key_line(key: KeyWire) -> str:
    used = (
        tr(
            "used {last_used_at} from {last_used_from}",
            last_used_at=key["lastUsedAt"],
            last_used_from=key["lastUsedFrom"],
        )
        if key["lastUsedAt"]
        else tr("not used yet")
    )
    terms = [tr("until {expires_at}", expires_at=key["expiresAt"])] if key["expiresAt"] else []
    terms += [tr("only for job {job}", job=key["job"])] if key["job"] else []
    terms += [tr("in place of {replaces}", replaces=key["replaces"])] if key["replaces"] else []
    return "  ".join([key["fingerprint"], key["name"] or "-", *terms, used])


def _certificate_line(made: CertificateWire) -> str:
    only = " ".join(made["only"]) or tr("everything")
    return tr(
        "{serial}  {user}  {only}  until {expires_at}  {principals}",
        serial=made["serial"],
        user=made["user"],
        only=only,
        expires_at=made["expiresAt"],
        principals=" ".join(made["principals"]),
    )
