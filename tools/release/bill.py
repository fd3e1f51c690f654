"""The bill of materials in CycloneDX: the wheel, and every package that its image installs with it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from email import message_from_bytes
from importlib.metadata import Distribution, PackageMetadata, distribution
from pathlib import Path
from uuid import UUID, uuid5
from zipfile import ZipFile

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("backend", "kubernetes", "postgres", "hdfs")
"""What deploy/image/Containerfile installs."""
OURS = "jupyter-pai"
IN_OUR_NAME = UUID("6f5a0b6e-0c58-5a43-9d0a-2c5e5f1e7f6b")


def write_bill(wheel: Path, epoch: int, target: Path) -> None:
    """Write it, with the versions that are installed here: those of ``tools/versions.txt`` after ``make install``."""
    with ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(archive.read(name))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    root = Component(
        name=OURS,
        version=metadata["Version"],
        type=ComponentType.APPLICATION,
        bom_ref=OURS,
        purl=PackageURL("pypi", None, OURS, metadata["Version"]),
        licenses=[LicenseFactory().make_from_string(metadata["License-Expression"])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )
    bom = Bom(serial_number=uuid5(IN_OUR_NAME, digest))
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.metadata.component = root
    found = {OURS: root}
    _add(bom, root, metadata.get_all("Requires-Dist", []), set(EXTRAS), found)
    target.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")


def _add(bom: Bom, parent: Component, texts: list[str], extras: set[str], found: dict[str, Component]) -> None:
    """Put what a package needs, and what that needs, into the bill."""
    needed = []
    for text in texts:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            continue
        name = canonicalize_name(requirement.name)
        if name == OURS:
            continue  # one of our extras that names another, which EXTRAS has
        if name not in found:
            package = distribution(name)
            found[name] = _component(name, package)
            bom.components.add(found[name])
            _add(bom, found[name], package.requires or [], set(requirement.extras), found)
        needed.append(found[name])
    bom.register_dependency(parent, needed)


def _component(name: str, package: Distribution) -> Component:
    stated = _license(package.metadata)
    return Component(
        name=name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=name,
        purl=PackageURL("pypi", None, name, package.version),
        licenses=[LicenseFactory().make_from_string(stated)] if stated else [],
    )


def _license(metadata: PackageMetadata) -> str:
    """What a package says of its licence in one line: the expression, or the older free text."""
    stated = next((metadata[key] for key in ("License-Expression", "License") if key in metadata), "")
    return stated.strip().partition("\n")[0]
