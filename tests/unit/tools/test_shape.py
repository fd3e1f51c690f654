"""The shape of a tiny tree is counted right."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]

MODULE = '''
"""What it is."""
# why
import os


def shown(a: int) -> int:
    """What it gives."""
    # why again
    return a


def bare() -> None:
    def _inner() -> None: ...
    _inner()


class _Hidden:
    def method(self) -> None: ...
'''


@pytest.fixture
def shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/shape.py, looking at a tree of its own."""
    spec = importlib.util.spec_from_file_location("shape_under_test", ROOT / "tools" / "shape.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shape_under_test", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")


def test_python_is_counted_by_lines_functions_docstrings_and_comments(shape: ModuleType, tmp_path: Path) -> None:
    write(tmp_path / "code" / "one.py", MODULE)
    found = shape.measure(["code"], [".py"])
    assert [(length, path.name) for length, path in found.files] == [(18, "one.py")]
    assert {place.split()[-1]: length for length, place in found.functions} == {
        "shown": 4,
        "bare": 3,
        "_inner": 1,
        "method": 1,
    }
    assert found.comments == 2


def test_documented_share_counts_public_things_only(shape: ModuleType, tmp_path: Path) -> None:
    write(
        tmp_path / "code" / "one.py",
        '"""Says."""\n\n\ndef told() -> None:\n    """Says."""\n\n\ndef untold() -> None: ...\n',
    )
    write(tmp_path / "code" / "two.py", '"""Says."""\n\n\ndef _own() -> None: ...\n')
    found = shape.measure(["code"], [".py"])
    # Two modules and the two public functions; one of the functions says nothing.
    assert (found.documented, found.public) == (3, 4)


def test_typescript_is_counted_by_lines_and_comments(shape: ModuleType, tmp_path: Path) -> None:
    write(tmp_path / "src" / "view.tsx", "// why\nexport const a = 1;\n")
    write(tmp_path / "src" / "view.spec.tsx", "// a test is no code\n")
    found = shape.measure(["src"], [".ts", ".tsx"])
    assert [length for length, _ in found.files] == [2]
    assert found.comments == 1


def test_what_was_built_or_installed_is_not_counted(shape: ModuleType, tmp_path: Path) -> None:
    for folder in ("node_modules", ".venv", "lib", "__pycache__"):
        write(tmp_path / "src" / folder / "big.py", "x = 1\n" * 500)
    write(tmp_path / "src" / "own.py", "x = 1\n")
    assert [path.name for path in shape.sources(["src"], [".py"])] == ["own.py"]


def test_lines_of_tests_are_those_of_test_files(shape: ModuleType, tmp_path: Path) -> None:
    write(tmp_path / "checks" / "test_one.py", "a = 1\nb = 2\n")
    write(tmp_path / "checks" / "data.py", "a = 1\n")
    assert shape.tests_lines(["checks", "absent"], [".py"]) == 2


@pytest.mark.parametrize(("numbers", "value"), [([], 0), ([5], 5), (list(range(1, 11)), 10), ([3, 1, 2], 3)])
def test_nine_of_ten_are_not_above_the_quantile(shape: ModuleType, numbers: list[int], value: int) -> None:
    assert shape.quantile(numbers, 0.9) == value


def test_the_printed_rows_name_the_longest(
    shape: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "code" / "one.py", MODULE)
    write(tmp_path / "checks" / "test_one.py", "a = 1\n" * 9)
    monkeypatch.setattr(shape, "TREES", {"tiny": (["code"], [".py"], ["checks"]), "none": (["absent"], [".py"], [])})
    shape.main()
    head, tiny, longest, *rest = capsys.readouterr().out.splitlines()
    assert tiny.split() == ["tiny", "1", "18", "18", "18", "4", "4", "0.50", "50", "11.1"]
    assert longest.split() == ["18", "lines", "code/one.py"]
    assert rest[-1] == shape.GOALS
    assert head.split()[0] == "tree"
    assert not any(line.startswith("none") for line in rest)
