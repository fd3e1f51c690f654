"""Fences of ``mermaid`` as pictures. The browser draws them by the Mermaid that is among the panel's packages."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.fileutil import copy_asset

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "labextension" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"


class Mermaid(SphinxDirective):
    """A picture in Mermaid's language; a page that has one loads Mermaid."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture, which stays text where no script runs."""
        text = "\n".join(self.content)
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        self.env.metadata[self.env.docname]["mermaid"] = "yes"
        return [nodes.raw("", f'<pre class="mermaid">\n{escaped}\n</pre>', format="html")]


def load_mermaid(app: Sphinx, pagename: str, templatename: str, context: dict[str, object], doctree: object) -> None:
    """Called by Sphinx for every page that it writes."""
    if "mermaid" in app.env.metadata.get(pagename, {}):
        app.add_js_file(PROGRAM.name)


def copy_mermaid(app: Sphinx, error: Exception | None) -> None:
    """Called by Sphinx at the end."""
    if error is None and any("mermaid" in page for page in app.env.metadata.values()):
        copy_asset(PROGRAM, app.outdir / "_static")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("mermaid", Mermaid)
    app.connect("html-page-context", load_mermaid)
    app.connect("build-finished", copy_mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
