"""The runtime bundle on this machine: copied once out of its image, for the containers of all tasks. Blocks."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.bundle import layout
from pai_backend.engine.containers.podman import limit_words
from pai_backend.engine.containers.programs import Podman, own_limits

FOLDER: Final = "runtime"
_SUMS: Final = "SHA256SUMS"  # what the installer writes last
PULL_S: Final = 1800.0


class Runtime:
    """Where it is, below the root."""

    def __init__(self, root: Path, podman: Podman, image: str) -> None:
        self._folder = root / FOLDER
        self._podman = podman
        self._image = image
        self._lock = threading.Lock()
        self._found: Path | None = None

    def directory(self) -> Path:
        """Its directory, filled. Raises EngineError."""
        with self._lock:
            if self._found is None or not (self._found / _SUMS).exists():
                self._found = self._installed()
            return self._found

    def _installed(self) -> Path:
        if self._podman.ask(["image", "exists", self._image]) is None:
            self._podman.do(["pull", self._image], PULL_S)
        identity = self._podman.do(["image", "inspect", "--format={{.Id}}", self._image]).strip()
        place, state = self._folder / identity[:20], self._folder / f"{identity[:20]}.state"
        if not (place / _SUMS).exists():
            for each in (place, state):
                each.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._podman.do(
                [
                    *("run", "--rm", "--network=none", "--pull=never", "--log-driver=none"),
                    *limit_words(*own_limits()),
                    *(f"--volume={place}:{layout.RUNTIME}", f"--volume={state}:{layout.STATE}"),
                    *(f'--entrypoint=["{layout.INSTALLER}"]', self._image, layout.RUNTIME, layout.STATE),
                ]
            )
            if not (place / _SUMS).exists():
                raise EngineError(f"containers.runtime_image: {self._image} does not hold the runtime bundle")
        return place
