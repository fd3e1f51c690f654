"""What a job would lose where its tasks do not reach the default file system, such as pods a directory of the backend.

It goes unnoticed that a directory at the same path of a container is another one, until the results are gone with it.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from pai_backend.model.spec import JobSpec

_NAMES = re.compile(r"\b(?:PAI|QIZHI)_(?:OUTPUT_DIR|DEFAULT_FS_URI)\b")
_SAID_ONLY = {"auth_file": "", "description": "", "name": "", "submit_from": ""}  # the authFile is read by the backend
_FIELDS = {"codeDir": "code_dir", "dataDir": "data_dir", "outputDir": "output_dir"}


@dataclass(frozen=True)
class TaskReach:
    """Which places tasks reach: every URI that is of no single machine, and of paths those below ``directories``.

    ``directories`` None: all paths of this machine, since tasks run on it.
    """

    default_fs_uri: str = ""
    directories: tuple[str, ...] | None = None

    @property
    def task_fs_uri(self) -> str:
        """The default file system as tasks are told; empty where they do not reach it."""
        return self.default_fs_uri if self.reaches(self.default_fs_uri) else ""

    def reaches(self, place: str) -> bool:
        """Whether what a task writes to this path or URI is there when the task is not."""
        path = "/" + place.removeprefix("file:").lstrip("/") if place.startswith(("/", "file:")) else None
        if path is None or self.directories is None:
            return True
        return any(PurePosixPath(posixpath.normpath(path)).is_relative_to(each) for each in self.directories)

    def lost(self, spec: JobSpec) -> tuple[str, str] | None:
        """What of a document would be lost: the field, empty where it is none of the directories', and its words.

        It is whatever names the default file system or a place in it, when tasks do not reach that, and an outputDir
        that is gone with its task.
        """
        if not self.reaches(self.default_fs_uri):
            for field, attribute in _FIELDS.items():
                found = _NAMES.search(getattr(spec, attribute))
                if found is not None:
                    return field, f"${found[0]}"
            found = _NAMES.search(spec.model_copy(update=_SAID_ONLY).model_dump_json())
            if found is not None:
                return "", f"${found[0]}"
        elif _NAMES.search(spec.output_dir):
            return None
        return None if self.reaches(spec.output_dir) else ("outputDir", spec.output_dir)
