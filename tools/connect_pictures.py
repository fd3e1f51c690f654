"""Draw docs/connect/images, the values to type in PyCharm: ``python -m tools.connect_pictures [DIRECTORY]``.

The pictures are drawn from the guide that ``pai connect`` shows, as a page of our own in Chromium; they are no
pictures of PyCharm.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path, PurePosixPath

from playwright.sync_api import sync_playwright

from jupyter_pai.connect.guide import Guide, GuideTask, guide
from jupyter_pai.connect.ssh_config import HostEntry
from tests.support.chromium import ARGUMENTS, executable

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "connect" / "images"
WIDTH = 720

EXAMPLE = GuideTask(
    login=HostEntry("jupyter-16be8b71", "gateway.example.org", 2222, "pai-lab"),
    identity=PurePosixPath("/home/ada/.ssh/pai/lab/id_ed25519"),
    host_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFhmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZm",
    directory=PurePosixPath("/root"),
    python="/usr/bin/python3",
    included=True,
)
"""The task of the examples' Jupyter job; its host key is nobody's."""

STYLE = """
body { margin: 0; padding: 16px; width: 688px; font: 14px/1.5 "DejaVu Sans", sans-serif; background: #fff; color: #222 }
h1 { margin: 0 0 12px; font-size: 14px; font-weight: normal; color: #555 }
dl { display: grid; grid-template-columns: 28px 210px 1fr; gap: 8px; margin: 0; align-items: center }
dt { color: #444 } dd { margin: 0; padding: 4px 8px; border: 1px solid #b9bdc5; border-radius: 3px;
  font-family: "DejaVu Sans Mono", monospace; font-size: 13px }
b { width: 22px; height: 22px; border-radius: 11px; background: #1976d2; color: #fff; font-size: 12px;
  line-height: 22px; text-align: center }
main { padding: 14px; border: 1px solid #d0d3d9; border-radius: 6px; background: #f7f8fa }
"""

Rows = Sequence[tuple[str, str]]


def pictures(found: Guide) -> Mapping[str, tuple[str, Rows]]:
    """Name of each picture, with the place in PyCharm and what to type there."""
    pycharm = found["pycharm"]
    login = [
        ("Host", pycharm["host"]),
        ("Port", str(pycharm["port"])),
        ("Username", pycharm["username"]),
        ("Authentication type", pycharm["authentication"]),
    ]
    reached = f"{pycharm['username']}@{pycharm['host']}:{pycharm['port']}"
    return {
        "pycharm-ssh": ("Settings > Tools > SSH Configurations > +", login),
        "pycharm-interpreter": (
            "Settings > Python > Interpreter > Add Interpreter > On SSH",
            [
                ("Connection", f"Existing: {reached}"),
                ("Environment", "System Interpreter"),
                ("Interpreter", pycharm["interpreter"]),
                ("Sync folders", f"<Project root> -> {found['directory']}"),
            ],
        ),
        "pycharm-deployment": (
            "Settings > Build, Execution, Deployment > Deployment > + SFTP",
            [("Name", pycharm["server"]), ("SSH configuration", reached), ("Root path", "/")],
        ),
        "pycharm-mapping": (
            "Settings > Build, Execution, Deployment > Deployment > Mappings",
            [("Local path", "the project's folder"), ("Deployment path", found["directory"]), ("Web path", "/")],
        ),
    }


def page(place: str, rows: Rows) -> str:
    """The drawing of one form."""
    cells = "".join(
        f"<b>{number}</b><dt>{escape(label)}</dt><dd>{escape(value)}</dd>"
        for number, (label, value) in enumerate(rows, 1)
    )
    return f"<style>{STYLE}</style><main><h1>{escape(place)}</h1><dl>{cells}</dl></main>"


def make(directory: Path) -> None:
    """Draw all of them into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        shown = browser.new_page(viewport={"width": WIDTH, "height": 100})
        for name, (place, rows) in pictures(guide(EXAMPLE)).items():
            shown.set_content(page(place, rows))
            shown.screenshot(path=directory / f"{name}.png", full_page=True)
            print(f"{name}.png", flush=True)
        browser.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
