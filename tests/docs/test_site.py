"""The documentation site: no warning, no dead link, nothing from the network, and a search that finds."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.async_api import async_playwright

from tests.docs.pages import ROOT, fences, pages
from tests.support.chromium import ARGUMENTS, executable

BUILD_TIMEOUT_S = 280
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser fetches by itself, and the attribute that says from where."""

pytestmark = pytest.mark.xdist_group("site")


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADED.get(tag) in given:
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sites, built as ``make site`` does, in a folder of the test's own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "tools" / "docs_site.py"), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Page]:
    """Every page of both sites, read."""
    read = {}
    for file in (file for file in site.rglob("*.html") if "_static" not in file.parts):  # the theme's templates
        read[file] = Page()
        read[file].feed(file.read_text(encoding="utf-8"))
    return read


@pytest.mark.timeout(BUILD_TIMEOUT_S + 20)
def test_every_page_of_the_documentation_is_on_a_site(site: Path) -> None:
    """A warning, such as for a page in no table of contents, ends the build that the fixture waits for."""
    for page in pages():
        if page.startswith("docs/"):
            name = page.removeprefix("docs/").removesuffix(".md")
            built = name if name.startswith("zh-CN/") else f"en/{name}"
            assert (site / f"{built}.html").exists(), page


def test_every_link_within_the_sites_leads_to_a_place_that_exists(site: Path, html: dict[Path, Page]) -> None:
    dead = []
    for file, page in html.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in html and anchor not in html[target].anchors):
                dead.append(f"{file.relative_to(site)}: {link}")
    assert sum(len(page.links) for page in html.values()) > 1000
    assert dead == []


def test_links_to_the_repository_name_files_that_exist(html: dict[Path, Page]) -> None:
    found = {link for page in html.values() for link in page.links if "/blob/main/" in link or "/tree/main/" in link}
    paths = {link.split("/main/")[1].partition("#")[0] for link in found}
    assert "CONTRIBUTING.md" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_browser_fetches_nothing_from_elsewhere(site: Path, html: dict[Path, Page]) -> None:
    loads = {(file.parent, load) for file, page in html.items() for load in page.loads}
    assert any("mermaid.min.js" in load for _, load in loads)
    assert [load for _, load in loads if urlsplit(load).scheme or urlsplit(load).netloc] == []
    assert [load for folder, load in loads if not (folder / unquote(urlsplit(load).path)).exists()] == []
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert styles
    assert not any(re.search(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", text) for text in styles)


def test_each_chinese_page_has_an_english_one_of_its_name() -> None:
    chinese = {page.removeprefix("docs/zh-CN/") for page in pages() if page.startswith("docs/zh-CN/")}
    assert "index.md" in chinese
    assert [name for name in chinese if not (ROOT / "docs" / name).exists()] == []


def test_chinese_pages_show_commands_and_documents_of_the_english_pages() -> None:
    """Those are run or read by tests, or have a reason not to be: tests/docs/test_fences.py."""
    chinese = [page for page in pages() if page.startswith("docs/zh-CN/")]
    english = {fence.text for page in pages() if page not in chinese for fence in fences(page)}
    shown = [fence for page in chinese for fence in fences(page) if not fence.language.startswith("{")]
    assert shown
    assert [str(fence) for fence in shown if fence.text not in english] == []


@pytest.mark.ui
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("language", "words", "title"),
    [
        ("en", "job waits", "Why a job waits"),
        ("zh-CN", "主机密钥", "SSH"),
        ("zh-CN", "作业为什么等待", "作业为什么在等待"),
        ("zh-CN", "PyCharm 解释器", "PyCharm"),
    ],
)
async def test_search_finds_a_page_from_a_file_without_a_server(
    site: Path, language: str, words: str, title: str
) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        page = await browser.new_page()
        await page.goto(f"{(site / language / 'search.html').as_uri()}?q={words}")
        await page.locator("#search-results ul.search li a", has_text=title).first.wait_for(timeout=60_000)
        await browser.close()
