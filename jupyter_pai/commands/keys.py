"""``keys``: registered keys, the keys of jobs, certificates, and the audit of all of them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked, connected
from jupyter_pai.durations import seconds
from jupyter_pai.errors import OK, ClientError, NotFound

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import CertificateWire, KeyEventWire, KeyWire

FORMATS = ("openssh", "pem", "ppk", "ppk2")
ONLY = "allow only this: shell, exec, sftp, sftp-read, port:LABEL; more than one may be given"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    group = verbs.add_parser("keys", help="SSH keys and certificates: register, rotate, certify, revoke, audit")
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", parents=[common], help="your registered keys").set_defaults(run=list_keys)
    verb = actions.add_parser("add", parents=[common], help="register a public key")
    verb.add_argument("file", type=Path, help="the .pub file")
    verb.add_argument("--name", default="", help="what to call it; default: its comment")
    verb.add_argument("--for", dest="lifetime", type=duration, metavar="TIME", help="for how long, such as 30d")
    verb.add_argument("--job", help="only for this job")
    verb.set_defaults(run=add_key)
    verb = actions.add_parser("remove", parents=[common], help="remove a key; its logins end")
    verb.add_argument("key", help="its fingerprint or name")
    verb.set_defaults(run=remove)
    verb = actions.add_parser("rotate", parents=[common], help="register a key in place of another")
    verb.add_argument("key", help="the old one: its fingerprint or name")
    verb.add_argument("--to", type=Path, required=True, metavar="FILE", help="the .pub file of the new one")
    verb.add_argument("--now", action="store_true", help="remove the old one at once, not when the new one is used")
    verb.set_defaults(run=rotate)
    verb = actions.add_parser("job", parents=[common], help="fetch the private key of a job of yours")
    verb.add_argument("job", help="name or alias")
    verb.add_argument("--format", choices=FORMATS, default="openssh", help="pem: RSA, for old clients; ppk: PuTTY")
    verb.add_argument("--type", choices=("ed25519", "rsa"), help="default: ed25519, of pem rsa")
    verb.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write, readable by you only"
    )
    verb.set_defaults(run=job_key)
    _add_certificates(actions, common)


def _add_certificates(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser
) -> None:
    verb = actions.add_parser("certify", parents=[common], help="get a certificate for a public key")
    verb.add_argument("file", type=Path, help="the .pub file; the certificate is written beside it")
    verb.add_argument("--job", help="only for this job; default: all of yours")
    verb.add_argument("--for", dest="lifetime", type=duration, metavar="TIME", help="default 1h, at most 24h")
    verb.add_argument("--only", action="append", default=[], metavar="WHAT", help=ONLY)
    verb.add_argument("--no-pty", action="store_true", help="without a terminal")
    verb.add_argument("--as-admin", action="store_true", help="for another user's job; for administrators")
    verb.add_argument("--reason", default="", metavar="TEXT", help="with --as-admin: the reason, which the owner sees")
    verb.set_defaults(run=certify)
    verb = actions.add_parser("certificates", parents=[common], help="your valid certificates")
    verb.set_defaults(run=list_certificates)
    verb = actions.add_parser("revoke", parents=[common], help="revoke a certificate; its logins end")
    verb.add_argument("serial", type=int)
    verb.set_defaults(run=revoke)
    verb = actions.add_parser("audit", parents=[common], help="what was done to your keys, newest first")
    verb.add_argument("--everybody", action="store_true", help="the keys of all users; for administrators")
    verb.set_defaults(run=audit)
    verb = actions.add_parser("authority", parents=[common], help="the keys that sign accepted certificates")
    verb.add_argument("--rotate", action="store_true", help="sign with a new key from now on; for administrators")
    verb.set_defaults(run=authority)
    for name, text, run in (
        ("lock-out", "lock a user out: refuse all requests and end all logins; for administrators", lock_out),
        ("let-in", "end the lock-out of a user; for administrators", let_in),
    ):
        verb = actions.add_parser(name, parents=[common], help=text)
        verb.add_argument("user")
        verb.set_defaults(run=run)


def duration(text: str) -> int:
    """A length of time of the command line, in seconds. Raises ArgumentTypeError."""
    try:
        return seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def list_keys(args: argparse.Namespace, out: Output) -> int:
    """The caller's keys, a line each."""
    from jupyter_pai import broker

    found = asked(broker.keys)
    out.result(found, "\n".join(map(_key_line, found)) or "No key is registered.")
    return OK


def add_key(args: argparse.Namespace, out: Output) -> int:
    """Register a key."""
    from jupyter_pai import broker

    public = _public(args.file)
    key = asked(lambda api: broker.add_key(api, public, name=args.name, lifetime_s=args.lifetime, job=args.job))
    out.result(key, _key_line(key))
    return OK


def remove(args: argparse.Namespace, out: Output) -> int:
    """Forget a key."""
    with connected() as client:
        fingerprint = _find(client, args.key)
        client.delete_key(fingerprint)
    out.result({"removed": fingerprint}, f"Removed {fingerprint}.")
    return OK


