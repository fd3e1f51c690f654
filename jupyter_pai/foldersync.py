"""A folder here and one in a task, kept in step over SSH: by rsync where both have it, else by sftp.

Each side is compared with what both were when they were last the same. What changed on one side goes to the other. What
changed on both, and differs, is a conflict: it is told, and stays as it is until one of the two is renamed or removed.
The last common state is kept in the user's cache. Without it nothing is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from jupyter_pai.errors import BackendAway, ClientError
from jupyter_pai.fs.code import IGNORE, walked
from jupyter_pai.fs.places import wrong
from pai_backend.model.text import Text

Mark = tuple[int, int]
"""Size, and time of the last change in seconds: what rsync and sftp carry over."""
Listing = Mapping[str, Mark]

MOST_FILES = 50_000
SUSPICIOUS = 10
"""So many files that are all gone from a side at once are rather a folder that is not there."""


@dataclass
class SyncPlan:
    """What is to be done, by path."""

    push: list[str] = field(default_factory=list)
    pull: list[str] = field(default_factory=list)
    remove_there: list[str] = field(default_factory=list)
    remove_here: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.push or self.pull or self.remove_there or self.remove_here)


def planned(here: Listing, there: Listing, last: Listing, *, both: bool) -> SyncPlan:
    """What brings both sides in step; without ``both`` nothing here is changed. Pure.

    Raises ClientError when a side has lost all that it had.
    """
    for name, listing in ((Text("here"), here), (Text("in the task"), there)):
        if not listing and len(last) >= SUSPICIOUS:
            raise wrong(
                Text(
                    "All {count} files are gone {name}; none is removed on the other side.",
                    count=f"{len(last):,}",
                    name=name,
                ),
                Text("If that is meant, remove them there, too. Else bring the folder back."),
            )
    plan = SyncPlan()
    for path in sorted(here.keys() | there.keys() | last.keys()):
        mine, theirs, known = here.get(path), there.get(path), last.get(path)
        if mine == theirs:
            continue
        if theirs == known:
            (plan.push if mine else plan.remove_there).append(path)
        elif mine == known:
            if both:
                (plan.pull if theirs else plan.remove_here).append(path)
        elif mine and theirs:
            plan.conflicts.append(path)
        elif mine:
            plan.push.append(path)  # removed there and changed here: what was changed stays
        elif both:
            plan.pull.append(path)
    return plan


class LocalFolder:
    """The folder here; it leaves out what ``.gitignore`` and ``.paiignore`` in it name, on both sides."""

    def __init__(self, root: Path) -> None:
        from pathspec import GitIgnoreSpec

        if not root.is_dir():
            raise wrong(Text("{root} is not a directory.", root=root), Text("Name the folder to keep in step."))
        self.root = root
        lines = [line for name in (".gitignore", IGNORE) for line in _lines(root / name)]
        self.ignored: Callable[[str], bool] = GitIgnoreSpec.from_lines(lines).match_file

    def listing(self) -> dict[str, Mark]:
        """All files, without links. Raises ClientError."""
        found = {}
        for path in walked(self.root, self.ignored):
            try:
                status = (self.root / path).lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode) and self.carries(path):
                found[path] = (status.st_size, int(status.st_mtime))
        return found

    def carries(self, path: str) -> bool:
        """Whether a path is one to keep in step."""
        parts = path.split("/")
        is_plain = path.isprintable() and "\\" not in path and '"' not in path
        is_own = not {".git", "", ".", ".."}.intersection(part.casefold() for part in parts)
        return is_plain and is_own and not self.ignored(path)

    def admits(self, path: str) -> bool:
        """Whether a file from the task may be put there: links here are followed nowhere and replaced by nothing."""
        place = PurePosixPath(path)
        return not any((self.root / each).is_symlink() for each in (place, *place.parents[:-1]))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return []


class TaskFolder:
    """The folder in the task. ``login`` is OpenSSH's command up to the name of the host."""

    def __init__(self, login: Sequence[str], path: PurePosixPath) -> None:
        self._login = list(login)
        self.path = path
        self._rsync = False

    def _run(self, script: str, data: bytes = b"") -> bytes:
        """Output of a script of the shell there. Raises ClientError."""
        ran = subprocess.run([*self._login, script], input=data, capture_output=True, check=False)
        if ran.returncode == 255:
            raise BackendAway(
                Text("The login has ended: {stderr}", stderr=_last(ran.stderr)), hint="`pai doctor` finds out why."
            )
        if ran.returncode:
            raise ClientError(Text("The task refuses: {stderr}", stderr=_last(ran.stderr)), code="UnknownError")
        return ran.stdout

    def open(self) -> bool:
        """Make the folder; whether rsync carries files, or sftp does where one side has none."""
        said = self._run(f"mkdir -p {_word(self.path)} && {{ command -v rsync || :; }}")
        self._rsync = bool(said.strip()) and shutil.which("rsync") is not None
        return self._rsync

    def listing(self, carries: Callable[[str], bool]) -> dict[str, Mark]:
        """All files that ``carries`` takes. Raises ClientError."""
        script = f"cd {_word(self.path)} && find . -name .git -prune -o -type f -printf '%s %T@ %P\\0'"
        found = {}
        for line in self._run(script).split(b"\0")[:-1]:
            size, changed, path = os.fsdecode(line).split(" ", 2)
            if carries(path):
                found[path] = (int(size), int(float(changed)))
        if len(found) > MOST_FILES:
            raise wrong(
                Text("{path} has more than {most_files} files.", path=self.path, most_files=f"{MOST_FILES:,}"),
                Text("Name what is not needed in {ignore}.", ignore=IGNORE),
            )
        return found

    def digests(self, paths: Sequence[str]) -> dict[str, str]:
        """SHA-256 of files, by path."""
        said = self._run(f"cd {_word(self.path)} && xargs -0 sha256sum --", _nul(paths)) if paths else b""
        rows = [os.fsdecode(line).split("  ", 1) for line in said.splitlines()]
        return {path: digest for digest, path in rows}

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        if paths:
            self._run(f"cd {_word(self.path)} && xargs -0 rm -f --", _nul(paths))

    def carry(self, root: Path, paths: Sequence[str], *, there: bool) -> None:
        """Copy files to the task, or from it, with their times. Raises ClientError."""
        if not paths:
            return
        (self._by_rsync if self._rsync else self._by_sftp)(root, paths, there=there)

    def _by_rsync(self, root: Path, paths: Sequence[str], *, there: bool) -> None:
        host = self._login[-1]
        sides = [f"{root}/", f"{host}:{self.path}/"]
        shell = shlex.join(self._login[:-1])
        command = ["rsync", "--archive", "--no-owner", "--no-group", "--compress", "--from0", "--files-from=-"]
        ran = subprocess.run(
            [*command, "--rsh", shell, "--", *(sides if there else reversed(sides))],
            input=_nul(paths),
            capture_output=True,
            check=False,
        )
        if ran.returncode not in (0, 24):  # 24: a file went away meanwhile, and is looked at again
            raise BackendAway(
                Text("rsync has failed: {stderr}", stderr=_last(ran.stderr)),
                hint="Run it again: it goes on where it was.",
            )

    def _by_sftp(self, root: Path, paths: Sequence[str], *, there: bool) -> None:
        folders = sorted({str(folder) for path in paths for folder in PurePosixPath(path).parents} - {"."})
        lines = [f'-mkdir "{self.path}/{folder}"' for folder in folders] if there else []
        for path in paths:
            part = str(PurePosixPath(path).with_name(f".{PurePosixPath(path).name}.pai-part"))
            if there:
                lines += [f'put -p "{root}/{path}" "{self.path}/{part}"']
                lines += [f'rename "{self.path}/{part}" "{self.path}/{path}"']
            else:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                lines += [f'get -p "{self.path}/{path}" "{root}/{part}"']
        with tempfile.NamedTemporaryFile("w", suffix=".sftp") as batch:
            batch.write("\n".join(lines) + "\n")
            batch.flush()
            command = ["sftp", "-q", *self._login[1:-1], "-b", batch.name, self._login[-1]]
            ran = subprocess.run(command, capture_output=True, check=False)
        if ran.returncode:
            raise BackendAway(
                Text("sftp has failed: {stderr}", stderr=_last(ran.stderr)),
                hint="Run it again: it goes on where it was.",
            )
        if not there:
            for path in paths:
                (root / path).with_name(f".{Path(path).name}.pai-part").replace(root / path)


