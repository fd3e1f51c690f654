"""Job documents to begin with: those that are shipped, the site's, and each user's own; and drafts of users."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import in_turn
from pai_backend.api.template_wire import DraftList, DraftWire, Origin, TemplateList, TemplateWire, TemplateWords
from pai_backend.auth.users import User
from pai_backend.model.errors import InvalidParameters, NoSuchFile
from pai_backend.model.text import Text
from pai_backend.protocol.mask import SECRET_NAME, masked_readable
from pai_backend.store.kept_documents import DocumentKind

log = logging.getLogger(__name__)

MAX_BYTES = 131_072
"""Of one template or draft; forms are made for shorter ones."""
MOST = 200
"""Files of a site's directory that are offered."""
SHIPPED = Path(__file__).parents[1] / "templates"
WORDS = "words.json"
"""A file beside templates that introduces them: ``{name: {language: {title, about}}}``."""

_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,63}", re.ASCII)
_COMMENT = re.compile(r"\s*(?:#|//)\s?(.*)")
_WORDS = TypeAdapter(dict[str, dict[str, TemplateWords]])


@dataclass(frozen=True)
class TemplateFile:
    """A template of a directory."""

    shown: TemplateWire
    text: bytes


def read_templates(directory: Path, origin: Origin) -> dict[str, TemplateFile]:
    """The templates of a directory by name: its documents, each named like its file; those in ``WORDS`` first. Blocks.

    What cannot be read is left out, and the log says so.
    """
    words = _words(directory / WORDS)
    order = {name: place for place, name in enumerate(words)}
    try:
        files = [path for path in directory.iterdir() if path.suffix in _SUFFIXES and path.name != WORDS]
    except OSError as error:
        log.warning("templates of %s cannot be read: %s", directory, error)
        return {}
    found: dict[str, TemplateFile] = {}
    for path in sorted(files, key=lambda path: (order.get(path.stem, len(order)), path.name)):
        name = path.stem
        if len(found) >= MOST or name in found or not _NAME.fullmatch(name):
            log.warning("the template %s is left out: the name is taken or invalid, or there are too many", path)
            continue
        try:
            text = _read(path)
        except (OSError, ValueError) as error:
            log.warning("the template %s is left out: %s", path, error)
            continue
        told = {"en": _introduced(name, text), **words.get(name, {})}
        found[name] = TemplateFile(TemplateWire(name=name, origin=origin, filename=path.name, words=told), text)
    return found


def _read(path: Path) -> bytes:
    """A document. Raises OSError; ValueError for a text that cannot be a template."""
    if not path.is_file():
        raise ValueError("it must be a regular file")
    with open(path, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    text.decode()
    return text


def _words(path: Path) -> Mapping[str, Mapping[str, TemplateWords]]:
    if not path.exists():
        return {}
    try:
        return _WORDS.validate_python(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as error:
        log.warning("%s is left out: %s", path, error)
        return {}


def _introduced(name: str, text: bytes) -> TemplateWords:
    """By its name, and by the comment that it begins with."""
    lines: list[str] = []
    for line in text.decode().splitlines():
        comment = _COMMENT.fullmatch(line)
        if comment is None:
            break
        lines.append(comment[1])
    return TemplateWords(title=name, about=" ".join(filter(None, lines)))


class TemplateService:
    """Templates as users see and keep them."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def list(self, user: User) -> TemplateList:
        """All that the user may begin with: their own first, the shipped ones last."""
        offered = await self._offered()
        own = await self._ctx.store.kept_documents.list(user.name, DocumentKind.TEMPLATE)
        shown = [
            TemplateWire(
                name=each.name,
                origin=Origin.OWN,
                filename=each.filename,
                words={"en": TemplateWords(title=each.name, about="")},
            )
            for each in own
        ]
        hidden = {each.name for each in own}
        return TemplateList(data=(*shown, *(each.shown for name, each in offered.items() if name not in hidden)))

    async def document(self, user: User, name: str) -> tuple[bytes, str]:
        """A template's text and file name. Raises NoSuchFile."""
        kept = await self._ctx.store.kept_documents.get(user.name, DocumentKind.TEMPLATE, name)
        if kept is not None:
            return kept
        template = (await self._offered()).get(name)
        if template is None:
            raise NoSuchFile(
                Text("There is no template {name}.", name=repr(name[:100])), hint=Text("`pai templates` lists them.")
            )
        return template.text, template.shown.filename

    async def _offered(self) -> dict[str, TemplateFile]:
        """The site's and the shipped ones."""
        return await asyncio.to_thread(_read_all, self._ctx.site.templates)


def _read_all(site: Path | None) -> dict[str, TemplateFile]:
    own = read_templates(site, Origin.SITE) if site is not None else {}
    return own | {name: each for name, each in read_templates(SHIPPED, Origin.SHIPPED).items() if name not in own}


def offered_documents(site: Path | None) -> list[bytes]:
    """The texts of the site's templates and of the shipped ones. Blocks."""
    return [template.text for template in _read_all(site).values()]


class DraftService:
    """Drafts as users see them."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def list(self, user: User) -> DraftList:
        """The user's, the newest first."""
        own = await self._ctx.store.kept_documents.list(user.name, DocumentKind.DRAFT)
        own.sort(key=lambda each: each.changed_at, reverse=True)
        shown = [DraftWire(name=each.name, filename=each.filename, changed_at=each.changed_at) for each in own]
        return DraftList(data=tuple(shown))

    async def document(self, user: User, name: str) -> tuple[bytes, str]:
        """A draft's text and file name. Raises NoSuchFile."""
        kept = await self._ctx.store.kept_documents.get(user.name, DocumentKind.DRAFT, name)
        if kept is None:
            raise NoSuchFile(Text("You have no draft {name}.", name=repr(name[:100])))
        return kept


async def keep(ctx: ApiContext, user: User, kind: DocumentKind, name: str, text: bytes, filename: str) -> None:
    """Keep a document with its secrets masked. Raises InvalidParameters."""
    if not _NAME.fullmatch(name):
        raise InvalidParameters(
            Text("The name is invalid."),
            hint=Text("Use 1 to 63 letters, digits, and . _ -, with no dot at the beginning."),
        )
    covered = await in_turn(partial(_without_secrets, text))
    await ctx.store.kept_documents.put(user.name, kind, name, covered, filename, ctx.clock())


def _without_secrets(text: bytes) -> bytes:
    """The text with its secrets masked; one that cannot be read, and names none, as it is. Raises InvalidParameters."""
    covered = masked_readable(text)
    if covered is not None:
        return covered
    if SECRET_NAME.search(text.decode(errors="replace")):
        raise InvalidParameters(
            Text("The document cannot be read and may hold secrets, so it is not kept as it is."),
            hint=Text("It is kept as soon as it can be read."),
        )
    return text
