"""The one entry point: the bytes of a job document to its meaning, or to all that is wrong with it.

A YAML text may hold several documents, and one of them is the job. The protocol's own page has two: a description of
the fields, which is no valid YAML, and an example. So each document is read for itself, and one that cannot be read
stops nothing when another is the job. A line ``---`` or ``...`` ends a document wherever it stands (YAML 1.2, section
9.1.2), so the text is cut there first. Directives are looked at here alone: the parser's time for many of them grows
with their square.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import Dialect, DocumentWarning, JobSpec
from pai_backend.model.text import Text
from pai_backend.model.user_secret import SecretUse
from pai_backend.protocol import extension, v1, v2
from pai_backend.protocol.diagnose import SyntaxTrouble
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import locate
from pai_backend.protocol.own_fields import SECRET_ENV
from pai_backend.protocol.tree import BOM, Flaw, Node, Positions, printable
from pai_backend.protocol.yaml_tree import YamlBudget, YamlStop, build

MAX_DOCUMENTS: Final = 32
"""Documents of one text; the protocol's own page has two."""

# Each begins with one plain character: a search for it is some 80 times faster than one for either.
_MARKERS = tuple(re.compile(rf"{begin}(---|\.\.\.)(?=[ \t\r\n]|\Z)") for begin in (r"\n", r"\r"))
_FIRST_MARKER = re.compile(r"\ufeff?(---|\.\.\.)(?=[ \t\r\n]|\Z)")
_BLANK = re.compile(r"(?:[ \t]*+(?>#[^\r\n]*+|)(?:[\r\n]++|\Z)|)*+")
_DIRECTIVE = re.compile(r"%([^\r\n]*+)(?:\r\n?|\n|\Z)")
_VERSION = re.compile(r"YAML[ \t]+1\.[0-9]{1,3}[ \t]*+(?:#.*+)?")
_UNREADABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.2, section 5.1, c-printable
)
_JOB_LINE = re.compile(r"""(?:\A|(?<=[\r\n]))(?:["']?)type(?:["']?)[ \t]*+:[ \t]*+(?:["']?)job\b""")


@dataclass
class _Part:
    """One document of the text: where it is and what it is, or why it cannot be read."""

    start: int
    end: int
    root: Node | None = None
    flaws: list[Flaw] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.root is None or self.root.value is None

    def is_job(self, text: str) -> bool:
        """Whether it says ``type: job``; one that cannot be read says so by a line of its own."""
        if self.root is not None and isinstance(self.root.value, dict):
            kind = self.root.value.get("type")
            return kind is not None and kind.value == "job"
        return bool(self.flaws) and _JOB_LINE.search(text, self.start, self.end) is not None

    def has_roles(self) -> bool:
        """Whether it looks like a job that forgot to say so."""
        return self.root is not None and isinstance(self.root.value, dict) and "taskRoles" in self.root.value


@dataclass(frozen=True)
class Stream:
    """A text that was read. ``root`` is None when no job could be read; ``others`` counts the documents beside it."""

    root: Node | None
    flaws: Sequence[Flaw]
    positions: Positions
    others: int = 0


def locate_yaml(text: str) -> Stream:
    """Read ``text``; never raises, whatever the text."""
    positions = Positions(text)
    trouble = _forbidden_character(text)
    if trouble is not None:
        return Stream(None, [_flaw(trouble)], positions)
    flaws: list[Flaw] = []
    parts = _parts(text, flaws)
    if flaws:
        return Stream(None, flaws, positions)
    budget = YamlBudget()
    for part in parts:
        try:
            part.root = build(text, part.start, part.end, positions, budget, part.flaws)
        except YamlStop:
            part.root = None
        if budget.nodes < 0:
            return Stream(None, part.flaws, positions)
    return _chosen(text, [part for part in parts if part.flaws or not part.is_empty()], positions)


def _forbidden_character(text: str) -> SyntaxTrouble | None:
    """The first character of ``text`` that no YAML document may hold, or None."""
    found = _UNREADABLE.search(text)
    if found is None:
        return None
    at = found.start()
    message = Text("the character U+{code}, which YAML does not allow", code=format(ord(text[at]), "04X"))
    return SyntaxTrouble(at, message, Text('Remove it, or write it as an escape in double quotes: "\\x1b".'))


def _chosen(text: str, parts: list[_Part], positions: Positions) -> Stream:
    """The part that is the job."""
    if not parts:
        hint = Text("Write a job document, or choose another file.")
        return Stream(None, [Flaw((), len(text), Text("the document is empty"), hint)], positions)
    jobs = parts if len(parts) == 1 else [part for part in parts if part.is_job(text)]
    jobs = jobs or [part for part in parts if part.has_roles()]
    if len(jobs) > 1:
        line, _ = positions.line_column(jobs[0].start)
        message = Text("a second job; the first begins at line {line}", line=line)
        return Stream(None, [Flaw((), jobs[1].start, message, Text("Submit them one by one."))], positions)
    if not jobs:
        broken = [flaw for part in parts for flaw in part.flaws]
        hint = Text("Write type: job in the one that is.")
        return Stream(
            None,
            broken or [Flaw((), 0, Text("none of the {count} documents is a job", count=len(parts)), hint)],
            positions,
        )
    return Stream(jobs[0].root, jobs[0].flaws, positions, len(parts) - 1)


