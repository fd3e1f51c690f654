"""The READMEs and the tutorial do what they say: every command is run, every output compared."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from jupyter_pai.endpoint import remote_endpoint
from pai_backend.config.load import load
from tests.docs.pages import READMES, Fence, fences, headings, links, read
from tests.docs.place import Place
from tests.docs.session import Step, steps
from tests.docs.test_fences import NOT_RUN

SESSIONS = {
    page: [fence for fence in fences(page) if fence.language in ("sh", "console", "python")]
    for page in ("README.md", "docs/first-job.md")
}


def run(fence: Fence, place: Place) -> None:
    """Run a fence and compare."""
    if fence.language == "python":
        script = place.work / "cell.ipy"
        script.write_text(fence.text)
        code, output = place.run(f"{sys.executable} -m IPython --no-banner --colors=NoColor {script}")
        assert code == 0, f"{fence}: {output}"
        return
    for step in steps(fence):
        check(step, place)


def check(step: Step, place: Place) -> None:
    """Run one command and compare what it prints."""
    expected = step.normal(step.output, place.home)
    if step.only_looks:
        output = place.run_until(step.command, lambda text: step.normal(text, place.home) == expected)
    else:
        code, output = place.run(step.command)
        assert code == 0 or step.output, f"{step.fence}: {step.command} failed: {output}"
    assert step.normal(output, place.home) == expected, f"{step.fence}: {step.command}"


@pytest.mark.parametrize("page", SESSIONS)
def test_what_the_page_shows_is_what_happens(page: str, place: Place) -> None:
    for fence in SESSIONS[page]:
        if (fence.page, fence.first) not in NOT_RUN:
            run(fence, place)


def test_an_output_that_differs_is_noticed(place: Place) -> None:
    wrong = Fence("README.md", 1, "console", "$ pai list\nThere is something.\n")
    with pytest.raises(AssertionError, match="pai list"):
        run(wrong, place)
    run(Fence("README.md", 1, "console", "$ pai list\nNo jobs.\n"), place)


def test_the_chinese_readme_shows_the_same_commands_and_outputs() -> None:
    texts = [[(fence.language, fence.text) for fence in fences(page)] for page in READMES]
    assert texts[0] == texts[1]


def test_both_readmes_have_the_same_sections_links_and_length() -> None:
    levels = [[level for level, _ in headings(page)] for page in READMES]
    assert levels[0] == levels[1]
    pages = [  # the Chinese one leads to Chinese pages where there are such
        sorted({_english(link) for link in links(page) if not link.startswith(("README", "docs/images", "#"))})
        for page in READMES
    ]
    assert pages[0] == pages[1]
    assert all(len(read(page).splitlines()) <= 280 for page in READMES)
    assert "![" in read("README.md").split("##")[0]


def _english(link: str) -> str:
    return link.replace("docs/zh-CN/", "docs/")


def configurations() -> list[Fence]:
    return [
        fence
        for page in ("README.md", "README.zh-CN.md", "docs/configuration.md")
        for fence in fences(page)
        if fence.language == "yaml"
    ]


@pytest.mark.parametrize("fence", configurations(), ids=str)
def test_configurations_of_the_pages_are_valid(fence: Fence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "backend.yaml"
    file.write_text(fence.text)
    settings = load(["--config", str(file)]).settings
    assert [node.name for node in settings.engine.nodes][:1] == ["carol"]


def test_the_client_file_of_the_readme_is_valid(tmp_path: Path) -> None:
    (fence,) = [fence for fence in fences("README.md") if fence.language == "toml"]
    (tmp_path / "client.toml").write_text(fence.text)
    (tmp_path / tomllib.loads(fence.text)["token_file"]).write_text("secret\n")
    endpoint = remote_endpoint({}, tmp_path / "client.toml")
    assert endpoint is not None
    assert (endpoint.url, endpoint.token) == ("https://pai.example.org", "secret")
