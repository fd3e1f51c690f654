"""What a word on the command line means: the backend's default file system, a storage, or a path here."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

DEFAULT_FS = "$PAI_DEFAULT_FS_URI"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True)
class OfBackend:
    """A path of the default file system, beginning with ``/``; ``slash`` when the word ended with one."""

    path: str
    slash: bool = False


@dataclass(frozen=True)
class Elsewhere:
    """A URI of a storage that is reached from here."""

    uri: str
    slash: bool = False


@dataclass(frozen=True)
class Here:
    """A path of this machine."""

    path: Path
    slash: bool = False


Place = OfBackend | Elsewhere | Here


def place(word: str) -> Place:
    """What ``word`` names. Raises ClientError for an empty one, and for ``file://`` of another machine."""
    if not word:
        raise wrong(Text("A path or URI is empty."), Text("Name one, such as pai://alice/code."))
    slash = word.endswith("/")
    for name in (DEFAULT_FS, "${PAI_DEFAULT_FS_URI}"):
        if word == name or word.startswith(f"{name}/"):
            return OfBackend(_rooted(word[len(name) :]), slash)
    found = _SCHEME.match(word)
    if found is None:
        return Here(Path(word).expanduser(), slash)
    scheme, rest = found[1].lower(), word[found.end() :]
    if scheme == "pai":
        return OfBackend(_rooted(rest), slash)
    if scheme == "file":
        host, _, path = rest.partition("/")
        if host not in ("", "localhost"):
            raise wrong(
                Text("file://{host}/… names another machine.", host=host), Text("Write file:///path or a plain path.")
            )
        return Here(Path("/" + path), slash)
    return Elsewhere(word, slash)


def below(base: str, relative: str) -> str:
    """A path or URI below another; ``relative`` has ``/`` between names, whatever this machine has."""
    return f"{base.rstrip('/')}/{relative.replace(os.sep, '/')}"


def _rooted(path: str) -> str:
    return "/" + path.strip("/")


def wrong(message: str, hint: str) -> ClientError:
    """A mistake of usage."""
    return ClientError(message, code="InvalidParametersError", hint=hint)
