"""``python -m pai_backend cluster remove``: take all tasks out of a Kubernetes cluster, before it is left for good."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.engine.base import EngineError

EXIT_INVALID = 2
_DEFAULTS = ("--engine-kind", "kubernetes", "--kubernetes-pods-runtime-image", "none")
"""Nothing is started, so no image is asked for."""


def main(arguments: Sequence[str]) -> int:
    """Remove them and say how many objects they were; exit code 2, and one line a fault, when that cannot be."""
    try:
        settings = load([*_DEFAULTS, *arguments]).settings
        from pai_backend.engine.kubernetes.access import Access
        from pai_backend.engine.kubernetes.removal import remove_all

        keys = settings.kubernetes
        access = Access(keys.kubeconfig, keys.context, keys.namespace)
        count = asyncio.run(remove_all(access, keys.namespace_per, settings.cluster_name))
    except ConfigError as error:
        for line in error.lines:
            sys.stderr.write(f"pai_backend: {line}\n")
        return EXIT_INVALID
    except ModuleNotFoundError as error:
        sys.stderr.write(f"pai_backend: this needs {error.name}; pip install kubernetes_asyncio aiohttp\n")
        return EXIT_INVALID
    except EngineError as error:
        sys.stderr.write(f"pai_backend: {error}\n")
        return EXIT_INVALID
    sys.stdout.write(f"{count} objects of {settings.cluster_name} are removed\n")
    return 0
