"""A Podman of tests' own: its storage and its networks are nobody else's, and go with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.runtime.bundle.__main__ import ARCHIVE, built
from tests.kubernetes.cluster import images, programs

BUILD = Path(__file__).resolve().parents[2] / "build" / "kubernetes-runtime"
NAME = "localhost/jupyter-pai/runtime"
LIMIT_S = 300.0
CONTAINERS = "containers"
"""The group of all tests that use it: two Podmans that do not know of each other take the same addresses."""
NEEDED = ("podman", "runc", "iptables", "go", "gcc", "patchelf")


class PodmanFailed(Exception):
    """What Podman said."""


@dataclass(frozen=True)
class PodmanSite:
    """``environment`` is what programs are called with, so that they use it; images are in it already."""

    place: Path
    environment: Mapping[str, str]
    runtime_image: str
    image: str = images.PYTHON

    def podman(self, *words: str) -> str:
        """What Podman prints. Raises PodmanFailed."""
        done = subprocess.run(
            ["podman", *words], env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=LIMIT_S
        )
        if done.returncode != 0:
            raise PodmanFailed(f"podman {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def load_scm_images(self, archive: Path, references: Sequence[str]) -> None:
        """Load an image that documents of SCM know under several names."""
        self.podman("load", "--quiet", "--input", str(archive))
        for other in references[1:]:
            self.podman("tag", references[0], other)


def lacking() -> list[str]:
    """What containers of tests need and this machine has not."""
    lacks = [] if sys.platform == "linux" and os.geteuid() == 0 else ["root on Linux"]
    return lacks + [program for program in NEEDED if shutil.which(program) is None]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanSite]:
    """A site for all tests of a worker; they are skipped with the reason where there can be none, and fail in CI."""
    if lacks := lacking():
        words = f"no containers here without {', '.join(lacks)}"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)
    with podman_site(tmp_path_factory.mktemp("podman") / "site") as made:
        yield made


@contextmanager
def podman_site(place: Path) -> Iterator[PodmanSite]:
    """The site, with the images of tests and that of the runtime bundle; all containers are removed at the end."""
    place.mkdir(parents=True)
    configuration, storage = place / "containers.conf", place / "storage.conf"
    # runc: Debian 12's crun refuses machines with both kinds of control groups.
    engine = {"runtime": "runc", "cgroup_manager": "cgroupfs", "events_logger": "file"}
    network = {"network_config_dir": str(place / "networks")}
    configuration.write_text(_toml({"engine": engine, "network": network}))
    folders = {"driver": "overlay", "graphroot": str(place / "store"), "runroot": str(place / "run")}
    storage.write_text(_toml({"storage": folders}))
    environment = {
        "CONTAINERS_CONF": str(configuration),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "PODMAN_IGNORE_CGROUPSV1_WARNING": "1",
    }
    site = PodmanSite(place, environment, built(BUILD, NAME)["reference"])
    try:
        for archive in (BUILD / ARCHIVE, *images.ensure(programs.images())):
            site.podman("load", "--quiet", "--input", str(archive))
        yield site
    finally:
        site.podman("rm", "--all", "--force", "--time=0")
        site.podman("network", "prune", "--force")
        site.podman("unmount", "--all", "--force")
        subprocess.run(["umount", str(place / "store" / "overlay")], capture_output=True, timeout=LIMIT_S)


def _toml(tables: Mapping[str, Mapping[str, str]]) -> str:
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )
