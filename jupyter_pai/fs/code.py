"""A directory of code on its way into jobs: what git and ``.paiignore`` leave of it, kept once by its content.

The directory becomes a code tree (``pai_backend.model.code_tree``) below ``/<user>/.pai/code`` of the default file
system. Only contents that are not there yet are uploaded, and the list last: a tree whose list is there is complete.
Digests are remembered by size and times, as git does it, so that an unchanged directory is not read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from jupyter_pai.client import AsyncClient
from jupyter_pai.fs.backend_files import BackendFiles
from jupyter_pai.fs.places import DEFAULT_FS, wrong
from jupyter_pai.fs.sources import Found, LocalFile, unreadable
from jupyter_pai.fs.upload import upload
from jupyter_pai.language import tr
from jupyter_pai.streams import decoded
from pai_backend.model import code_tree
from pai_backend.model.code_tree import CodeEntry
from pai_backend.model.text import Text

IGNORE = ".paiignore"
CHUNK_BYTES = 1 << 20
SETTLED_S = 2.0
"""A file that was changed since is read again: it may change once more within the resolution of its time."""
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")

Say = Callable[[str], None]


@dataclass(frozen=True)
class SentCode:
    """A code tree that is there. ``code_dir`` is what a document names it by; ``name`` its directory in a task."""

    code_dir: str
    name: str
    files: int
    size: int
    sent: int  # files that were uploaded


async def send(client: AsyncClient, root: Path | None, extra: Mapping[str, bytes], say: Say) -> SentCode:
    """Upload a directory, and ``extra`` files by their paths in it, unless they are there. Raises ClientError."""
    answer = await client.request("GET", "/api/v2/users/me")
    user = cast(dict[str, str], decoded(answer.body))["username"]
    with tempfile.TemporaryDirectory() as made:
        packed = await asyncio.to_thread(pack, root, extra, Path(made))
        return await _sent(BackendFiles(client), user, packed, say)


@dataclass(frozen=True)
class Packed:
    """A tree before it is uploaded: its list's file, and files here by their digests."""

    name: str
    digest: str
    list: LocalFile
    blobs: Mapping[str, LocalFile]
    entries: tuple[CodeEntry, ...]


async def _sent(files: BackendFiles, user: str, packed: Packed, say: Say) -> SentCode:
    folder = f"/{user}/.pai/code"
    file = f"{packed.name}.{packed.digest}.tree"
    size = sum(entry.size for entry in packed.entries)
    sent = 0
    if not (await files.stat(f"{folder}/{file}")).exists:
        there = await files.inside(f"{folder}/{code_tree.BLOBS}")
        missing = [blob for digest, blob in packed.blobs.items() if digest not in there]
        say(
            tr(
                "Uploading {number} of {total} files of {name}.",
                number=f"{len(missing):,}",
                total=f"{len(packed.entries):,}",
                name=packed.name,
            )
        )
        await upload(files, Found(tuple(missing), ()), f"{folder}/{code_tree.BLOBS}", lambda _: None)
        await upload(files, Found((packed.list,), ()), f"{folder}/{file}", lambda _: None)
        sent = len(missing)
    return SentCode(f"{DEFAULT_FS}{folder}/{file}", packed.name, len(packed.entries), size, sent)


def pack(root: Path | None, extra: Mapping[str, bytes], made: Path) -> Packed:
    """The tree of a directory with ``extra`` files, which go before the directory's; ``made`` is for files to upload.

    Raises ClientError for a link that leads outside, too much, and what cannot be read.
    """
    entries: dict[str, CodeEntry] = {}
    blobs: dict[str, LocalFile] = {}

    def add(path: str, source: Path, digest: str, status: os.stat_result) -> None:
        size = status.st_size
        entries[path] = CodeEntry(path, size, digest, bool(status.st_mode & stat.S_IXUSR))
        blobs[digest] = LocalFile(source, digest, size, status.st_mtime, digest)

    if root is not None:
        remembered = _Digests(root)
        for path in leaves(root):
            if path in extra:
                continue
            source = root / path
            if source.is_symlink():
                entries[path] = CodeEntry(path, target=_inside(root, path))
                continue
            try:
                status = source.stat()
                if stat.S_ISREG(status.st_mode):
                    add(path, source, remembered.of(path, source, status), status)
            except OSError as error:
                raise unreadable(source, error) from error
        remembered.write()
    for number, (path, data) in enumerate(extra.items()):
        source = made / f"{number}"
        source.write_bytes(data)
        add(path, source, hashlib.sha256(data).hexdigest(), source.stat())
    _check_bounds(root, entries.values())
    listed, digest = code_tree.written(entries.values())
    file = made / "tree"
    file.write_bytes(listed)
    found = LocalFile(file, "", len(listed), 0.0, hashlib.sha256(listed).hexdigest())
    return Packed(task_name(root), digest, found, blobs, tuple(entries.values()))


