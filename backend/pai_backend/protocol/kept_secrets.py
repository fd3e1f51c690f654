"""Values that masking has left in a document: filled in from the secrets of an earlier job, or faults.

Masked documents come back: as drafts, as templates, and as those of jobs that are submitted again. What they say of a
secret is the mask itself, which is never the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.text import Text
from pai_backend.protocol.document import Document, place_of
from pai_backend.protocol.fields import Path
from pai_backend.protocol.mask import MASK, SECRET_NAME
from pai_backend.protocol.tree import path_text

_MASKED = json.loads(MASK)
_NONE: Mapping[str, Any] = {}


def with_kept(document: Document, secrets: Mapping[str, Any] = _NONE, env: Mapping[str, Any] = _NONE) -> Document:
    """The document with its masked values filled in: those of ``secrets`` and of ``jobEnvs``, by their names.

    Raises DocumentError when one has none to be filled in.
    """
    missing: list[Path] = []
    filled = {
        name: _filled(each, secrets.get(name), ("secrets", name), missing) for name, each in document.secrets.items()
    }
    variables = {
        name: _filled(each, env.get(name), ("jobEnvs", name), missing) if SECRET_NAME.search(name) else each
        for name, each in document.spec.env.items()
    }
    if missing:
        raise _refused(document, missing)
    if filled == dict(document.secrets) and variables == dict(document.spec.env):
        return document
    return replace(document, secrets=filled, spec=document.spec.model_copy(update={"env": variables}))


def _filled(value: Any, kept: Any, path: Path, missing: list[Path]) -> Any:
    if isinstance(value, dict):
        inner = kept if isinstance(kept, dict) else {}
        return {name: _filled(each, inner.get(name), (*path, name), missing) for name, each in value.items()}
    if isinstance(value, list):
        items = kept if isinstance(kept, list) else []
        padded = [*items, *[None] * len(value)]
        return [_filled(each, padded[at], (*path, at), missing) for at, each in enumerate(value)]
    if value != _MASKED:
        return value
    if kept is None or isinstance(kept, dict | list) or kept == _MASKED:
        missing.append(path)
        return value
    return kept


def _refused(document: Document, missing: list[Path]) -> DocumentError:
    hint = Text("Type the value again: it is not kept in drafts, templates and masked documents.")
    faults = list(_faults(document, missing, hint))
    return DocumentError(faults[0].message, errors=faults, hint=hint)


def _faults(document: Document, missing: list[Path], hint: Text) -> Iterator[Fault]:
    for path in missing:
        line, column = place_of(document, path) or (None, None)
        message = Text("the value of {path} is masked", path=path[-1])
        yield Fault(path=path_text(path), message=message, line=line, column=column, hint=hint)
