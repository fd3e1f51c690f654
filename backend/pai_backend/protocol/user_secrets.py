"""Secrets that a document takes from elsewhere: of its user by name, and what masking has left of its own.

A document names its user's secrets alone: its text, its spec and what is shown of it never have a value. Values join
those of the document's own secrets, and are sealed, put in and covered as these are.

Masked documents come back: as drafts, as templates, and as those of jobs that are submitted again. What they say of a
secret is the mask itself, which is never the value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pai_backend.model import user_secret
from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.text import Text
from pai_backend.model.user_secret import SecretUse
from pai_backend.model.validation import nearest
from pai_backend.protocol.document import Document, place_of
from pai_backend.protocol.fields import Path
from pai_backend.protocol.mask import MASK, SECRET_NAME
from pai_backend.protocol.own_fields import SECRET_ENV
from pai_backend.protocol.tree import path_text


def with_users(document: Document, values: Mapping[str, str], names: Collection[str] = ()) -> Document:
    """The document with the secrets that it takes of its user, by name, beside its own.

    ``names`` are all that the user keeps, for what a missing one may have been meant to be. Raises DocumentError for
    each place that takes a secret that the user does not have, and when variables would hold too much.
    """
    missing = [use for use in document.users_secrets if use.name not in values]
    if missing:
        faults = list(_faults(missing, names))
        raise DocumentError(faults[0].message, errors=faults, hint=faults[0].hint)
    if not document.users_secrets:
        return document
    _check_size(document, values)
    taken = {use.name: values[use.name] for use in document.users_secrets}
    merged = {**taken, **document.secrets}
    return replace(document, secrets=merged, spec=document.spec.model_copy(update={"secret_names": tuple(merged)}))


def _faults(missing: list[SecretUse], names: Collection[str]) -> Iterator[Fault]:
    for use in missing:
        is_variable = use.path[:-1] == SECRET_ENV
        like = nearest(use.name, names)
        if is_variable:
            message = Text("you have no secret {name}", name=use.name)
            hint = Text("`pai secret set {name}` keeps one.", name=use.name)
        else:
            message = Text("you have no secret {name}, and neither has the document", name=use.name)
            hint = Text("`pai secret set {name}` keeps one, or add it to secrets.", name=use.name)
        yield Fault(
            path=path_text(use.path),
            message=message,
            line=use.line,
            column=use.column,
            hint=Text("Did you mean {like}? Else {hint}", like=like, hint=hint) if like else hint,
        )


def _check_size(document: Document, values: Mapping[str, str]) -> None:
    """Several variables may hold one secret, and Linux takes only so much of them."""
    size = sum(len(values[name].encode()) for name in document.spec.secret_env.values())
    if size <= user_secret.LONGEST:
        return
    message = Text(
        "the variables of secretEnv have {size} bytes together; at most {most} are given",
        size=size,
        most=user_secret.LONGEST,
    )
    hint = Text("Put large files on a storage that only you can read, and their key into a secret.")
    line, column = place_of(document, SECRET_ENV) or (None, None)
    fault = Fault(path=path_text(SECRET_ENV), message=message, line=line, column=column, hint=hint)
    raise DocumentError(message, errors=[fault], hint=hint)


_MASKED = json.loads(MASK)
_NOTHING: Mapping[str, Any] = {}


def with_kept(document: Document, secrets: Mapping[str, Any] = _NOTHING, env: Mapping[str, Any] = _NOTHING) -> Document:
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
    faults = list(_masked_faults(document, missing, hint))
    return DocumentError(faults[0].message, errors=faults, hint=hint)


def _masked_faults(document: Document, missing: list[Path], hint: Text) -> Iterator[Fault]:
    for path in missing:
        line, column = place_of(document, path) or (None, None)
        message = Text("the value of {path} is masked", path=path[-1])
        yield Fault(path=path_text(path), message=message, line=line, column=column, hint=hint)
