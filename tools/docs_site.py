"""Build the documentation site, English and Chinese: ``python tools/docs_site.py [FOLDER]``, else into build/site.

A warning is a failure: it is a link or a name that leads nowhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITES = {"en": ["docs"], "zh-CN": ["-t", "zh", "-c", "docs", "docs/zh-CN"]}
"""Folder of each site -> where its pages and its configuration are, for Sphinx."""

FIRST_PAGE = """\
<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=en/index.html">
<title>jupyter-pai</title>
<p><a href="en/index.html">English</a> <a href="zh-CN/index.html" lang="zh-CN">中文</a></p>
"""


def build(folder: Path) -> int:
    """Build all sites below ``folder``; returns 0 when none has a warning."""
    failed = 0
    for site, source in SITES.items():
        options = ["--quiet", "--nitpicky", "--fail-on-warning", "--keep-going"]
        places = ["--doctree-dir", str(folder / ".doctrees" / site), *source, str(folder / site)]
        command = [sys.executable, "-m", "sphinx", *options, "--builder", "html", *places]
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode
    (folder / "index.html").write_text(FIRST_PAGE, encoding="utf-8")
    return failed


def main() -> int:
    """Build, and say where the first page is."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    failed = build(folder)
    print(f"{folder / 'index.html'}{' has warnings' if failed else ''}")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
