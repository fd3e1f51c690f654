"""The backend's image, built and pushed; known by its digest from then on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.release.changelog import NotReady

BUILDERS = ("docker", "podman", "buildah")


def build_image(root: Path, name: str) -> str:
    """Build and push an image with what ``tools/backend-image`` would take; returns its digest, ``sha256:…``.

    Raises NotReady where nothing can build images.
    """
    builder = os.environ.get("IMAGE_BUILDER") or next((found for found in BUILDERS if shutil.which(found)), "")
    if not builder:
        raise NotReady("None of docker, podman and buildah is here. Install one, or make the release without an image.")
    subprocess.run(["tools/backend-image", name], cwd=root, check=True, env={**os.environ, "IMAGE_BUILDER": builder})
    if Path(builder).name == "docker":
        subprocess.run([builder, "push", name], check=True)
        shown = subprocess.run(
            [builder, "image", "inspect", "--format", '{{join .RepoDigests "\\n"}}', name],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        repository = re.sub(r":[^:/]*$", "", name)
        [digest] = [line.partition("@")[2] for line in shown.split() if line.startswith(f"{repository}@")]
        return digest
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "digest")
        subprocess.run([builder, "push", "--digestfile", str(file), name], check=True)
        return file.read_text().strip()
