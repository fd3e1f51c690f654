"""The names of images, and what they are fetched with as ``docker login`` keeps it: kubelets and Podman read it alike.

Source: Kubernetes "Images", config.json; containers-auth.json(5).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final

from pai_backend.model.plan import RegistryLogin

DOCKER_HUB: Final = "https://index.docker.io/v1/"
"""The name that credentials of the registry without a name are kept under."""


def docker_config(login: RegistryLogin, image: str) -> bytes:
    """Credentials as ``docker login`` keeps them, under the registry's name."""
    password = login.password.get_secret_value()
    both = base64.b64encode(f"{login.username}:{password}".encode()).decode()
    entry: Mapping[str, str] = {"username": login.username, "password": password, "auth": both}
    return json.dumps({"auths": {registry_of(login.registry_uri, image): entry}}).encode()


def full_reference(image: str) -> str:
    """The name of an image with its registry, as kubelets complete it: of Docker Hub where it names none.

    Source: the distribution project's reference grammar, familiar names. What is no name of an image stays none.
    """
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def registry_of(uri: str, image: str) -> str:
    """The name that a kubelet looks credentials up by: of the login's registry, or else of the image's.

    What comes first in an image's name is a registry when it has a dot or a port or is ``localhost``.
    Source: the distribution project's reference grammar, and Kubernetes "Images", config.json.
    """
    name = uri.removeprefix("https://").removeprefix("http://").rstrip("/")
    if not name:
        first, slash, _ = image.partition("/")
        name = first if slash and ("." in first or ":" in first or first == "localhost") else ""
    return DOCKER_HUB if name in ("", "docker.io", "index.docker.io", "index.docker.io/v1") else name
