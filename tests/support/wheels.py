"""Wheels that tests make themselves, so that installing needs no network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, modules: Mapping[str, str], command: str = "") -> Path:
    """A wheel of these modules, by path, in ``folder``; ``command`` is one of its own, as ``module:function``."""
    about = f"{name}-{version}.dist-info"
    files = {
        **modules,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if command:
        files[f"{about}/entry_points.txt"] = f"[console_scripts]\n{name} = {command}\n"
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return place
