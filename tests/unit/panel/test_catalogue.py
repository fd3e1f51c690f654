"""Every text of the panel, the command line and notebook views has its Chinese, and the catalogue holds no others."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import said_texts

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "labextension" / "src").rglob("*.ts*"))
CATALOGUES = sorted((ROOT / "jupyter_pai" / "locale").glob("*/LC_MESSAGES/jupyter_pai.json"))

LITERAL = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
CALL = re.compile(rf"\b_?trans\s*\.\s*(__|_n)\(\s*{LITERAL}(?:\s*,\s*{LITERAL})?")
PLACE = re.compile(r"%\d|\{\w+\}")


def texts_in(source: str) -> dict[str, bool]:
    """Texts that a source asks a translation for, and whether they have a plural."""
    return {found[2][1:-1]: found[1] == "_n" for found in CALL.finditer(source)}


def texts() -> dict[str, bool]:
    found: dict[str, bool] = {}
    for path in SOURCES:
        found.update(texts_in(path.read_text(encoding="utf-8")))
    return found


def entries(path: Path) -> dict[str, list[str]]:
    catalogue: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert catalogue.pop("")["domain"] == "jupyter_pai"
    return catalogue


def test_reader_finds_texts_with_quotes_plurals_and_line_breaks() -> None:
    source = """trans.__('a %1', x) + trans._n('%1 b', '%1 bs', n) + this._trans.__(\n  'Run "c"'\n)"""
    assert texts_in(source) == {"a %1": False, "%1 b": True, 'Run "c"': False}


def test_panel_has_texts_and_a_chinese_catalogue() -> None:
    assert len(texts()) > 80
    assert [path.parts[-3] for path in CATALOGUES] == ["zh_CN"]


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_no_text_is_missing_and_none_is_left_over(path: Path) -> None:
    said = {*texts(), *said_texts.texts()}
    assert set(entries(path)) >= said
    assert set(entries(path)) - said <= said_texts.of_backend()


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_translations_keep_the_places_for_values(path: Path) -> None:
    for text, translations in entries(path).items():
        assert set(PLACE.findall(translations[0])) == set(PLACE.findall(text)), text


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_plural_texts_have_two_forms_as_the_reader_of_jupyterlab_wants(path: Path) -> None:
    plural = {**dict.fromkeys(said_texts.texts(), False), **texts()}
    for text, forms in entries(path).items():
        assert len(forms) == (2 if plural.get(text) else 1), text
