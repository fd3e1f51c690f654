"""The tasks below one root, as the local engine keeps them, where each runs in a container."""

from __future__ import annotations

import gzip
import math
import threading
import time
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError, TaskPlan
from pai_backend.engine.bundle import layout as task_layout
from pai_backend.engine.containers.image_records import ImageRecords
from pai_backend.engine.containers.image_store import ContainerImages
from pai_backend.engine.containers.networks import JobNetworks
from pai_backend.engine.containers.podman import (
    LABEL,
    container_name,
    has_peers,
    is_here_words,
    limit_words,
    remove_words,
)
from pai_backend.engine.containers.programs import Podman, own_limits
from pai_backend.engine.containers.task_directory import bounds_of, build_contained_task, hosts_text, write_job
from pai_backend.engine.local import layout
from pai_backend.engine.local.ledger import TaskDirectories
from pai_backend.engine.local.shim import container_folder as folder
from pai_backend.model.container_settings import ContainerSettings
from pai_backend.model.ids import TaskUid, job_of

SEEN_S = 30.0
"""So long an image that was here is taken to be here: to ask costs a fifth of a start. Removals of ours are seen."""


class ContainerDirectories(TaskDirectories):
    """As :class:`TaskDirectories`; methods block on Podman as well."""

    def __init__(
        self, root: Path, log_bytes: int, settings: ContainerSettings, *, most_processes: int = 0, held: bool = True
    ) -> None:
        """``held``: whether tasks are held to their memory, CPUs and processes."""
        super().__init__(root, log_bytes)
        self._container_settings = settings
        self._held = held
        self._most = most_processes
        self.podman = Podman(settings.podman)
        self._networks = JobNetworks(root, self.podman, settings.addresses)
        self._seen: dict[str, float] = {}
        """When an image was seen here, on the monotonic clock."""
        self._telling = threading.Lock()
        """Held while the job info and hosts of tasks are read and written again."""
        self._runtime = Runtime(root, self.podman, settings.runtime_image or "")
        self._image_records = ImageRecords(root)
        self._removals = 0
        """As the records had it when ``_seen`` was filled."""
        self.images = ContainerImages(self.podman, self._image_records, settings.runtime_image or "", self._used_images)

    def build(self, plan: TaskPlan) -> None:
        """Make the task's directory, and the network of its job. Raises EngineError, OSError, ValueError."""
        settings = self._container_settings.model_copy(update={"podman": self.podman.path})
        runtime = self._runtime.directory()
        bounds = bounds_of(plan, self._most, held=self._held)
        with self.images.starting(plan.image):
            look = settings.pull == "missing" and not self._was_seen(plan.image)
            is_here = self.podman.begin(is_here_words(plan)) if look else None  # while the network is made
            with self._networks.placing(plan) as (address, known):
                hosts = hosts_text(known, plan.job_placed)
                pulls = settings.pull == "always" or (is_here is not None and not is_here())
                if is_here is not None and not pulls:
                    self._seen[plan.image] = time.monotonic()
                self.images.note_start(plan.image, plan.user, pulls=pulls, is_here=settings.pull == "always")
                build_contained_task(
                    self.live(plan.uid), plan, self._log_bytes, settings, runtime, address, hosts, bounds, pulls=pulls
                )
        if has_peers(plan):
            self._tell_peers(plan)

    def _was_seen(self, image: str) -> bool:
        """Whether it was here a moment ago, and no image was removed since. Within :meth:`ContainerImages.starting`."""
        if (removals := self._image_records.removals()) != self._removals:
            self._seen.clear()
            self._removals = removals
        return self._seen.get(image, -math.inf) >= time.monotonic() - SEEN_S

    def _used_images(self) -> list[str]:
        """The image of each live task that has one, also of one that has ended and is not put away."""
        lines = (folder.words(str(self.live(uid) / layout.CONTAINER / folder.RUN)) for uid in self.uids())
        return [line[-1] for line in lines if line]

    def _tell_peers(self, plan: TaskPlan) -> None:
        """Write the addresses of a job's tasks for all that are live: others may be starting, too."""
        job = job_of(plan.uid)
        with self._telling:
            hosts = hosts_text(self._networks.hosts(job, plan.job_attempt), plan.job_placed)
            for uid in self.uids():
                if job_of(uid) == job and not (self.live(uid) / layout.EXIT).exists():
                    self._write_job(self.live(uid), None, hosts)

    def refresh(self, uid: TaskUid, job_info: str) -> None:
        """Replace the job info of a task that is not over. Raises EngineError."""
        directory = self.live(uid)
        if self.find(uid) == directory and not (directory / layout.EXIT).exists():
            with self._telling:
                self._write_job(directory, job_info, None)

    @staticmethod
    def _write_job(directory: Path, job_info: str | None, hosts: str | None) -> None:
        """Replace one of the two, or both."""
        job = directory / layout.CONTAINER / folder.JOB
        try:
            info = gzip.decompress((job / task_layout.JOB_INFO).read_bytes()).decode() if job_info is None else job_info
            write_job(job, info, (job / task_layout.HOSTS).read_text() if hosts is None else hosts)
        except (FileNotFoundError, NotADirectoryError):  # it has ended, and is forgotten
            return
        except OSError as error:
            raise EngineError(f"the job info of task {directory.name} could not be written: {error}") from error

    def _kill(self, uid: TaskUid) -> bool:
        """End what is left of a task, its container with it."""
        ended = super()._kill(uid)
        return self._remove(uid) and ended

    def _remove(self, uid: TaskUid) -> bool:
        """Remove the container of a live task, whatever it does; False when Podman refused."""
        container = self.live(uid) / layout.CONTAINER / folder.ID
        return self.podman.ask(remove_words(str(container))) is not None

    def forget(self, uid: TaskUid) -> None:
        """Put the task away, without its container. Raises EngineError when it has not ended."""
        line = folder.words(str(self.live(uid) / layout.CONTAINER / folder.RUN))
        if self.find(uid) == self.live(uid) and (self.live(uid) / layout.EXIT).exists():
            self._remove(uid)
        super().forget(uid)
        if line:
            self.images.note_end(line[-1])
        self._networks.clear(self.uids)

    def clear_abandoned(self) -> None:
        """Also remove containers of tasks that are not known, and networks without a task."""
        super().clear_abandoned()
        root, live = str(self.root), self.uids()
        listed = self.podman.ask(["ps", "--all", f"--filter=label={LABEL}={root}", "--format={{.Names}}"])
        for name in {*(listed or "").split()} - {container_name(root, uid) for uid in live}:
            self.podman.ask(["rm", "--force", "--ignore", "--time=0", name])
        self._networks.clear(self.uids)


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
                    *(f"--volume={place}:{task_layout.RUNTIME}", f"--volume={state}:{task_layout.STATE}"),
                    *(f'--entrypoint=["{task_layout.INSTALLER}"]', self._image, task_layout.RUNTIME, task_layout.STATE),
                ]
            )
            if not (place / _SUMS).exists():
                raise EngineError(f"containers.runtime_image: {self._image} does not hold the runtime bundle")
        return place
