"""Images for pods of tests, made without Docker and without a registry, kept as archives beside the programs.

``busybox`` has a shell and nothing else, ``python`` is a Debian with Python and bash, ``pause`` holds pods open.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAUSE = "localhost/jupyter-pai/pause:1"
BUSYBOX = "localhost/jupyter-pai/busybox:1"
PYTHON = "localhost/jupyter-pai/python:1"
_HERE = Path(__file__).parent
DRAFT = ".draft-"
_LIMIT_S = 600
_LINKS = ("bin", "sbin", "usr/bin", "usr/sbin")


class ImageFailed(Exception):
    """An image could not be made; the text says which program said what."""


@dataclass(frozen=True)
class Recipe:
    """How an image comes to be. Who changes what ``fill`` does raises the number: archives are then made anew."""

    reference: str
    number: int
    command: tuple[str, ...]
    fill: Callable[[Path], None]


def ensure(place: Path) -> list[Path]:
    """Archives of all images, in a directory; one process at a time makes what is missing. Raises ImageFailed."""
    place.mkdir(parents=True, exist_ok=True)
    with sole(place):
        return [_archive(place, recipe) for recipe in _recipes()]


@dataclass(frozen=True)
class Layer:
    """The files of an image, or those that it adds to the layers below: a compressed archive, and its digest."""

    file: Path
    digest: str  # of the archive before it was compressed


def layer_of(root: Path, file: Path) -> Layer:
    """Write a directory as a layer."""
    run_tool("tar", "--numeric-owner", "--sort=name", "--directory", str(root), "--create", "--file", str(file), ".")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    # containerd sees by itself that a layer is compressed; so compressed it is imported in half of the time.
    run_tool("zstd", "-q", "-3", "--rm", str(file), "-o", f"{file}.zst")
    os.rename(f"{file}.zst", file)
    return Layer(file, f"sha256:{digest}")


def layers_in(archive: Path, place: Path) -> list[Layer]:
    """Unpack the layers of an archive that was written here into a directory."""
    run_tool("tar", "--directory", str(place), "--extract", "--file", str(archive))
    (about,) = json.loads((place / "manifest.json").read_text())
    digests = json.loads((place / about["Config"]).read_text())["rootfs"]["diff_ids"]
    return [Layer(place / name, digest) for name, digest in zip(about["Layers"], digests, strict=True)]


def assemble(layers: Sequence[Layer], reference: str, config: Mapping[str, Any], archive: Path) -> None:
    """Write layers as an image, in the archive format that ``docker save`` writes; ``config`` says how it is run."""
    with tempfile.TemporaryDirectory(prefix=DRAFT, dir=archive.parent) as draft:
        names = [f"layer-{number}.tar" for number in range(len(layers))]
        for layer, name in zip(layers, names, strict=True):
            os.link(layer.file, Path(draft) / name)
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        whole = {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {**config, "Env": [path, *config.get("Env", ())]},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
        manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": names}]
        (Path(draft) / "config.json").write_text(json.dumps(whole))
        (Path(draft) / "manifest.json").write_text(json.dumps(manifest))
        packed = Path(draft) / "packed"
        files = ("config.json", "manifest.json", *names)
        run_tool("tar", "--directory", draft, "--create", "--file", str(packed), *files)
        os.replace(packed, archive)


def pack(root: Path, reference: str, command: tuple[str, ...], archive: Path) -> None:
    """Write a directory as an image of one layer."""
    with tempfile.TemporaryDirectory(prefix=DRAFT, dir=archive.parent) as draft:
        layer = layer_of(root, Path(draft) / "layer.tar")
        assemble([layer], reference, {"Cmd": list(command)}, archive)


def _recipes() -> list[Recipe]:
    return [
        Recipe(PAUSE, 1, ("/pause",), _pause),
        Recipe(BUSYBOX, 1, ("sh",), _busybox),
        Recipe(PYTHON, 1, ("python3",), _debian),
    ]


def _archive(place: Path, recipe: Recipe) -> Path:
    name = recipe.reference.rsplit("/", 1)[1].replace(":", "-")
    archive = place / f"{name}.{recipe.number}.tar"
    if not archive.exists():
        with tempfile.TemporaryDirectory(prefix=DRAFT, dir=place) as root:
            recipe.fill(Path(root))
            Path(root).chmod(0o755)
            pack(Path(root), recipe.reference, recipe.command, archive)
    return archive


def _pause(root: Path) -> None:
    run_tool("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(root / "pause"), str(_HERE / "pause.go"))


def _busybox(root: Path) -> None:
    applets = run_tool("busybox", "--list-full").split()
    for folder in (*_LINKS, "tmp", "etc", "root", "home", "var"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(str(shutil.which("busybox")), root / "bin/busybox")
    for applet in applets:
        link = root / applet
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("/bin/busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnobody:x:65534:\n")


def _debian(root: Path) -> None:
    release = platform.freedesktop_os_release()
    here = release.get("ID") in ("debian", "ubuntu")
    suite = release["VERSION_CODENAME"] if here else "bookworm"
    options = ["--variant=minbase", "--include=python3,bash,ca-certificates"]
    run_tool("debootstrap", *options, suite, str(root), *_mirror(suite))
    for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / waste, ignore_errors=True)


def _mirror(suite: str) -> list[str]:
    """Where this machine itself takes the suite from; nothing, for debootstrap's own choice, when it has another."""
    if shutil.which("apt-get") is None:
        return []
    rows = run_tool("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)").splitlines()
    found = [row.split()[1] for row in rows if row.split()[:1] == [suite]]
    return found[:1]


def run_tool(*command: str, variables: Mapping[str, str] | None = None) -> str:
    """What a program prints. Raises ImageFailed when it is missing or fails."""
    if shutil.which(command[0]) is None:
        raise ImageFailed(f"{command[0]} is not installed; `tools/system-packages kubernetes` installs it")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GO111MODULE": "off", **(variables or {})}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-2000:]
        raise ImageFailed(f"`{shlex.join(command)}` ended with {done.returncode}: {said}")
    return done.stdout


@contextlib.contextmanager
def sole(place: Path) -> Iterator[None]:
    """One process at a time; what a killed one left behind is removed."""
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in place.glob(f"{DRAFT}*"):
            shutil.rmtree(stale)
        yield
