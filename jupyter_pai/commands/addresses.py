"""``addresses``: workspace names, which outlive the jobs that hold them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, verb


def address_names(args: argparse.Namespace) -> Iterable[str]:
    """The user's workspace names."""
    from jupyter_pai import workspace_names

    with connected(start=False) as client:
        return [each["name"] for each in client.thread.run(workspace_names.addresses(client.api))]


@verb(
    "addresses",
    argument("action", nargs="?", choices=("release",), help="release: reserve a name no longer"),
    argument("name", nargs="?", help="release: the workspace name", completer=address_names),
)
def addresses(args: argparse.Namespace, out: Output) -> int:
    """List workspace names and which job holds each, or release one.

    A name is reserved by the first job that is submitted with it (``--address NAME``, or ``address`` in the document),
    and stays so until ``pai addresses release NAME``. That is refused while a job that has not ended holds it.
    """
    from jupyter_pai import workspace_names

    if args.action is not None and args.name is None:
        raise ClientError(
            "A workspace name is missing.",
            code="InvalidParametersError",
            hint="Write `pai addresses release NAME`; `pai addresses` lists them.",
        )
    with connected() as client:
        if args.action is None:
            found = client.thread.run(workspace_names.addresses(client.api))
            out.result(found, workspace_names.addresses_text(found))
            return OK
        client.thread.run(workspace_names.release(client.api, args.name))
    out.result({"released": args.name}, tr("The workspace name {name} is released.", name=args.name))
    return OK