def _parts(text: str, flaws: list[Flaw]) -> list[_Part]:
    """The documents of ``text``, with their ``---``; adds what is wrong with the lines between them."""
    parts: list[_Part] = []
    at = 1 if text.startswith(BOM) else 0
    explicit = False
    markers = _markers(text)
    if len(markers) > 2 * MAX_DOCUMENTS:
        flaws.append(
            Flaw(
                (),
                markers[-1][0],
                Text("more than {most} documents", most=MAX_DOCUMENTS),
                Text("Submit jobs one by one."),
            )
        )
        return []
    for end, follows in (*markers, (len(text), "")):
        if explicit or not _prologue(text, at, end, follows == "---", flaws):
            parts.append(_Part(at, end))
        explicit = follows == "---"
        at = end if explicit else end + len(follows)
    return parts


def _markers(text: str) -> list[tuple[int, str]]:
    """Where lines --- and ... begin, in order, and which it is: all, or a few more than are allowed."""
    first = _FIRST_MARKER.match(text)
    found = [first] if first is not None else []
    for pattern in _MARKERS:
        found += islice(pattern.finditer(text), 2 * MAX_DOCUMENTS + 1)
    return sorted((one.start(1), one[1]) for one in found)


def _prologue(text: str, at: int, end: int, begins: bool, flaws: list[Flaw]) -> bool:
    """Whether ``text[at:end]`` is only directives and comments before a ``---`` (``begins``) or an end."""
    at = _skip(text, at, end)
    first = at
    while at < end and (found := _DIRECTIVE.match(text, at, end)) is not None:
        if not _VERSION.fullmatch(found[1].rstrip()):
            hint = Text("Remove the line; job documents need no directive.")
            flaws.append(_flaw(SyntaxTrouble(at, Text("a directive other than %YAML 1.2"), hint)))
            return True
        at = _skip(text, found.end(), end)
    if at > first and (at < end or not begins):
        flaws.append(
            _flaw(
                SyntaxTrouble(
                    at, Text("no line --- after the directives"), Text("Write --- on a line before the document.")
                )
            )
        )
        return True
    return at >= end


def _skip(text: str, at: int, end: int) -> int:
    """Pass blank lines and comments."""
    found = _BLANK.match(text, at, end)
    return at if found is None else found.end()


def _flaw(trouble: SyntaxTrouble) -> Flaw:
    return Flaw((), trouble.at, trouble.message, trouble.hint)


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
    users_secrets: tuple[SecretUse, ...] = ()
    """What it takes of the secrets that its user keeps (``protocol.user_secrets``)."""


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
            hint = Text("Submit other jobs one by one.")
            message = Text(
                "documents in the text beside the job: {others}; only the job is taken", others=stream.others
            )
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
    return Document(spec, spec.dialect, source, reader.warnings, users_secrets=_variables(spec, root, reader))


def place_of(document: Document, path: Path) -> tuple[int, int] | None:
    """Line and column of the value at ``path`` of a document; None for a default, which stands nowhere."""
    text = document.source.decode()
    located = locate_yaml(text) if _is_yaml(text, "") else locate(text)
    node = _node_at(located.root, path)
    return None if node is None else located.positions.line_column(node.at)


def _node_at(node: Node | None, path: Path) -> Node | None:
    """The node that ``path`` leads to."""
    for step in path:
        if node is None or not isinstance(node.value, dict | list):
            return None
        if isinstance(node.value, dict):
            node = node.value.get(str(step))
        else:
            node = node.value[step] if isinstance(step, int) and step < len(node.value) else None
    return node


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
    uses = (*read.users_secrets, *_variables(spec, root, reader))
    return Document(spec, spec.dialect, source, reader.warnings, read.secrets, uses)


def _variables(spec: JobSpec, root: Node, reader: Reader) -> tuple[SecretUse, ...]:
    """The secrets of the user's that variables of the job are to hold."""
    uses = []
    for variable, name in spec.secret_env.items():
        path = (*SECRET_ENV, variable)
        node = _node_at(root, path)
        uses.append(SecretUse(name, path, *(reader.line_column(node.at) if node is not None else (1, 1))))
    return tuple(uses)


def _decode(text: bytes | str, name: str) -> tuple[bytes, str]:
    """The document as bytes and as text; refuses what is too long or no UTF-8."""
    try:
        source = text.encode() if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError as error:
        line, column = Positions(error.object).line_column(error.start)
        message = Text("half of a surrogate pair")
        raise _refused(message, Text("Remove it or write the whole character."), name, line, column) from None
    if len(source) > MAX_BYTES:
        message = Text("the document has {count} bytes; at most {most} are read", count=len(source), most=MAX_BYTES)
        raise _refused(message, Text("Keep data and code out of the document; name them by dataDir and codeDir."), name)
    try:
        return source, source.decode()
    except UnicodeDecodeError as error:
        if source.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise _refused(Text("the document is UTF-16, not UTF-8"), Text("Save it as UTF-8."), name) from None
        line, column = Positions(before := source[: error.start].decode()).line_column(len(before))
        message = Text("the byte 0x{source} is not UTF-8", source=format(source[error.start], "02X"))
        raise _refused(message, Text("Save the document as UTF-8 (it may be GBK now)."), name, line, column) from None


def _refused(message: Text, hint: Text, name: str, line: int = 1, column: int = 1) -> DocumentError:
    return _error([Fault(path="$", message=message, line=line, column=column, hint=hint)], name)


def _error(faults: list[Fault] | tuple[Fault, ...], name: str) -> DocumentError:
    """The error for ``faults``; its message names the first and counts the others."""
    first = faults[0]
    place = {"document": name, "line": first.line, "column": first.column, "fault": first.message}
    if len(faults) > 1:
        more = len(faults) - 1
        message = Text("{document}, line {line}, column {column}: {fault} (and {more} more)", **place, more=more)
    else:
        message = Text("{document}, line {line}, column {column}: {fault}", **place)
    return DocumentError(message, errors=faults, hint=first.hint)
