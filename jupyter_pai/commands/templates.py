"""``templates``: documents that jobs begin with."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected, read_document
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, verb
from pai_backend.model.text import Text

_NEEDED = {"show": 1, "save": 2, "delete": 1}


def template_names(args: argparse.Namespace) -> Iterable[str]:
    """Templates that the user may begin with."""
    from jupyter_pai import templates

    with connected(start=False) as client:
        return [each["name"] for each in client.thread.run(templates.templates(client.api))]


@verb(
    "templates",
    argument("action", nargs="?", choices=tuple(_NEEDED), help="print the document; keep one of your own; delete it"),
    argument("name", nargs="?", help="the template", completer=template_names),
    argument("file", nargs="?", files=True, help="save: the document; - reads stdin"),
)
def templates_(args: argparse.Namespace, out: Output) -> int:
    """List templates of documents: those that are shipped, the site's, and your own.

    ``pai submit --template NAME`` submits one as it is. ``pai templates save NAME FILE`` keeps a document as a template
    of yours, without the values of its secrets; it hides another one of its name until it is deleted.
    """
    from jupyter_pai import templates

    given = [word for word in (args.name, args.file) if word is not None]
    if args.action is not None and len(given) != _NEEDED[args.action]:
        usage = f"pai templates {args.action} NAME{' FILE' if args.action == 'save' else ''}"
        raise ClientError(Text("Write `{usage}`.", usage=usage), code="InvalidParametersError")
    document = read_document(args.file) if args.action == "save" else None
    with connected() as client:
        if args.action is None:
            found = client.thread.run(templates.templates(client.api))
            out.result(found, templates.templates_text(found))
        elif args.action == "show":
            out.content(client.thread.run(templates.document(client.api, args.name)))
        elif document is not None:
            client.thread.run(templates.save(client.api, args.name, document.data, document.filename))
            out.result({"saved": args.name}, tr("Saved: `pai submit --template {name}` submits it.", name=args.name))
        else:
            client.thread.run(templates.delete(client.api, args.name))
            out.result({"deleted": args.name}, tr("The template {name} is deleted.", name=args.name))
    return OK
