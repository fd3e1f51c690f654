"""Files of the backend to here: a piece at a time under another name, renamed when complete."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from jupyter_pai.errors import NotFound
from jupyter_pai.fs.backend_files import BackendFiles
from jupyter_pai.fs.places import below, wrong
from jupyter_pai.fs.upload import PART_BYTES, Progress
from pai_backend.model.text import Text


async def download(files: BackendFiles, path: str, target: Path, progress: Progress) -> int:
    """Copy a file or directory to ``target``; the number of files. Raises ClientError."""
    there = await files.stat(path)
    if not there.exists:
        raise NotFound(
            Text("{path} does not exist.", path=path), code="NoFileError", hint="`pai fs ls` lists the files."
        )
    try:
        if not there.directory:
            await _file(files, path, target, progress)
            return 1
        return await _directory(files, path, target, progress)
    except OSError as error:
        raise wrong(
            Text(
                "{filename} cannot be written: {strerror}.", filename=error.filename or target, strerror=error.strerror
            ),
            Text("Choose another place."),
        ) from error


async def _directory(files: BackendFiles, path: str, target: Path, progress: Progress) -> int:
    await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
    count = 0
    for entry in await files.listing(path):
        name = entry["name"]
        if name in ("", ".", "..") or "/" in name or os.sep in name:  # a backend is believed only so far
            raise wrong(
                Text("{name} cannot be the name of a file here.", name=f"{name!r}"), Text("Rename it at the storage.")
            )
        if entry["kind"] == "directory":
            count += await _directory(files, below(path, name), target / name, progress)
        else:
            await _file(files, below(path, name), target / name, progress)
            count += 1
    return count


async def _file(files: BackendFiles, path: str, target: Path, progress: Progress) -> None:
    draft = target.with_name(f".{target.name}.part")
    try:
        with await asyncio.to_thread(draft.open, "wb") as file:
            offset, version = 0, None
            while True:
                piece = await files.read(path, offset, PART_BYTES)
                if version not in (None, piece.version):
                    raise wrong(Text("{path} was changed while it was copied.", path=path), Text("Copy it again."))
                version, offset = piece.version, offset + len(piece.data)
                await asyncio.to_thread(file.write, piece.data)
                progress(len(piece.data))
                if offset >= piece.size or not piece.data:
                    break
        await asyncio.to_thread(os.replace, draft, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
