"""Secrets that a document takes of its user by name: put into it at submission, or faults where they are missing.

The document names them alone: its text, its spec and what is shown of it never have a value. Values join those of the
document's own secrets, and are sealed, put in and covered as these are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from pai_backend.model import user_secret
from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.text import Text
from pai_backend.model.user_secret import SecretUse
from pai_backend.model.validation import nearest
from pai_backend.protocol.document import Document, place_of
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
