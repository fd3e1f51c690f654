"""The client that a verb talks through, and documents read from files or stdin."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_pai.errors import ClientError, InvalidDocument
from jupyter_pai.language import tr
from jupyter_pai.verbs import flag
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.commands.output import Output
    from jupyter_pai.sync import Client

Answer = TypeVar("Answer")


@contextlib.contextmanager
def connected(*, start: bool = True) -> Iterator[Client]:
    """A client of the configured backend; the private one is started when ``start`` and it does not run."""
    from jupyter_pai.endpoint import resolve
    from jupyter_pai.sync import Client

    with Client(resolve(start=start)) as client:
        yield client


def asked(question: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer:
    """What the configured backend answers to one question. Raises ClientError."""
    with connected() as client:
        return client.thread.run(question(client.api))


FROM_STDIN = flag("--password-stdin", help="read the password from the standard input")


def password_line() -> str:
    """The password on the standard input: its first line. Raises ClientError when there is none."""
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise ClientError("There is no password on the standard input.", code="InvalidParametersError")
    return password


@dataclass(frozen=True)
class DocumentFile:
    """A job document as it was read; ``name`` is for messages, ``filename`` for the backend."""

    data: bytes
    name: str
    filename: str | None

    def __str__(self) -> str:
        return self.name

    @property
    def text(self) -> str:
        """The document to mark places in."""
        return self.data.decode("utf-8-sig", errors="replace")


def read_document(file: str | DocumentFile) -> DocumentFile:
    """A document from a file, or from stdin for ``-``; one in UTF-16 with a byte order mark as UTF-8.

    In a notebook it may have been read already. Raises InvalidDocument when it cannot be read.
    """
    if isinstance(file, DocumentFile):
        return file
    if file == "-":
        return DocumentFile(_without_utf16(sys.stdin.buffer.read()), "stdin", None)
    path = Path(file)
    try:
        return DocumentFile(_without_utf16(path.read_bytes()), file, path.name)
    except OSError as error:
        raise InvalidDocument(
            Text("{file} cannot be read: {strerror}.", file=file, strerror=error.strerror),
            code="InvalidParametersError",
            hint="Check the file's name.",
        ) from error


def _without_utf16(data: bytes) -> bytes:
    """A text in UTF-16 as UTF-8; any other, and a damaged one, as it is: reading it says what is wrong."""
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        return data


def converted(document: DocumentFile, out: Output, *, agreed: bool) -> DocumentFile | None:
    """A document in GBK as UTF-8, when the user agrees or has ``agreed`` before; None when not.

    Any other as it is. Raises ClientError where the user cannot be asked.
    """
    try:
        document.data.decode()
        return document
    except UnicodeDecodeError:
        pass
    try:
        text = document.data.decode("gb18030")
    except UnicodeDecodeError:
        return document
    if agreed or out.agreed(
        tr("convert {name} from GBK to UTF-8", name=document.name), tr("Not submitted: the document is not UTF-8.")
    ):
        return replace(document, data=text.encode())
    return None


def write_document(file: str, text: str) -> None:
    """Write a document to a file, whole or not at all. Raises InvalidDocument when it cannot be written."""
    path = Path(file)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # /dev/stderr or a pipe is written to, never replaced
            path.write_text(text, encoding="utf-8", newline="")
            return
        unfinished.write_text(text, encoding="utf-8", newline="")
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise InvalidDocument(
            Text("{file} cannot be written: {strerror}.", file=file, strerror=error.strerror),
            code="InvalidParametersError",
            hint="Choose another file or directory.",
        ) from error