def _last(said: bytes) -> str:
    return (os.fsdecode(said).strip().splitlines() or [Text("no reason is given")])[-1]


def _nul(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _word(path: PurePosixPath) -> str:
    return shlex.quote(str(path))


class Pair:
    """Both folders, and what they had in common last; ``place`` names the task's folder for ever."""

    def __init__(self, folder: LocalFolder, task: TaskFolder, place: str, *, both: bool) -> None:
        from platformdirs import user_cache_path

        name = hashlib.sha256(f"{folder.root.resolve()}\0{place}\0{task.path}".encode()).hexdigest()[:32]
        self._file = user_cache_path("jupyter-pai", appauthor=False) / "sync" / f"{name}.json"
        self._folder, self._task, self._both = folder, task, both
        try:
            kept = json.loads(self._file.read_bytes())
            self._last: dict[str, Mark] = {path: (size, changed) for path, (size, changed) in kept.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._last = {}

    def step(self) -> SyncPlan:
        """Bring both in step once; what was done, and what cannot be. Raises ClientError."""
        here, there = self._folder.listing(), self._task.listing(self._folder.carries)
        plan = planned(here, there, self._last, both=self._both)
        equal = self._equal([path for path in plan.conflicts if here[path][0] == there[path][0]])
        plan.conflicts = [path for path in plan.conflicts if path not in equal]
        root = self._folder.root
        # What changes while it is carried is seen by the next step: only what is the same afterwards is kept as common.
        self._task.carry(root, [*plan.push, *equal], there=True)
        self._task.remove(plan.remove_there)
        now = self._folder.listing() if plan.pull else {}
        pulled = [path for path in plan.pull if now.get(path) == here.get(path) and self._folder.admits(path)]
        self._task.carry(root, pulled, there=False)
        for path in plan.remove_here:
            (root / path).unlink(missing_ok=True)
        if not plan.is_empty or equal or not self._last:
            here, there = self._folder.listing(), self._task.listing(self._folder.carries)
        same = {path: mark for path, mark in here.items() if there.get(path) == mark}
        self._keep(same | {path: mark for path, mark in self._last.items() if path in plan.conflicts})
        return plan

    def _equal(self, paths: list[str]) -> list[str]:
        """Those of equal content, which only have other times."""
        theirs = self._task.digests(paths)
        return [path for path in paths if theirs.get(path) == _digest(self._folder.root / path)]

    def _keep(self, last: dict[str, Mark]) -> None:
        if last == self._last and self._file.exists():
            return
        self._last = last
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_suffix(".part")
        draft.write_text(json.dumps(last))
        draft.replace(self._file)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
