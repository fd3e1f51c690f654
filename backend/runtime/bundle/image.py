"""A directory as a container image, without any container tool: one layer, and the same bytes for the same directory.

Two forms: a directory in the OCI image layout, for tools that push to registries, and an archive that ``docker load``,
``podman load`` and ``ctr images import`` take: the same layout with the file beside it that ``docker save`` writes.
Source: OCI image specification 1.1, image-layout.md, config.md, manifest.md; the layout of ``docker save``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

EPOCH: Final = "1970-01-01T00:00:00Z"
LEVEL: Final = 6  # of gzip
_CPUS: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_OCI: Final = "application/vnd.oci.image"

Json = dict[str, Any]


@dataclass(frozen=True)
class Image:
    """What makes an image besides its files."""

    reference: str
    prefix: str  # where in the image the directory is
    entrypoint: Sequence[str]
    labels: Mapping[str, str]


class Layout:
    """A directory in the OCI image layout."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "blobs/sha256").mkdir(parents=True)

    def blob(self, content: bytes, kind: str) -> Json:
        """Keep some bytes; their descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        (self.place / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def write(self, name: str, content: object) -> None:
        """Keep a file of the layout itself."""
        (self.place / name).write_bytes(encoded(content))


def write(root: Path, image: Image, layout: Path, archive: Path) -> str:
    """Write a directory as an image, as layout and archive; the digest of its manifest.

    ``layout`` must not be there yet.
    """
    made = Layout(layout)
    tar = layer(root, image.prefix)
    compressed = made.blob(gzip.compress(tar, LEVEL, mtime=0), "layer.v1.tar+gzip")
    config = made.blob(encoded(_config(image, hashlib.sha256(tar).hexdigest())), "config.v1+json")
    manifest: Json = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": config,
        "layers": [compressed],
        "annotations": dict(image.labels),
    }
    described = made.blob(encoded(manifest), "manifest.v1+json")
    named = {"io.containerd.image.name": image.reference, "org.opencontainers.image.ref.name": _tag(image.reference)}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [{**described, "annotations": named}],
    }
    made.write("oci-layout", {"imageLayoutVersion": "1.0.0"})
    made.write("index.json", index)
    saved = {"Config": _path(config), "RepoTags": [image.reference], "Layers": [_path(compressed)]}
    made.write("manifest.json", [saved])
    archive.write_bytes(layer(layout, ""))
    return str(described["digest"])


def layer(root: Path, prefix: str) -> bytes:
    """A directory as a tar archive that has nothing of this machine in it: no times, no owners, one order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        if prefix:
            tar.addfile(_directory(prefix))
        for path in sorted(root.rglob("*")):
            name = str(Path(prefix, path.relative_to(root)))
            if path.is_dir():
                tar.addfile(_directory(name))
                continue
            entry = tarfile.TarInfo(name)
            if path.is_symlink():
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
                tar.addfile(entry)
                continue
            entry.size, entry.mode = path.stat().st_size, path.stat().st_mode & 0o777
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return buffer.getvalue()


def encoded(content: object) -> bytes:
    """JSON, the same for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _config(image: Image, diff_id: str) -> Json:
    return {
        "created": EPOCH,
        "architecture": _CPUS.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": list(image.entrypoint), "Labels": dict(image.labels)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created": EPOCH, "created_by": "python -m backend.runtime.bundle"}],
    }


def _directory(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def _tag(reference: str) -> str:
    return reference.rpartition(":")[2]


def _path(described: Json) -> str:
    return "blobs/sha256/" + str(described["digest"]).removeprefix("sha256:")
