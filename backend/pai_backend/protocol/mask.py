"""A document as other users may see it: byte for byte, except the values of its secrets.

Masked are, by their place in the document and never by what their lines look like: in v2 every value in ``secrets``
and every password of an ``auth`` that is more than tags, which the reader makes a secret as well; in v1, which marks
nothing as secret, the values of ``jobEnvs`` whose names say that they are. Upstream masks by one expression over lines,
which misses documents in another style than its own and swallows what follows a quoted key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from pai_backend.model import tags
from pai_backend.model.errors import DocumentError
from pai_backend.protocol.document import MAX_BYTES, MAX_DOCUMENTS, read_document
from pai_backend.protocol.locate import locate
from pai_backend.protocol.spans import Span, of_json, of_yaml
from pai_backend.protocol.tree import BOM
from pai_backend.protocol.v2 import PASSWORDS

MASK: Final = '"******"'
"""What stands for a masked value; a text in JSON and in every style of YAML."""
MASKED_WHOLE: Final = f"{MASK}\n".encode()
"""What stands for a document that cannot be read, and might hold anything."""
MAX_STEPS: Final = 200_000
"""Values looked at for one document, those that aliases repeat counted again."""

_T = TypeVar("_T")
_BLANK = " \t\r\n"  # what YAML and JSON call white space; other spaces are text, and may be a secret's
SECRET_NAME: Final = re.compile("PASSWORD|PASSWD|PASSPHRASE|PWD|TOKEN|SECRET|CREDENTIAL|KEY", re.IGNORECASE)
_BEGINS_OBJECT = re.compile(r"\ufeff?(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/)|)*+\*/|)*+\{")
# A line --- or ... ends a document wherever it stands (YAML 1.2, section 9.1.2).
_MARKER = re.compile(r"(?:\A|(?<=[\r\n]))(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_NO_VALUE = re.compile(r"(?:[ \t]*+(?>[#%][^\r\n]*+|)(?:[\r\n]++|\Z)|)*+\Z")
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*+(?:[ \t\r\n]++|#[^\r\n]*+|)*+|)*+")
_TAG = re.compile(r"![^\s,\[\]{}]*+[ \t]*+")
_BLOCK = re.compile(r"[|>][-+0-9]*+([ \t]*+(?>#[^\r\n]*+|))")


Found = list[tuple[Span, bool]]
"""What is to be masked, and whether it stands elsewhere than among the secrets, reached by an alias."""


def masked(source: bytes) -> bytes:
    """``source`` with each secret value replaced by ``"******"``; all other bytes, comments too, are as they were.

    The structure stays: an object of secrets keeps its keys, a list its length. What cannot be read, and a document
    that would not be readable with its secrets masked, becomes ``MASKED_WHOLE``. Never raises; takes time linear in
    the length of the document.
    """
    try:
        return _masked(source, lambda text: _yaml(text, _whole))
    except _CannotMask:
        return MASKED_WHOLE


def masked_readable(source: bytes) -> bytes | None:
    """The same, but None where a text, or a document of it, would be masked as a whole."""
    try:
        return _masked(source, lambda text: _yaml(text, _refused))
    except _CannotMask:
        return None


def _masked(source: bytes, read_yaml: Callable[[str], Found]) -> bytes:
    if len(source) > MAX_BYTES:
        raise _CannotMask
    try:
        text = source.decode()
    except UnicodeDecodeError:
        raise _CannotMask from None
    found = _json(text) if _BEGINS_OBJECT.match(text) else None
    if found is None:
        found = read_yaml(text)
    result = _replaced(text, [span for span, _ in found])
    if any(is_elsewhere for _, is_elsewhere in found) and _can_be_read(source) and not _can_be_read(result):
        raise _CannotMask
    return result


class _CannotMask(Exception):
    """Secrets cannot be told from the rest, or there is more to read than is read."""


def _json(text: str) -> Found | None:
    """What is to be masked in a text that is JSON; None when it is not JSON."""
    located = locate(text)
    if located.root is None or located.flaws:
        return None
    return list(_Search(of_json(text, located.root)).secrets())


def _whole(text: str, start: int, end: int) -> Span:
    """A document that cannot be read, as one value."""
    return Span(*_trimmed(text, start, end), text[start:end])


def _refused(text: str, start: int, end: int) -> Span:
    raise _CannotMask


def _yaml(text: str, unreadable: Callable[[str, int, int], Span]) -> Found:
    """What is to be masked in a YAML text, with what stands for a document of it that cannot be read."""
    found: Found = []
    starts = [marker.start() for marker in islice(_MARKER.finditer(text), 2 * MAX_DOCUMENTS + 1)]
    if len(starts) > 2 * MAX_DOCUMENTS:  # each may have a beginning and an end
        raise _CannotMask
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        start += 1 if start == 0 and text.startswith(BOM) else 0
        inside = start + 3 if _MARKER.match(text, start) else start
        if _NO_VALUE.match(text, inside, end):
            continue
        start = inside if text.startswith("...", start) else start  # --- is read too: columns count from it
        root = of_yaml(text[start:end])
        if root is None:
            found.append((unreadable(text, inside, end), False))
        else:
            secrets = _Search(root).secrets()
            found += [(Span(start + span.start, start + span.end), elsewhere) for span, elsewhere in secrets]
    return found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip(_BLANK)), start + len(inner.rstrip(_BLANK))


class _Search:
    """The search for the secrets of one document, with a bound on what it looks at."""

    def __init__(self, root: Span) -> None:
        self._root = root
        self._steps = MAX_STEPS

    def secrets(self) -> Iterator[tuple[Span, bool]]:
        """The secret values, each once, and whether each stands elsewhere. Raises _CannotMask."""
        seen: set[int] = set()
        for area in self._areas():
            inside = {id(span) for span in self._counted(area.within(follow=False))}
            for span in self._counted(area.within(follow=True)):
                if span.text is not None and id(span) not in seen and span.start < span.end:
                    seen.add(id(span))
                    yield span, id(span) not in inside

    def _areas(self) -> Iterator[Span]:
        """The values that are secret as a whole."""
        for name, value in self._fields(self._root):
            if name == "secrets":
                yield value
            elif name == "jobEnvs":
                yield from (variable for key, variable in self._fields(value) if SECRET_NAME.search(key))
            elif name == "prerequisites":
                for item in value.value().items:
                    for auth in self._named(item, "auth"):
                        for key, password in self._fields(auth):
                            if key in PASSWORDS:
                                yield from self._literal(password)

    def _literal(self, password: Span) -> Iterator[Span]:
        """The password, unless it is only tags; and the same of the parameters that its tags put into it."""
        text = password.value().text
        if text is None:
            yield password
            return
        for tag in tags.find(text):
            if not tag.flaw and tag.scope == "parameters":
                for parameter in self._at(tag.steps):
                    yield from self._texts(parameter)
        if _holds_text(password.value()):
            yield password

    def _texts(self, parameter: Span) -> Iterator[Span]:
        """The texts within a parameter, reached as by an alias: what else uses them must still be readable."""
        for span in self._counted(parameter.within(follow=True)):
            if _holds_text(span):
                yield Span(span.start, span.start, target=span)

    def _at(self, steps: tuple[str, ...]) -> Iterable[Span]:
        """The parameters that the steps of a tag lead to."""
        spans = list(self._named(self._root, "parameters"))
        for step in steps:
            below = [value for span in spans for value in self._named(span, step)]
            index = tags.index_of(step)
            if index is not None:
                below += [item for span in spans for item in span.value().items[index : index + 1]]
            spans = below
        return spans

    def _named(self, span: Span, name: str) -> Iterator[Span]:
        return (value for key, value in self._fields(span) if key == name)

    def _fields(self, span: Span) -> Iterator[tuple[str, Span]]:
        return self._counted(span.fields())

    def _counted(self, found: Iterable[_T]) -> Iterator[_T]:
        for one in found:
            self._steps -= 1
            if self._steps < 0:
                raise _CannotMask
            yield one


def _holds_text(span: Span) -> bool:
    """Whether a scalar is more than tags. An empty password, or a null, is not, and must not be once masked."""
    return span.text is not None and not span.is_null and not tags.is_only_tags(span.text)


def _replaced(text: str, spans: list[Span]) -> bytes:
    """``text`` with the values at ``spans`` masked."""
    parts: list[str] = []
    done = 0
    for span in sorted(spans, key=lambda one: one.start):
        parts += text[done : span.start], _mask(text[span.start : span.end])
        done = span.end
    return "".join((*parts, text[done:])).encode()


def _mask(written: str) -> str:
    """What stands for a scalar written so: its anchor, comments and line ends behind it stay."""
    properties = _PROPERTIES.match(written)
    head = properties[0] if properties else ""
    value = written[len(head) :]
    if not value.strip(_BLANK):
        return written
    kept = _TAG.sub("", head)
    block = _BLOCK.match(value)
    if block is None:
        return kept + MASK
    return kept + MASK + block[1] + value[len(value.rstrip(_BLANK)) :]


def _can_be_read(source: bytes) -> bool:
    try:
        read_document(source)
    except DocumentError:
        return False
    return True
