"""Links that open a task in an editor, character for character."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import parse_qs, urlsplit

from jupyter_pai.connect.links import EditorLink, links
from jupyter_pai.connect.ssh_config import HostEntry

LOGIN = HostEntry("train--worker-0", "gateway.example.org", 2222, "pai-local")


def test_every_editor_has_its_link() -> None:
    assert links(LOGIN, PurePosixPath("/home/ada/code")) == [
        EditorLink(
            "vscode", "VS Code", "vscode://vscode-remote/ssh-remote+train--worker-0/home/ada/code?windowId=_blank"
        ),
        EditorLink(
            "vscode-insiders",
            "VS Code Insiders",
            "vscode-insiders://vscode-remote/ssh-remote+train--worker-0/home/ada/code?windowId=_blank",
        ),
        EditorLink(
            "cursor", "Cursor", "cursor://vscode-remote/ssh-remote+train--worker-0/home/ada/code?windowId=_blank"
        ),
        EditorLink(
            "windsurf",
            "Windsurf",
            "windsurf://vscode-remote/ssh-remote+train--worker-0/home/ada/code?windowId=_blank",
        ),
        EditorLink("zed", "Zed", "zed://ssh/train--worker-0/home/ada/code"),
        EditorLink(
            "jetbrains-toolbox",
            "JetBrains Toolbox",
            "jetbrains://gateway/ssh/environment?h=train--worker-0&launchIde=true&ideHint=PY"
            "&projectHint=/home/ada/code",
        ),
        EditorLink(
            "jetbrains-gateway",
            "JetBrains Gateway",
            "jetbrains-gateway://connect#type=ssh&host=train--worker-0&port=2222&user=train--worker-0"
            "&projectPath=/home/ada/code&deploy=true",
        ),
    ]


def test_odd_directories_stay_one_path() -> None:
    made = {link.editor: link.url for link in links(LOGIN, PurePosixPath("/data/代码 a#b?c&d%"))}
    assert made["zed"] == "zed://ssh/train--worker-0/data/%E4%BB%A3%E7%A0%81%20a%23b%3Fc%26d%25"
    assert "/data/%E4%BB%A3%E7%A0%81%20a%23b%3Fc%26d%25?windowId=_blank" in made["vscode"]
    assert parse_qs(urlsplit(made["jetbrains-toolbox"]).query)["projectHint"] == ["/data/代码 a#b?c&d%"]
    assert parse_qs(urlsplit(made["jetbrains-gateway"]).fragment)["projectPath"] == ["/data/代码 a#b?c&d%"]