def rotate(args: argparse.Namespace, out: Output) -> int:
    """Register the new key; the old one goes when the new one is used, or at once."""
    from jupyter_pai import broker

    public = _public(args.to)
    with connected() as client:
        old = _find(client, args.key)
        key = client.thread.run(broker.add_key(client.api, public, replaces="" if args.now else old))
        if args.now and key["fingerprint"] != old:
            client.delete_key(old)
    told = "was removed" if args.now else "is removed when the new one is first used"
    out.result(key, f"{_key_line(key)}\n{old} {told}.")
    return OK


def job_key(args: argparse.Namespace, out: Output) -> int:
    """Write a private key of the job's to a new file."""
    from jupyter_pai import broker

    text = asked(lambda api: broker.job_key(api, args.job, args.format, args.type))
    _write_private(args.output, text)
    out.result({"path": str(args.output)}, f"wrote {args.output}")
    return OK


def certify(args: argparse.Namespace, out: Output) -> int:
    """Write a certificate beside the public key, where OpenSSH looks for it."""
    from jupyter_pai import broker
    from jupyter_pai.certificates import certificate_file, write

    public = _public(args.file)
    terms = {"job": args.job, "lifetime_s": args.lifetime, "only": args.only, "pty": not args.no_pty}
    terms |= {"as_admin": args.as_admin, "reason": args.reason}
    made = asked(lambda api: broker.certify(api, public, **terms))
    path = certificate_file(args.file.with_suffix(""))
    write(path, made["certificate"])
    out.result({**made, "path": str(path)}, f"wrote {path}\n{_certificate_line(made)}")
    return OK


def list_certificates(args: argparse.Namespace, out: Output) -> int:
    """Certificates, a line each."""
    from jupyter_pai import broker

    found = asked(broker.certificates)
    out.result(found, "\n".join(map(_certificate_line, found)) or "You have no valid certificate.")
    return OK


def revoke(args: argparse.Namespace, out: Output) -> int:
    """Have a certificate refused."""
    from jupyter_pai import broker

    asked(lambda api: broker.revoke(api, args.serial))
    out.result({"revoked": args.serial}, f"Revoked {args.serial}.")
    return OK


def audit(args: argparse.Namespace, out: Output) -> int:
    """What was done, a line each."""
    from jupyter_pai import broker

    found = asked(lambda api: broker.audit(api, everybody=args.everybody))
    out.result(found, "\n".join(map(_event_line, found)) or "No events.")
    return OK


def authority(args: argparse.Namespace, out: Output) -> int:
    """Lines for ``TrustedUserCAKeys``."""
    from jupyter_pai import broker

    found = asked(broker.rotate_authority if args.rotate else broker.authority)
    out.result(found, "\n".join(found["keys"]))
    return OK


def lock_out(args: argparse.Namespace, out: Output) -> int:
    """Refuse a user."""
    from jupyter_pai import broker

    asked(lambda api: broker.lock_out(api, args.user))
    out.result({"locked_out": args.user}, f"{args.user} is locked out.")
    return OK


def let_in(args: argparse.Namespace, out: Output) -> int:
    """End a lock-out."""
    from jupyter_pai import broker

    asked(lambda api: broker.let_in(api, args.user))
    out.result({"let_in": args.user}, f"{args.user} is no longer locked out.")
    return OK


def _public(path: Path) -> str:
    """The text of a .pub file. Raises ClientError, also for a private key, which is not sent anywhere."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            f"{path} cannot be read: {error}", code="InvalidParametersError", hint="Name the .pub file of a key."
        ) from None
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        raise ClientError(
            f"{path} is a private key; nothing was sent.", code="InvalidParametersError", hint=f"Name {path}.pub."
        )
    return text


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads and that was not there before. Raises ClientError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ClientError(
            f"{path} cannot be written: {error.strerror}",
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
        reason = "No key of yours" if not fitting else f"{len(fitting)} keys of yours"
        raise NotFound(
            f"{reason} {'has' if len(fitting) < 2 else 'have'} the name {named!r}.",
            code="NoKeyError",
            hint="`pai keys list` shows fingerprints and names.",
        )
    return fitting[0]


def _key_line(key: KeyWire) -> str:
    used = f"used {key['last_used_at']} from {key['last_used_from']}" if key["last_used_at"] else "not used yet"
    terms = [f"until {key['expires_at']}"] if key["expires_at"] else []
    terms += [f"only for job {key['job']}"] if key["job"] else []
    terms += [f"in place of {key['replaces']}"] if key["replaces"] else []
    return "  ".join([key["fingerprint"], key["name"] or "-", *terms, used])


def _certificate_line(made: CertificateWire) -> str:
    only = " ".join(made["only"]) or "everything"
    return f"{made['serial']}  {made['user']}  {only}  until {made['expires_at']}  {' '.join(made['principals'])}"


def _event_line(event: KeyEventWire) -> str:
    place = f" from {event['source']}" if event["source"] else ""
    return f"{event['at']}  {event['type']}  {event['subject']}  by {event['by']}{place}  {event['detail']}".rstrip()
