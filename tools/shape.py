"""Print the size and shape of our code beside the proportions we hold ourselves to.

A row past them is a question to the design, not a failure: split by idea, never by line count.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIP = {"node_modules", ".venv", "lib", "labextension-build", "__pycache__", ".yarn", "coverage"}
TREES = {
    "pai_backend": (
        ["backend/pai_backend"],
        [".py"],
        ["tests/unit", "tests/property", "tests/integration", "tests/crash"],
    ),
    "jupyter_pai": (["jupyter_pai"], [".py"], ["tests/unit/front", "tests/integration/front"]),
    "labextension": (["labextension/src"], [".ts", ".tsx"], ["labextension/src", "labextension/test"]),
}
GOALS = (
    "goal: file median about 150, few past 400; function p90 about 40, none past 100; "
    "t:c at least 1.0; doc at least 95 %"
)
ANCHORS = """\
h11              11  153  369  659      39      64  1.08     29   26.0
procrastinate    63   45  358 1042      32     126  1.40     36    3.0
httpx            23  248  641 2019      34     133  1.01     55    4.0
kopf             80  153  512  968      49     223  1.62     40    6.0
jupyter_server   25  160  953 1279      39     151  0.85     96    5.0"""
"""Projects we measure ourselves by, counted in the same way on their sources of 2025 and 2026."""


@dataclass
class Shape:
    """What was counted in one tree; lengths are physical lines."""

    files: list[tuple[int, Path]] = field(default_factory=list)
    functions: list[tuple[int, str]] = field(default_factory=list)
    public: int = 0
    documented: int = 0
    comments: int = 0


def sources(folders: list[str], endings: list[str]) -> Iterator[Path]:
    """All source files of the folders, without what was built or installed."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file() and not SKIP & set(path.parts):
                yield path


def measure(folders: list[str], endings: list[str]) -> Shape:
    """Count one tree."""
    shape = Shape()
    for path in sources(folders, endings):
        if re.search(r"(\.spec\.|\.test\.|__tests__)", str(path)):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        shape.files.append((len(lines), path))
        mark = "#" if path.suffix == ".py" else "//"
        shape.comments += sum(line.lstrip().startswith(mark) for line in lines)
        if path.suffix == ".py":
            _python(ast.parse(text), path, shape)
    return shape


def _python(tree: ast.Module, path: Path, shape: Shape) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            shape.functions.append((length, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name.startswith("_"):
            continue
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            shape.public += 1
            shape.documented += ast.get_docstring(node) is not None


def quantile(numbers: list[int], share: float) -> int:
    """The value below which that share of the numbers lies."""
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


def tests_lines(folders: list[str], endings: list[str]) -> int:
    """Lines of tests in these folders."""
    paths = sources([folder for folder in folders if (ROOT / folder).exists()], endings)
    wanted = (path for path in paths if "test" in path.name or "spec" in path.name or "/tests/" in str(path))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in wanted)


def main() -> None:
    """Print one row a tree, then the longest files and functions."""
    print("tree          files  med  p90  max  fn p90  fn max   t:c  doc %  cmt %")
    for name, (folders, endings, tests) in TREES.items():
        shape = measure(folders, endings)
        lengths = [length for length, _ in shape.files]
        if not lengths:
            continue
        functions = [length for length, _ in shape.functions]
        total = sum(lengths)
        print(
            f"{name:12} {len(lengths):6} {statistics.median(lengths):4.0f} {quantile(lengths, 0.9):4} {max(lengths):4}"
            f" {quantile(functions, 0.9):7} {max(functions, default=0):7}"
            f" {tests_lines(tests, endings) / total:5.2f} {100 * shape.documented / max(shape.public, 1):6.0f}"
            f" {100 * shape.comments / total:6.1f}"
        )
        for length, path in sorted(shape.files, reverse=True)[:3]:
            print(f"    {length:5} lines  {path.relative_to(ROOT)}")
        for length, place in sorted(shape.functions, reverse=True)[:3]:
            print(f"    {length:5} lines  {place}")
    print(ANCHORS)
    print(GOALS)


if __name__ == "__main__":
    main()
