"""The Helm chart as an archive, as ``helm package`` makes it, with the same bytes each time."""

from __future__ import annotations

import gzip
import io
import tarfile
from fnmatch import fnmatch
from pathlib import Path


def package_chart(chart: Path, version: str, epoch: int, out: Path) -> Path:
    """Write ``<name>-<version>.tgz`` of a chart's directory, without what ``.helmignore`` names; returns its path."""
    ignored = [line for line in (chart / ".helmignore").read_text().splitlines() if line and not line.startswith("#")]
    files = [path for path in sorted(chart.rglob("*")) if path.is_file()]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            if any(fnmatch(path.name, pattern) for pattern in [*ignored, ".helmignore"]):
                continue
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"{chart.name}/{path.relative_to(chart).as_posix()}")
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    target = out / f"{chart.name}-{version}.tgz"
    with target.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as compressed:
        compressed.write(packed.getvalue())
    return target
