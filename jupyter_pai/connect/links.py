"""Links that open a task in an editor. Pure.

All of them name the alias, not an address: the editor reaches it as ``ssh ALIAS`` does, by the names that
``pai ssh-config`` wrote, with their key and their pinned host key. A host, port and user in a link would
leave the key to chance. None of these formats is promised by its editor; sources are beside each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, urlencode

from jupyter_pai.connect.ssh_config import HostEntry

VSCODE_FAMILY = {
    "vscode": "VS Code",
    "vscode-insiders": "VS Code Insiders",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
}
"""Schemes of editors that take VS Code's links, with their names."""

PYCHARM = "PY"
"""The product code of PyCharm in links of JetBrains Toolbox."""


@dataclass(frozen=True)
class EditorLink:
    """A link that opens a task; ``editor`` is a stable word, ``name`` is shown."""

    editor: str
    name: str
    url: str


def _path(directory: PurePosixPath) -> str:
    return quote(str(directory), safe="/")


def vscode_link(scheme: str, alias: str, directory: PurePosixPath) -> str:
    """A window of VS Code or a sibling. The plus sign belongs to the authority and stays as it is.

    Source: the authority ``ssh-remote+HOST`` of VS Code's Remote-SSH; dstack and DevPod use the same link.
    """
    return f"{scheme}://vscode-remote/ssh-remote+{alias}{_path(directory)}?windowId=_blank"


def zed_link(alias: str, directory: PurePosixPath) -> str:
    """A window of Zed. Source: Zed's documentation of remote development, ``zed://ssh/HOST/PATH``."""
    return f"zed://ssh/{alias}{_path(directory)}"


def gateway_link(login: HostEntry, directory: PurePosixPath) -> str:
    """A connection of JetBrains Gateway; it asks for the key, or takes it from ``ssh``'s configuration.

    Source: links that Gateway itself makes and DevPod opens; ``deploy=true`` lets it bring the IDE along.
    """
    values = {
        "type": "ssh",
        "host": login.alias,
        "port": login.port,
        "user": login.alias,
        "projectPath": str(directory),
        "deploy": "true",
    }
    return f"jetbrains-gateway://connect#{urlencode(values, safe='/', quote_via=quote)}"


def toolbox_link(alias: str, directory: PurePosixPath) -> str:
    """An environment of JetBrains Toolbox, which reaches it as ``ssh ALIAS`` does.

    Source: ``jetbrains://gateway/ssh/environment``; a hint for the project is taken by versions that know it.
    """
    values = {"h": alias, "launchIde": "true", "ideHint": PYCHARM, "projectHint": str(directory)}
    return f"jetbrains://gateway/ssh/environment?{urlencode(values, safe='/', quote_via=quote)}"


def links(login: HostEntry, directory: PurePosixPath) -> list[EditorLink]:
    """All links to a task, in the order in which they are shown."""
    family = [
        EditorLink(scheme, name, vscode_link(scheme, login.alias, directory)) for scheme, name in VSCODE_FAMILY.items()
    ]
    return [
        *family,
        EditorLink("zed", "Zed", zed_link(login.alias, directory)),
        EditorLink("jetbrains-toolbox", "JetBrains Toolbox", toolbox_link(login.alias, directory)),
        EditorLink("jetbrains-gateway", "JetBrains Gateway", gateway_link(login, directory)),
    ]
