"""``submit``, ``validate``, ``convert`` and ``config``: job documents on their way in and out."""

from __future__ import annotations

import argparse

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import Document, connected, read_document, write_document
from jupyter_pai.commands.waiting import wait
from jupyter_pai.errors import OK, USAGE, ClientError, InvalidDocument, from_wire


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    verb = verbs.add_parser("submit", parents=[common], help="submit a job document")
    verb.add_argument("file", help="the document; - reads stdin")
    verb.add_argument("--name", help="name of the job, instead of the document's")
    verb.add_argument(
        "--wait", action="store_true", help="show the log until the job has ended; exit code 1 if it failed"
    )
    verb.add_argument("--fresh-name", action="store_true", help="if the name is taken, append a number")
    verb.set_defaults(run=submit)
    verb = verbs.add_parser("validate", parents=[common], help="read a document without a backend and list its faults")
    verb.add_argument("file", help="the document; - reads stdin")
    verb.set_defaults(run=validate)
    verb = verbs.add_parser(
        "convert", parents=[common], help="convert a document to the other protocol and list what is lost"
    )
    verb.add_argument("file", help="the document; - reads stdin")
    verb.add_argument("--to", required=True, choices=("openpai-v1", "openpai-v2"), help="the protocol to write")
    verb.add_argument("-o", "--output", metavar="OUT", help="the file to write; stdout when left out")
    verb.set_defaults(run=convert)
    verb = verbs.add_parser("config", parents=[common], help="print a job's document as it was submitted")
    verb.add_argument("job", help="name or alias")
    verb.set_defaults(run=config)


def submit(args: argparse.Namespace, out: Output) -> int:
    """Submit a document; with ``--wait`` stay until the end."""
    from jupyter_pai import submitting

    document = read_document(args.file)
    with connected() as client:
        try:
            work = submitting.submit(
                client.api,
                document.data,
                name=args.name,
                filename=document.filename,
                fresh_name=args.fresh_name,
            )
            job = client.thread.run(work)
        except InvalidDocument as error:
            return _refused(error, document, out)
        if not args.wait:
            out.result(job, render.job_page(job))
            return OK
        for line in render.warning_lines(job["warnings"]):
            out.progress(line)
        return wait(client, job["uid"], out, show_log=True)


def _refused(error: ClientError, document: Document, out: Output) -> int:
    out.error(error, source=document.text, name=document.name)
    return error.exit_code


def validate(args: argparse.Namespace, out: Output) -> int:
    """Read a document with the rules of this installation; needs no backend."""
    document = read_document(args.file)
    # These two bring pydantic along, which no other verb pays for.
    from pai_backend.model.errors import DocumentError
    from pai_backend.protocol import read_document as read_protocol

    try:
        read = read_protocol(document.data, document.filename)
    except DocumentError as error:
        faults = [fault.model_dump(mode="json") for fault in error.errors]
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
        return _refused(from_wire(400, error.body().model_dump(mode="json")), document, out)
    warnings = [warning.model_dump(mode="json") for warning in read.warnings]
    result = {
        "valid": True,
        "dialect": str(read.dialect),
        "name": read.spec.name,
        "warnings": warnings,
        "errors": [],
        "spec": read.spec.model_dump(mode="json"),
    }
    lines = [f"{document.name}: a valid {read.dialect} document, job {read.spec.name}"]
    lines += [f"! {warning.message}" for warning in read.warnings]
    out.result(result, "\n".join(lines))
    return OK


def convert(args: argparse.Namespace, out: Output) -> int:
    """Write a document in another protocol; what it cannot say goes to stderr. Needs no backend."""
    document = read_document(args.file)
    from pai_backend.model.errors import DocumentError
    from pai_backend.protocol import read_document as read_protocol
    from pai_backend.protocol.convert import to_v1, to_v2

    try:
        read = read_protocol(document.data, document.filename)
        converted = to_v1(read) if args.to == "openpai-v1" else to_v2(read)
    except DocumentError as error:
        return _refused(from_wire(400, error.body().model_dump(mode="json")), document, out)
    text = None if args.output else converted.text
    if args.output:
        write_document(args.output, converted.text)
    for loss in converted.lost:
        out.progress(f"! {loss.code} {loss.path}: {loss.message}" + (f" — {loss.hint}" if loss.hint else ""))
    if out.as_json:
        lost = [loss.model_dump(mode="json") for loss in converted.lost]
        out.json_line({"dialect": args.to, "name": read.spec.name, "document": text, "lost": lost}, indent=2)
    elif text is not None:
        out.raw(text.encode())
    return OK


def config(args: argparse.Namespace, out: Output) -> int:
    """The document byte for byte; ``--json`` wraps it with its media type."""
    with connected() as client:
        source = client.source(args.job)
    if out.as_json:
        out.json_line({"document": source.data.decode(errors="replace"), "mediaType": source.media_type}, indent=2)
    else:
        out.raw(source.data)
    return OK
