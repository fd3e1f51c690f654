"""Words that make texts hard to read are found in texts, comments and docs; those left may only become fewer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]

PYTHON = '''
"""Nobody reads this."""
# whoever comes
ACCOUNT = "nobody"
PLAIN = "There is no job of that name, and it is no longer shared."


def refuse(name: str) -> str:
    """Say who may not."""
    return f"{name} is no place for somebody else's"
'''

TYPESCRIPT = """
// made anew
/** Nothing but
 *  whoever */
const name = 'nobody';
const text = trans.__('Nobody waits.');
"""


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", ROOT / "tools" / "words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["words"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "backend/a.py": PYTHON,
        "labextension/src/b.tsx": TYPESCRIPT,
        "docs/c.md": "one line\nlet nobody in, as user `nobody`\n",
        "docs/adr/0001-d.md": "nobody",
        "README.md": "plain\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_each_hit_has_its_kind_pattern_and_line(words: ModuleType, tree: Path) -> None:
    hits = {(hit.kind, hit.pattern, hit.path, hit.line) for hit in words.found(tree)}
    assert hits == {
        ("comments", "nobody", "backend/a.py", 2),
        ("comments", "whoever", "backend/a.py", 3),
        ("texts", "is no X", "backend/a.py", 10),
        ("texts", "somebody", "backend/a.py", 10),
        ("comments", "anew", "labextension/src/b.tsx", 2),
        ("comments", "nothing but", "labextension/src/b.tsx", 3),
        ("comments", "whoever", "labextension/src/b.tsx", 4),
        ("texts", "nobody", "labextension/src/b.tsx", 6),
        ("docs", "nobody", "docs/c.md", 2),
    }


def test_texts_may_have_none_and_the_rest_as_many_as_recorded(words: ModuleType, tree: Path) -> None:
    hits = list(words.found(tree))
    texts = {"is no X", "somebody", "nobody"}
    assert {hit.pattern for hit in words.over(hits, words.counted(hits))} == texts
    fewer = words.counted(hits)
    fewer["docs"]["nobody"] = 0
    assert ("docs", "nobody") in {(hit.kind, hit.pattern) for hit in words.over(hits, fewer)}
