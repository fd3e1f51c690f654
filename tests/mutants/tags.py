"""Ways of filling tags that the law of tests/property/protocol/test_v2_any_job.py must reject."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from pai_backend.model.tags import fill


def escaping(text: str, scope: str, values: Mapping[str, Any]) -> str:
    """Upstream's defect: what a tag stands for arrives HTML-escaped."""
    return fill(text, scope, {name: html.escape(value) for name, value in values.items()})


def scanning_again(text: str, scope: str, values: Mapping[str, Any]) -> str:
    """A value that holds a tag is filled once more."""
    return fill(fill(text, scope, values), scope, {"x": "again"})


def of_any_scope(text: str, scope: str, values: Mapping[str, Any]) -> str:
    """Tags of every scope get the values of one."""
    for other in ("parameters", "secrets", "data", "script", "output"):
        text = fill(text, other, values)
    return text
