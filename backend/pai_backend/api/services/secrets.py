"""Secrets that users keep: listed, set and removed, and put into documents that are submitted."""

from __future__ import annotations

import logging

from pai_backend.access.document_keys import document_keys
from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import LARGE_BYTES, in_turn
from pai_backend.api.secret_wire import SecretList, SecretWire
from pai_backend.auth.users import User
from pai_backend.model.errors import DocumentError, Fault, InvalidParameters, NoSuchSecret, Unavailable
from pai_backend.model.scrub import texts
from pai_backend.model.text import Text
from pai_backend.model.user_secret import ALLOWED, LONGEST, is_secret_name, used_names
from pai_backend.protocol import Document, place_of
from pai_backend.protocol.plugins import KEY as PLUGINS
from pai_backend.protocol.tree import path_text
from pai_backend.protocol.user_secrets import with_users
from pai_backend.store.grants import Act

log = logging.getLogger(__name__)


class SecretService:
    """A user's secrets. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def list(self, user: User) -> SecretList:
        """The caller's, without values."""
        found = await self._ctx.store.user_secrets.list(user.name)
        shown = [SecretWire(name=each.name, set_at=each.set_at, used_at=each.used_at) for each in found]
        return SecretList(data=tuple(shown))

    async def set(self, user: User, name: str, value: str) -> None:
        """Keep a value. Raises InvalidParameters."""
        if not is_secret_name(name):
            raise InvalidParameters(
                Text("The name is invalid."), hint=Text("The name of a secret must have {allowed}.", allowed=ALLOWED)
            )
        await self._ctx.store.user_secrets.set(user.name, name, value, self._act(user))

    async def remove(self, user: User, name: str) -> None:
        """Keep it no longer. Raises NoSuchSecret."""
        if not is_secret_name(name):
            raise NoSuchSecret(
                Text("You have no secret {name}.", name=repr(name[:100])), hint=Text("`pai secret list` shows yours.")
            )
        await self._ctx.store.user_secrets.remove(user.name, name, self._act(user))

    async def put_into(self, document: Document, user: User) -> Document:
        """The document with the values of the secrets that it takes of the user.

        Raises DocumentError with the place of each that the user does not have.
        """
        names = used_names(document.users_secrets)
        if not names:
            return document
        values = await self._ctx.store.user_secrets.values(user.name, names)
        lacks_some = len(values) < len(names)
        kept = await self._ctx.store.user_secrets.list(user.name) if lacks_some else ()

        def whole() -> Document:
            filled = with_users(document, values, [each.name for each in kept])
            check_secrets(filled)
            return filled

        # The place of a fault is looked for in the text.
        return await in_turn(whole) if len(document.source) > LARGE_BYTES else whole()

    async def note_use(self, document: Document, user: User) -> None:
        """Note that a submission took its secrets. What fails here does not undo the submission."""
        names = used_names(document.users_secrets)
        if not names:
            return
        try:
            await self._ctx.store.user_secrets.used(user.name, names, self._ctx.clock())
        except Unavailable as error:
            log.warning("the use of secrets of %s is not noted: %s", user.name, error.message)

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)


def check_secrets(document: Document) -> None:
    """Refuse more secrets than logs can be searched for, and invalid keys of an ssh plugin. Raises DocumentError."""
    _check_size(document)
    _check_keys(document)


def _check_size(document: Document) -> None:
    """Refuse more secrets than logs can be searched for at a bounded cost. Raises DocumentError."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts(document.secrets))
    if size <= LONGEST:
        return
    message = Text(
        "the secrets have {size} bytes together; at most {longest} are kept out of logs", size=size, longest=LONGEST
    )
    hint = Text("Put large files on a storage that only you can read, and their key into secrets.")
    line, column = place_of(document, ("secrets",)) or (None, None)
    fault = Fault(path="$.secrets", message=message, line=line, column=column, hint=hint)
    raise DocumentError(Text("secrets: {message}", message=message), errors=[fault], hint=hint)


def _check_keys(document: Document) -> None:
    """Refuse an invalid public key of an ssh plugin, secrets put in. Raises DocumentError."""
    try:
        for options in {role.ssh.authorized_keys: role.ssh for role in document.spec.task_roles}.values():
            document_keys(options, document.secrets)
    except InvalidParameters as error:
        path = ("extras", PLUGINS)
        line, column = place_of(document, path) or (None, None)
        fault = Fault(path=path_text(path), message=error.message, line=line, column=column, hint=error.hint)
        raise DocumentError(error.message, errors=[fault], hint=error.hint) from None
