"""The one entry point: the bytes of a job document to its meaning, or to all that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import Dialect, DocumentWarning, JobSpec
from pai_backend.protocol import v1
from pai_backend.protocol.fields import Reader
from pai_backend.protocol.locate import locate
from pai_backend.protocol.position import Positions, printable

MAX_BYTES: Final = 1_048_576
"""Largest document read; the largest real one known is below 100 KiB."""

_V2_KEYS = ("protocolVersion", "protocol_version")
_V2_LINE = re.compile(r"""^["']?protocol(?:V|_v)ersion["']?[ \t]*:""", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A job document that was read. Not in ``repr``: the parts that may hold secrets."""

    spec: JobSpec = field(repr=False)
    dialect: Dialect
    source: bytes = field(repr=False)
    warnings: tuple[DocumentWarning, ...] = ()
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values of a v2 document's ``secrets``, as written; ``spec.secret_names`` has the names."""


def read_document(text: bytes | str, filename: str | None = None) -> Document:
    """Read a job document: OpenPAI v1 JSON, QIZHI or SCM; the dialect is found from the text itself.

    ``source`` of the result is the document byte for byte (UTF-8 of a ``str``). ``filename`` is used in
    the error message only. Raises DocumentError with every fault found, each with path, line and column.
    """
    name = printable(filename) if filename else "the document"
    source, decoded = _decode(text, name)
    first = decoded.lstrip("\ufeff \t\r\n")[:1]
    if first != "{" and (v2 := _V2_LINE.search(decoded)):
        raise _error([_v2_fault(Positions(decoded), v2.start())], name)
    located = locate(decoded)
    reader = Reader(located.positions, located.flaws, located.slips)
    root = located.root
    if root is None:
        raise _error(reader.faults, name)
    if isinstance(root.value, dict):
        for key in _V2_KEYS:
            if key in root.value:
                raise _error([_v2_fault(located.positions, root.value[key].key_at)], name)
    spec = v1.read(root, reader)
    if spec is None or reader.failed:
        raise _error(reader.faults, name)
    return Document(spec, spec.dialect, source, reader.warnings)


def _decode(text: bytes | str, name: str) -> tuple[bytes, str]:
    """The document as bytes and as text; refuses what is too long or no UTF-8."""
    try:
        source = text.encode() if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError as error:
        line, column = Positions(error.object).line_column(error.start)
        message = "half of a character pair, which is no character"
        raise _refused(message, "Remove it or write the whole character.", name, line, column) from None
    if len(source) > MAX_BYTES:
        message = f"the document has {len(source)} bytes; at most {MAX_BYTES} are read"
        raise _refused(message, "Keep data and code out of the document; name them by dataDir and codeDir.", name)
    try:
        return source, source.decode()
    except UnicodeDecodeError as error:
        if source.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise _refused("the document is UTF-16, not UTF-8", "Save it as UTF-8.", name) from None
        line, column = Positions(before := source[: error.start].decode()).line_column(len(before))
        message = f"the byte 0x{source[error.start]:02X} is not UTF-8"
        raise _refused(message, "Save the document as UTF-8 (it may be GBK now).", name, line, column) from None


def _refused(message: str, hint: str, name: str, line: int = 1, column: int = 1) -> DocumentError:
    return _error([Fault(path="$", message=message, line=line, column=column, hint=hint)], name)


def _v2_fault(positions: Positions, at: int) -> Fault:
    line, column = positions.line_column(at)
    return Fault(
        path="$.protocolVersion",
        message="documents with a protocolVersion (OpenPAI v2) are not read yet",
        line=line,
        column=column,
        hint="Write the job as OpenPAI v1 JSON, with jobName, image and taskRoles.",
    )


def _error(faults: list[Fault] | tuple[Fault, ...], name: str) -> DocumentError:
    """The error for ``faults``; its message names the first and counts the others."""
    first = faults[0]
    others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{name}, line {first.line}, column {first.column}: {first.message}{others}"
    return DocumentError(message, errors=faults, hint=first.hint)
