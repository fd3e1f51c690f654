"""``images``: those of the machine that runs the tasks."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, verb
from pai_backend.model.text import Text


@verb(
    "images",
    argument("action", nargs="?", choices=("list", "remove"), default="list", help="default: list"),
    argument("image", nargs="?", metavar="IMAGE", help="what to remove, by its name or identity"),
)
def images(args: argparse.Namespace, out: Output) -> int:
    """Images on the server: size, last use, and why each stays; administrators remove one.

    You see images that you ran and those that the site offers. Only the engine `containers` keeps images.
    """
    from jupyter_pai import images as calls

    if (args.action == "remove") != (args.image is not None):
        raise ClientError(
            Text("Name the image with `remove`, and only there."),
            code="InvalidParametersError",
            hint=Text("`pai images` lists them."),
        )
    with connected() as client:
        if args.action == "remove":
            client.thread.run(calls.remove(client.api, args.image))
            out.result({"image": args.image}, tr("Removed {image}.", image=args.image))
            return OK
        found = client.thread.run(calls.images(client.api))
    out.result(found["data"], calls.images_text(found))
    return OK
