"""The templates of the backend's texts, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2] / "backend" / "pai_backend"
MADE_AGAIN = BACKEND / "model" / "wording.py"
"""Makes a text of a template that came over the wire."""
PLACE = re.compile(r"\{\w+\}")


def texts_made() -> Iterator[tuple[Path, ast.Call]]:
    """Each call of ``model.text.Text`` in the backend, with its file."""
    for path in sorted(BACKEND.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if path != MADE_AGAIN and "from pai_backend.model.text import" in source:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
                    yield path, node


def templates() -> set[str]:
    """Every template that says something."""
    return {
        call.args[0].value
        for _, call in texts_made()
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str) and call.args[0].value
    }
