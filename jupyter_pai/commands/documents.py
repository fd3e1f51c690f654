"""``submit``, ``validate``, ``convert`` and ``config``: job documents on their way in and out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupyter_pai import announced
from jupyter_pai.commands.arguments import JOB
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import DocumentFile, connected, converted, read_document, write_document
from jupyter_pai.commands.sweeps import SWEEP, submit_sweep
from jupyter_pai.commands.templates import template_names
from jupyter_pai.commands.waiting import wait
from jupyter_pai.errors import OK, USAGE, ClientError, InvalidDocument, from_wire, worded
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, one_of, verb

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

DOCUMENT = argument("file", document=True, help="the document; - reads stdin")


@verb(
    "submit",
    argument("file", nargs="?", document=True, help="the document; - reads stdin"),
    argument("--template", metavar="NAME", help="submit a template instead", completer=template_names),
    argument("--name", help="name of the job, instead of the document's"),
    argument("--address", metavar="NAME", help="workspace name that the job takes over, instead of the document's"),
    *SWEEP,
    flag("--wait", help="show the log until the job has ended; exit code 1 if it failed"),
    one_of(
        flag("--fresh-name", help="if the name is taken, append a number"),
        flag("--replace", help="if the name or address is taken, stop the job that has it and take its place"),
    ),
    flag("--yes", help="convert a document in GBK to UTF-8 without asking"),
)
def submit(args: argparse.Namespace, out: Output) -> int:
    """Submit a job document.

    With ``--replace`` the new job has the name of the earlier one at once, its alias and its host keys, and starts as
    soon as that has ended. The earlier job is stopped, and kept under its name with a part of its uid.

    With ``--sweep`` it makes a job for each combination of values, which `pai sweep` lists.
    """
    from jupyter_pai import submitting

    if (args.file is None) == (args.template is None):
        raise ClientError("Name either a document or a --template.", code="InvalidParametersError")
    given = None if args.file is None else converted(read_document(args.file), out, agreed=args.yes)
    if given is None and args.template is None:
        return USAGE
    with connected() as client:
        announced.tell(client, out.progress)
        document = given or _template(client, args.template)
        if args.sweep:
            return submit_sweep(client, document.data, args, out)
        try:
            work = submitting.submit(
                client.api,
                document.data,
                name=args.name,
                filename=document.filename,
                fresh_name=args.fresh_name,
                replace=args.replace,
                address=args.address,
            )
            job = client.thread.run(work)
        except InvalidDocument as error:
            return _refused(error, document, out)
        if not args.wait:
            out.job(client, job)
            return OK
        out.awaited(client, job)
        return wait(client, job["uid"], out, show_log=True)


@verb(
    "clone",
    JOB,
    argument("--name", help="name of the new job; default: the job's with a number behind, such as train_2"),
    flag("--wait", help="show the log until the job has ended; exit code 1 if it failed"),
)
def clone(args: argparse.Namespace, out: Output) -> int:
    """Submit a job's document again, as a new job.

    It goes byte for byte, secrets included. Of another user's job they are masked, so that it is refused.
    """
    from jupyter_pai import submitting

    with connected() as client:
        earlier = client.job(args.job)
        job = client.thread.run(submitting.clone(client.api, earlier, args.name))
        if not args.wait:
            out.job(client, job)
            return OK
        out.awaited(client, job)
        return wait(client, job["uid"], out, show_log=True)


def _template(client: Client, name: str) -> DocumentFile:
    """A template as a document. Raises NotFound."""
    from jupyter_pai import templates

    return DocumentFile(client.thread.run(templates.document(client.api, name)), name, None)


def _refused(error: ClientError, document: DocumentFile, out: Output) -> int:
    out.error(error, source=document.text, name=document.name)
    return error.exit_code


@verb("validate", DOCUMENT)
def validate(args: argparse.Namespace, out: Output) -> int:
    """Read a document without a backend and list its faults.

    The rules are those of this installation. Whether you keep the secrets that the document names, only a backend
    knows.
    """
    document = read_document(args.file)
    # These two bring pydantic along, which no other verb pays for.
    from pai_backend.model.errors import DocumentError
    from pai_backend.protocol import read_document as read_protocol

    try:
        read = read_protocol(document.data, document.filename)
    except DocumentError as error:
        faults = [fault.model_dump(mode="json", by_alias=True) for fault in error.errors]
        if out.as_json:
            answer: dict[str, object] = {
                "valid": False,
                "dialect": None,
                "name": None,
                "warnings": [],
                "errors": faults,
                "spec": None,
            }
            out.json_line(answer, indent=2)
            return USAGE
        return _refused(from_wire(400, error.body().model_dump(mode="json", by_alias=True)), document, out)
    warnings = [warning.model_dump(mode="json", by_alias=True) for warning in read.warnings]
    result = {
        "valid": True,
        "dialect": str(read.dialect),
        "name": read.spec.name,
        "warnings": warnings,
        "errors": [],
        "spec": read.spec.model_dump(mode="json", by_alias=True),
    }
    lines = [
        tr(
            "{name}: a valid {dialect} document, job {job}",
            name=document.name,
            dialect=read.dialect,
            job=read.spec.name,
        )
    ]
    lines += [f"! {tr(worded(warning, 'message', 'wording'))}" for warning in warnings]
    out.result(result, "\n".join(lines))
    return OK


@verb(
    "convert",
    DOCUMENT,
    argument("--to", required=True, choices=("openpai-v1", "openpai-v2"), help="the protocol to write"),
    argument("-o", "--output", files=True, metavar="OUT", help="the file to write; stdout when left out"),
)
def convert(args: argparse.Namespace, out: Output) -> int:
    """Convert a document to the other protocol and list what is lost.

    The list goes to stderr. No backend is needed.
    """
    document = read_document(args.file)
    from pai_backend.model.errors import DocumentError
    from pai_backend.protocol import read_document as read_protocol
    from pai_backend.protocol.convert import to_v1, to_v2

    try:
        read = read_protocol(document.data, document.filename)
        converted = to_v1(read) if args.to == "openpai-v1" else to_v2(read)
    except DocumentError as error:
        return _refused(from_wire(400, error.body().model_dump(mode="json", by_alias=True)), document, out)
    text = None if args.output else converted.text
    if args.output:
        write_document(args.output, converted.text)
    for loss in converted.lost:
        out.progress(_lost(loss.model_dump(mode="json", by_alias=True)))
    if out.as_json:
        lost = [loss.model_dump(mode="json", by_alias=True) for loss in converted.lost]
        out.json_line({"dialect": args.to, "name": read.spec.name, "document": text, "lost": lost}, indent=2)
    elif text is not None:
        out.content(text.encode())
    return OK


def _lost(loss: Mapping[str, object]) -> str:
    message, hint = tr(worded(loss, "message", "wording")), tr(worded(loss, "hint", "hintWording"))
    return f"! {loss['code']} {loss['path']}: {message}" + (f" — {hint}" if hint else "")


@verb("config", JOB)
def config(args: argparse.Namespace, out: Output) -> int:
    """Print a job's document as it was submitted.

    It comes byte for byte; ``--json`` wraps it with its media type.
    """
    with connected() as client:
        source = client.source(args.job)
    if out.as_json:
        out.json_line({"document": source.data.decode(errors="replace"), "mediaType": source.media_type}, indent=2)
    else:
        out.content(source.data)
    return OK
