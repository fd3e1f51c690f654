"""Links of pages that lead out of their own site: to the other language's, or to a file of the repository.

In the repository such a link is a relative path, so it works there as well. A path that does not exist is left to
MyST, which warns.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = ROOT / "docs", ROOT / "docs" / "zh-CN"
OVERVIEWS = {ROOT / "README.md": ENGLISH / "overview.md", ROOT / "README.zh-CN.md": CHINESE / "overview.md"}
"""Files of the repository that are shown as a page of a site."""


def site_page(file: Path) -> str | None:
    """The address of a page below the directory of all sites, without its suffix: ``en/cli``. None if it has none."""
    for folder, site in ((CHINESE, "zh-CN"), (ENGLISH, "en")):
        if file.suffix == ".md" and file.is_relative_to(folder):
            return f"{site}/{file.relative_to(folder).with_suffix('')}"
    return None


class LeadOut(SphinxTransform):
    """Replaces links to other sites and to the repository by links with an address."""

    default_priority = 5  # before Sphinx looks for files to be downloaded

    def apply(self, **kwargs: Any) -> None:
        """Look at every link that MyST took for a path."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node["reftype"] == "myst" and node["refdomain"] == "doc":  # a page, of this site or not, without suffix
                self._lead_out(node, self.env.srcdir / f"{node['reftarget']}.md", node["reftargetid"])
            elif node["reftype"] == "myst":
                self._lead_out(node, folder / node["reftarget"], None)
        for node in list(self.document.findall(addnodes.download_reference)):
            self._lead_out(node, folder / node["reftarget"], None)

    def _lead_out(self, node: nodes.Element, path: Path, anchor: str | None) -> None:
        file = self._file(path)
        page = None if file is None else site_page(file)
        here = site_page(Path(self.env.doc2path(self.env.docname)))
        if file is None or here is None:
            return
        if page is None:
            kind = "tree" if file.is_dir() else "blob"
            address = f"{self.config.repository_url}/{kind}/main/{file.relative_to(ROOT)}"
        elif page.partition("/")[0] == here.partition("/")[0]:
            self._stay(node, page.partition("/")[2], anchor)
            return
        else:
            address = "../" * here.count("/") + page + ".html" + (f"#{anchor}" if anchor else "")
        node.replace_self(nodes.reference("", "", *node.children, refuri=address, internal=page is not None))

    def _stay(self, node: nodes.Element, docname: str, anchor: str | None) -> None:
        """A folder or a README that is a page of this site."""
        node.replace_self(
            addnodes.pending_xref(
                "",
                *node.children,
                refdomain="doc",
                reftype="myst",
                reftarget=docname,
                reftargetid=anchor,
                refdoc=self.env.docname,
                refexplicit=True,
            )
        )

    def _file(self, path: Path) -> Path | None:
        """What a path means; None if it does not exist. The overview's paths begin at the repository."""
        page = Path(self.env.doc2path(self.env.docname))
        path = Path(os.path.normpath(path))
        if page in OVERVIEWS.values() and not path.exists():
            path = ROOT / path.relative_to(page.parent)
        if path.is_relative_to(ENGLISH) and (path / "README.md").exists():
            return path / "README.md"
        return OVERVIEWS.get(path, path) if path.exists() and path.is_relative_to(ROOT) else None


def name_other_language(app: Sphinx, pagename: str, templatename: str, context: dict[str, object], _: object) -> None:
    """The address of the same page in the other language. Called by Sphinx for every page that it writes."""
    folder, site = (ENGLISH, "en") if app.config.language == "zh_CN" else (CHINESE, "zh-CN")
    page = pagename if (folder / f"{pagename}.md").exists() else "index"
    context["other_language"] = site
    context["other_language_page"] = "../" * (pagename.count("/") + 1) + f"{site}/{page}.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("repository_url", "", "env", str)
    app.add_transform(LeadOut)
    app.connect("html-page-context", name_other_language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
