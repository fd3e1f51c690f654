"""The one entry point: the bytes of a job document to its meaning, or to all that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import Dialect, DocumentWarning, JobSpec
from pai_backend.protocol import extension, v1, v2
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import Node, locate
from pai_backend.protocol.position import Positions, printable
from pai_backend.protocol.yaml_stream import locate_yaml

MAX_BYTES: Final = 1_048_576
"""Largest document read; the largest real one known is below 100 KiB."""

_V2_KEYS = ("protocolVersion", "protocol_version")
_V2_LINE = re.compile(r"""protocol(?:V|_v)ersion["']?[ \t]*:""")  # begins with plain letters: searched for fast
_YAML_LINE = re.compile(r"^(?:%YAML|---|(?:name|type|taskRoles|prerequisites)[ \t]*:)", re.MULTILINE)
_YAML_NAMES = (".yaml", ".yml")
_LEADING = re.compile(r"\ufeff?(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/)|)*+\*/|)*+")
_FLOW_KEY = re.compile(r"""\{\s*+(?:\#[^\r\n]*+\s*+|)*+[^\s"/}]""")


@dataclass(frozen=True)
class Document:
    """A job document that was read. Not in ``repr``: the parts that may hold secrets."""

    spec: JobSpec = field(repr=False)
    dialect: Dialect
    source: bytes = field(repr=False)
    warnings: tuple[DocumentWarning, ...] = ()
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values of a v2 document's ``secrets``, as written, and the passwords of its ``auth`` that are more than tags of
    secrets; ``spec.secret_names`` has the names."""


def read_document(text: bytes | str, filename: str | None = None) -> Document:
    """Read a job document: OpenPAI v1 JSON, QIZHI, SCM, or OpenPAI v2 as YAML or JSON.

    The dialect is found from the text itself; ``filename`` is used in the error message, and tells YAML where the
    text leaves it open. ``source`` of the result is the document byte for byte (UTF-8 of a ``str``).
    Raises DocumentError with every fault found, each with path, line and column.
    """
    name = printable(filename) if filename else "the document"
    source, decoded = _decode(text, name)
    if _is_yaml(decoded, name):
        stream = locate_yaml(decoded)
        reader = Reader(stream.positions, stream.flaws)
        if stream.root is None:
            raise _error(reader.faults, name)
        if stream.others:
            hint = "Submit other jobs one by one."
            message = f"documents in the text beside the job: {stream.others}; only the job is taken"
            reader.warn("other-documents", (), message, hint)
        return _read_v2(stream.root, reader, source, decoded, name)
    located = locate(decoded)
    reader = Reader(located.positions, located.flaws, located.slips)
    root = located.root
    if root is None:
        raise _error(reader.faults, name)
    if isinstance(root.value, dict) and any(key in root.value for key in _V2_KEYS):
        return _read_v2(root, reader, source, decoded, name)
    spec = v1.read(root, reader)
    if spec is None or reader.failed:
        raise _error(reader.faults, name)
    return Document(spec, spec.dialect, source, reader.warnings)


def place_of(document: Document, path: Path) -> tuple[int, int] | None:
    """Line and column of the value at ``path`` of a document; None for a default, which stands nowhere."""
    text = document.source.decode()
    located = locate_yaml(text) if _is_yaml(text, "") else locate(text)
    node = located.root
    for step in path:
        if node is None or not isinstance(node.value, dict | list):
            return None
        if isinstance(node.value, dict):
            node = node.value.get(str(step))
        else:
            node = node.value[step] if isinstance(step, int) and step < len(node.value) else None
    return None if node is None else located.positions.line_column(node.at)


def _is_yaml(text: str, name: str) -> bool:
    """Whether ``text`` is to be read as YAML. Text that begins with a brace is JSON, unless its first key is no
    JSON and it is OpenPAI v2; other text is YAML when it, or the file's name, says so.
    """
    leading = _LEADING.match(text)
    start = 0 if leading is None else leading.end()
    if text.startswith("{", start):
        return _FLOW_KEY.match(text, start) is not None and _V2_LINE.search(text, start) is not None
    if name.lower().endswith(_YAML_NAMES):
        return True
    return _V2_LINE.search(text) is not None or _YAML_LINE.search(text) is not None


def _read_v2(root: Node, reader: Reader, source: bytes, text: str, name: str) -> Document:
    """The v2 document whose tree is ``root``."""
    read = v2.read(root, reader, text)
    spec = extension.honoured(read.spec, root, reader) if read is not None else None
    if read is None or spec is None or reader.failed:
        raise _error(reader.faults, name)
    return Document(spec, spec.dialect, source, reader.warnings, read.secrets)


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


def _error(faults: list[Fault] | tuple[Fault, ...], name: str) -> DocumentError:
    """The error for ``faults``; its message names the first and counts the others."""
    first = faults[0]
    others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{name}, line {first.line}, column {first.column}: {first.message}{others}"
    return DocumentError(message, errors=faults, hint=first.hint)
