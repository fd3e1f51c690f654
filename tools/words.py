"""Find words that make texts hard to read: ``python tools/words.py`` lists them, ``make check`` fails on new ones.

Three kinds of words are looked at. ``texts``: literals of the product, its OpenAPI descriptions and the panel's
strings; none is allowed there. ``comments``: docstrings and comments of the product. ``docs``: the documentation.
For the last two ``tools/words.json`` says how many of a pattern are left; they may only become fewer, and
``--write`` records that.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path("tools/words.json")
PRODUCT = ("backend", "jupyter_pai", "labextension/src")
DOCS = ("docs", "README.md", "CONTRIBUTING.md", "SECURITY.md")
RECORDS = "docs/adr/"
"""Decisions are not reworded later."""

PATTERNS = {
    "nobody": r"nobody",
    "somebody": r"some(?:body|one) else|somebody",
    "whoever": r"who(?:so)?ever",
    "no more": r"no more(?! than| warnings| faults)|any more(?= \w)",
    "lest": r"lest",
    "nothing but": r"nothing but",
    "is none": r"(?<!there )(?:is|are|was) (?-i:none)(?! of\b)",
    "anew": r"anew",
    "till": r"till",
    "one's own": r"one's own",
    "what there is": r"(?:what|all) there (?:is|are)",
    "be had": r"be had",
    "in vain": r"in vain",
    "at hand": r"at hand",
    "put up with": r"puts? up with",
    "let go": r"let(?:s|ting)? go",
    "told again": r"told (?:anew|otherwise|of)",
    "mend": r"mend(?:s|ed|ing)?",
}
"""Name of a pattern -> what it finds, as whole words and in either case."""

IN_TEXTS = {
    "is no X": r"(?:is|are|was) no (?!longer\b|more than\b|such\b|\w+ (?:at all|yet|yet)\b)\w+",
    "stands": r"stands? (?:twice|beside|there|in)",
    "is told": r"(?:is|are|was|were) told",
    "of which": r"of which(?! (?:one|that))",
}
"""The same, of texts alone."""

ALLOWED = frozenset({"there is no", "there are no", "there was no"})
"""Beginnings that make an ``is no X`` plain."""

NO_TEXTS = frozenset({"let go"})
"""Words between processes, which no user sees."""


class Found(NamedTuple):
    """One hit."""

    kind: str
    pattern: str
    path: str
    line: int
    text: str


def _compiled(patterns: dict[str, str]) -> dict[str, re.Pattern[str]]:
    return {
        name: re.compile(rf"(?<![\w`-])(?:{pattern})(?![\w`-])", re.IGNORECASE) for name, pattern in patterns.items()
    }


_EVERYWHERE = _compiled(PATTERNS)
_TEXTS = _compiled(PATTERNS | IN_TEXTS)


def _hits(text: str, patterns: dict[str, re.Pattern[str]]) -> Iterator[str]:
    for name, pattern in patterns.items():
        for hit in pattern.finditer(text):
            before = text[max(0, hit.start() - 6) : hit.end()].lower()
            if name != "is no X" or not any(each in before for each in ALLOWED):
                yield name


def _literals(tree: ast.Module) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Texts of more than one word, and docstrings, with their lines."""
    docstrings: list[tuple[int, str]] = []
    docs: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docs.add(id(node.value))
            docstrings += [(node.lineno + at, line) for at, line in enumerate(node.value.value.splitlines())]
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "{}" for each in node.values]
            docs |= {id(each) for each in node.values}
            texts.append((node.lineno, "".join(map(str, parts))))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            texts.append((node.lineno, node.value))
    return [(line, text) for line, text in texts if len(text.split()) > 1 and text not in NO_TEXTS], docstrings


def _of_python(path: str, source: str) -> Iterator[Found]:
    texts, docstrings = _literals(ast.parse(source))
    for line, text in texts:
        yield from (Found("texts", name, path, line, text) for name in _hits(text, _TEXTS))
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for line, text in [*docstrings, *comments]:
        yield from (Found("comments", name, path, line, text.strip()) for name in _hits(text, _EVERYWHERE))


_TYPESCRIPT = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`", re.DOTALL)


def _of_typescript(path: str, source: str) -> Iterator[Found]:
    for each in _TYPESCRIPT.finditer(source):
        is_comment = each[0].startswith(("/*", "//"))
        if not is_comment and " " not in each[0]:
            continue
        kind, patterns = ("comments", _EVERYWHERE) if is_comment else ("texts", _TEXTS)
        first = source.count("\n", 0, each.start()) + 1
        for at, line in enumerate(each[0].splitlines()):
            yield from (Found(kind, name, path, first + at, line.strip()) for name in _hits(line, patterns))


def _of_docs(path: str, source: str) -> Iterator[Found]:
    for number, line in enumerate(source.splitlines(), 1):
        yield from (Found("docs", name, path, number, line.strip()) for name in _hits(line, _EVERYWHERE))


def found(root: Path) -> Iterator[Found]:
    """All hits below a tree like this repository."""
    readers = {".py": _of_python, ".ts": _of_typescript, ".tsx": _of_typescript}
    worst = re.compile("|".join(f"(?:{pattern})" for pattern in (PATTERNS | IN_TEXTS).values()), re.IGNORECASE)
    for folder in PRODUCT:
        for path in sorted((root / folder).rglob("*")):
            reader = readers.get(path.suffix)
            source = path.read_text(encoding="utf-8") if reader else ""
            if reader and worst.search(source):
                yield from reader(path.relative_to(root).as_posix(), source)
    for place in DOCS:
        for path in sorted((root / place).rglob("*.md")) if (root / place).is_dir() else [root / place]:
            name = path.relative_to(root).as_posix()
            if path.is_file() and not name.startswith(RECORDS) and "zh" not in path.name.split("."):
                yield from _of_docs(name, path.read_text(encoding="utf-8"))


def counted(hits: list[Found]) -> dict[str, dict[str, int]]:
    """Kind -> pattern -> hits, of what may have some."""
    counts = {kind: Counter(hit.pattern for hit in hits if hit.kind == kind) for kind in ("comments", "docs")}
    return {kind: dict(sorted(count.items())) for kind, count in counts.items()}


def over(hits: list[Found], limits: dict[str, dict[str, int]]) -> list[Found]:
    """Hits of the patterns that occur more often than the limits allow."""
    counts = counted(hits)
    return [
        hit
        for hit in hits
        if hit.kind == "texts" or counts[hit.kind][hit.pattern] > limits.get(hit.kind, {}).get(hit.pattern, 0)
    ]


def main() -> int:
    """Check, or with ``--write`` record what is left."""
    parser = argparse.ArgumentParser(description="Find words that make texts hard to read.")
    parser.add_argument("--write", action="store_true", help="record the numbers that are left, where they are lower")
    parser.add_argument("--all", action="store_true", help="list all hits, those within the limits too")
    args = parser.parse_args()
    hits = list(found(ROOT))
    recorded = ROOT / LIMITS
    limits = json.loads(recorded.read_text(encoding="utf-8")) if recorded.is_file() else counted(hits)
    bad = over(hits, limits)
    for hit in hits if args.all else bad:
        print(f"{hit.path}:{hit.line}: {hit.pattern} ({hit.kind}): {' '.join(hit.text.split())[:160]}")
    if args.write and not bad:
        recorded.write_text(json.dumps(counted(hits), indent=2) + "\n", encoding="utf-8")
    if bad:
        print(f"{len(bad)} lines. Write them plainly: name the person or thing, and say what happens.", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
