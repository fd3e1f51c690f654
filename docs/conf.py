"""The documentation site, one build for each language: ``make site`` builds both below ``build/site``.

``docs/`` is the English site, ``docs/zh-CN/`` the Chinese one, which is built with ``-t zh``. A page has the same name
in both. Nothing is fetched, neither by the build nor by a reader's browser.
"""

import sys
import tomllib
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(ROOT / "backend"), str(DOCS / "_extensions")]

with (ROOT / "pyproject.toml").open("rb") as file:
    urls = tomllib.load(file)["project"]["urls"]

chinese = tags.has("zh")  # type: ignore[name-defined]  # noqa: F821  # Sphinx defines it
project = "jupyter-pai"
author = "the jupyter-pai developers"
project_copyright = "the jupyter-pai developers"
version = release = version_of("jupyter-pai")
language = "zh_CN" if chinese else "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "site_links",
    "mermaid_pictures",
    "chinese_search",
]
exclude_patterns = [] if chinese else ["zh-CN"]
templates_path = [str(DOCS / "_templates")]
nitpicky = True
# Every name in the pages' API must be found there. Those of other projects are not: their sites are not fetched.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!jupyter_pai\.(api|client|endpoint|errors|sync)\.\w\w|pai_backend\.(engine\.base|testing)\.).*")
]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
repository_url = urls["Repository"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}

copybutton_prompt_text = "$ "  # what a command prints is not copied

html_theme = "pydata_sphinx_theme"
html_title = f"jupyter-pai {release}"
html_show_sourcelink = False
html_search_language = "zh" if chinese else "en"
html_theme_options = {
    "navbar_end": ["language", "theme-switcher", "navbar-icon-links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "icon_links": [{"name": "Repository", "url": repository_url, "icon": "fa-solid fa-code-branch"}],
}