def _check_bounds(root: Path | None, entries: Iterable[CodeEntry]) -> None:
    count, size = 0, 0
    for entry in entries:
        count, size = count + 1, size + entry.size
    if count > code_tree.MOST_ENTRIES or size > code_tree.TREE_BYTES:
        raise wrong(
            Text(
                "{root} has {count} files with {size} bytes; "
                "{most_entries} files and {tree_bytes} bytes are sent at most.",
                root=root,
                count=f"{count:,}",
                size=f"{size:,}",
                most_entries=f"{code_tree.MOST_ENTRIES:,}",
                tree_bytes=f"{code_tree.TREE_BYTES:,}",
            ),
            Text("Name what jobs do not need in {ignore}, and upload data with `pai upload`.", ignore=IGNORE),
        )


def task_name(root: Path | None) -> str:
    """What the directory is called in a task; ``mnt`` is where team storages are."""
    name = _NOT_IN_NAME.sub("-", root.resolve().name).strip(".-")[:100] if root is not None else ""
    return name if name not in ("", "mnt") else "code"


def _inside(root: Path, path: str) -> str:
    """Where the link at ``path`` leads, from its own directory. Raises ClientError when that is outside."""
    top, target = os.path.realpath(root), os.path.realpath(root / path)
    if os.path.commonpath([top, target]) != top:
        raise wrong(
            Text("{link} is a symbolic link that leads outside of {root}.", link=root / path, root=root),
            Text("Put a copy of what it leads to in its place, or name it in {ignore}.", ignore=IGNORE),
        )
    return os.path.relpath(target, os.path.dirname(os.path.join(top, path)))


def leaves(root: Path) -> list[str]:
    """Paths of all files and links below ``root`` that git does not ignore and ``.paiignore`` does not name.

    Where no git repository is, only ``.paiignore`` counts. Raises ClientError.
    """
    if not root.is_dir():
        raise wrong(Text("{root} is not a directory.", root=root), Text("Name the directory with your code."))
    from pathspec import GitIgnoreSpec

    try:
        lines = (root / IGNORE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    except (OSError, UnicodeDecodeError) as error:
        raise wrong(
            Text("{path} cannot be read: {error}.", path=root / IGNORE, error=error),
            Text("It is a text like a .gitignore."),
        ) from error
    ignored = GitIgnoreSpec.from_lines(lines)
    found = _by_git(root) if _in_repository(root) else walked(root, ignored.match_file)
    return sorted({path for path in found if not ignored.match_file(path)})


def _in_repository(root: Path) -> bool:
    top = root.resolve()
    if not any((folder / ".git").exists() for folder in (top, *top.parents)):
        return False
    return (
        _git(root, "check-ignore", "--quiet", ".", fine=(0, 1)).returncode == 1
    )  # an ignored one has rules of its own


def _by_git(root: Path) -> Iterator[str]:
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in listed.split(b"\0"):
        path = os.fsdecode(name).rstrip("/")
        if not path:
            continue
        if (root / path).is_dir() and not (root / path).is_symlink():  # a repository in the repository
            yield from (f"{path}/{inner}" for inner in _by_git(root / path))
        elif os.path.lexists(root / path):
            yield path


def _git(root: Path, *words: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[bytes]:
    try:
        ran = subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=False)
    except OSError as error:
        raise wrong(
            Text("{root} is a git repository, and git does not run: {strerror}.", root=root, strerror=error.strerror),
            Text("Install git."),
        ) from error
    if ran.returncode not in fine:
        raise wrong(
            Text("git does not list {root}: {stderr}", root=root, stderr=os.fsdecode(ran.stderr).strip()),
            Text("Let git work there first."),
        )
    return ran


def walked(root: Path, ignored: Callable[[str], bool]) -> Iterator[str]:
    """Paths of all files and links below ``root``, but for ``.git`` and what is in directories that are ignored.

    Raises ClientError for what cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise unreadable(Path(error.filename), error)

    for folder, names, files in os.walk(root, onerror=refuse):
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        at = "" if below == "." else f"{below}/"
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        names[:] = [name for name in names if name not in (".git", *links) and not ignored(f"{at}{name}/")]
        yield from (f"{at}{name}" for name in (*files, *links))


class _Digests:
    """SHA-256 of files below a directory, kept between runs in the user's cache; a lost cache costs time only."""

    def __init__(self, root: Path) -> None:
        from platformdirs import user_cache_path

        place = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:32]
        self._file = user_cache_path("jupyter-pai", appauthor=False) / "code" / f"{place}.json"
        self._seen: dict[str, list[object]] = {}
        self._begun = time.time()
        try:
            known = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            known = None
        self._known: dict[str, list[object]] = known if isinstance(known, dict) else {}

    def of(self, path: str, source: Path, status: os.stat_result) -> str:
        """The digest of a file. Raises OSError."""
        mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        known = self._known.get(path)
        if isinstance(known, list) and known[:-1] == mark:
            digest = str(known[-1])
        else:
            with source.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        if max(status.st_mtime, status.st_ctime) < self._begun - SETTLED_S:
            self._seen[path] = [*mark, digest]
        return digest

    def write(self) -> None:
        """Keep what is known now."""
        if self._seen == self._known:
            return
        draft = self._file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):  # the next run reads all files again
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(self._seen))
            draft.replace(self._file)
