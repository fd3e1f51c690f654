"""``group``: groups of users, and the virtual clusters that their members may use or manage."""

from __future__ import annotations

import argparse
from typing import Any, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.users import ask, names
from jupyter_pai.errors import JOB_FAILED, OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb

PATH = "/api/v2/groups"
GROUPS["group"] = "Groups of users: list, add, change, remove; for administrators"

GROUP = argument("group", help="its name; `default` is every user")
DESCRIPTION = argument("--description", help="one line about it")
EXTERNAL = argument("--external-name", help="its name at the provider that signs users in")
MEMBERS = argument("--members", metavar="A,B", help="the users in it, and no others")
USE = argument("--vc", metavar="A,B", help="virtual clusters that members may use, and no others")
MANAGES = argument("--manages", metavar="A,B", help="virtual clusters that members manage, and no others")


@verb("group list")
def list_groups(args: argparse.Namespace, out: Output) -> int:
    """The groups that you may see, and what their members may use."""
    found = cast(list[dict[str, Any]], asked(lambda api: ask(api, "GET", PATH)))
    rows = [(each["groupname"], ", ".join(each["members"]), *_clusters(each), each["description"]) for each in found]
    out.result(found, render.table(("GROUP", "MEMBERS", "VIRTUAL CLUSTERS", "MANAGES", "DESCRIPTION"), rows))
    return OK


def _clusters(group: dict[str, Any]) -> tuple[str, str]:
    acls = group["extension"]["acls"]
    used = "all" if acls["everything"] else ", ".join(acls["virtualClusters"])
    return used, ", ".join(acls["manages"])


@verb("group add", GROUP, DESCRIPTION, EXTERNAL, MEMBERS, USE, MANAGES)
def add(args: argparse.Namespace, out: Output) -> int:
    """Add a group."""
    made = asked(lambda api: ask(api, "POST", PATH, {"groupname": args.group, **_given(args)}))
    out.result(made, tr("Added the group {group}.", group=args.group))
    return OK


@verb("group set", GROUP, DESCRIPTION, EXTERNAL, MEMBERS, USE, MANAGES)
def change(args: argparse.Namespace, out: Output) -> int:
    """Change a group; for administrators, and for managers what they manage.

    Until the virtual clusters of `default` are set, every user may use all of them.
    """
    body = {"data": _given(args), "patch": True}
    changed = asked(lambda api: ask(api, "PUT", _path(args.group), body))
    out.result(changed, tr("Changed the group {group}.", group=args.group))
    return OK


@verb("group remove", GROUP, flag("--yes", help="do not ask"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a group. Members lose what it let them use; of `default` the opposite: everyone may use all again."""
    if not args.yes and not out.agreed(tr("remove the group {group}", group=args.group), tr("No group was removed.")):
        return JOB_FAILED
    asked(lambda api: ask(api, "DELETE", _path(args.group)))
    out.result({"removed": args.group}, tr("Removed the group {group}.", group=args.group))
    return OK


def _path(group: str) -> str:
    return f"{PATH}/{quote(group, safe='')}"


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The options that are given, in the API's words."""
    acls = {"virtualClusters": names(args.vc), "manages": names(args.manages)}
    given = {
        "description": args.description,
        "externalName": args.external_name,
        "members": names(args.members),
        "extension": {"acls": {name: value for name, value in acls.items() if value is not None}},
    }
    return {name: value for name, value in given.items() if value is not None}
