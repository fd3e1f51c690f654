"""The few modules of ``kubernetes_asyncio`` that are used, without the hundreds that its packages import.

Importing the library makes a class for every kind of object that Kubernetes has: 883 modules, 34 MiB and half a
second of CPU time, and as much again where ``kubernetes_validate`` is installed beside it. Of all that we need what
finds credentials and opens a session. These modules are loaded from the library's folder under packages that are empty,
and nothing of it stays in ``sys.modules``: another import of the library in the same process gets all of it, as ever.

Which modules there are is not documented. A release that has others is imported whole (ADR 0032).
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pai_backend.engine.kubernetes.failures import AccessError

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

log = logging.getLogger(__name__)

NAME = "kubernetes_asyncio"
_CLIENT, _CONFIG = f"{NAME}.client", f"{NAME}.config"


@dataclass(frozen=True)
class Library:
    """What we use of it."""

    configuration: type[Configuration]
    rest_client: Callable[[Configuration], Any]
    """RESTClientObject, of which its annotations do not say what it takes."""
    kubeconfig_loader: type[KubeConfigLoader]
    service_account_loader: type[InClusterConfigLoader]
    config_exception: type[ConfigException]


_loading = threading.Lock()
_loaded: Library | None = None


def library() -> Library:
    """Its classes; the first call blocks while forty modules are read. Raises AccessError where it is not installed."""
    global _loaded
    try:
        spec = find_spec(NAME)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(NAME)
        with _loading:
            if _loaded is None:
                _loaded = _load_some(list(spec.submodule_search_locations)) or _load_whole()
            return _loaded
    except ImportError:
        raise AccessError(
            "the Kubernetes engine needs kubernetes_asyncio; install it with: pip install kubernetes_asyncio aiohttp"
        ) from None


def _load_some(folders: list[str]) -> Library | None:
    """The modules that are used; None where the library has others than those, which is told in the log."""
    try:
        found = _load(folders)
        if all(isinstance(kind, type) for kind in vars(found).values()):
            return found
        why = "a name is not a class"
    except (AttributeError, ImportError, TypeError) as error:
        why = str(error)
    log.warning("this release of %s is imported whole, which takes more memory: %s (ADR 0032)", NAME, why)
    return None


def _load_whole() -> Library:
    """The library as it documents itself."""
    client, config = import_module(_CLIENT), import_module(_CONFIG)

    def rest_client(configuration: Configuration) -> Any:
        return client.ApiClient(configuration).rest_client

    return Library(
        client.Configuration,
        rest_client,
        config.kube_config.KubeConfigLoader,
        config.incluster_config.InClusterConfigLoader,
        config.ConfigException,
    )


def _load(folders: list[str]) -> Library:
    with _hidden():
        _empty(NAME, folders)
        client = _empty(_CLIENT, [f"{folder}/client" for folder in folders])
        _empty(_CONFIG, [f"{folder}/config" for folder in folders])
        configuration = import_module(f"{_CLIENT}.configuration").Configuration
        # What the modules that follow ask that package for; the other one is for functions of theirs that are not used.
        vars(client).update(Configuration=configuration, ApiClient=None)
        return Library(
            configuration,
            import_module(f"{_CLIENT}.rest").RESTClientObject,
            import_module(f"{_CONFIG}.kube_config").KubeConfigLoader,
            import_module(f"{_CONFIG}.incluster_config").InClusterConfigLoader,
            import_module(f"{_CONFIG}.config_exception").ConfigException,
        )


@contextmanager
def _hidden() -> Iterator[None]:
    """Let nothing of the library be known before the block, and what was known be known again after it."""
    before = _take_out()
    try:
        yield
    finally:
        _take_out()
        sys.modules.update(before)


def _take_out() -> dict[str, ModuleType]:
    # Of a copy, which is made at once: this runs in a thread, beside which others import.
    names = [name for name in tuple(sys.modules) if name == NAME or name.startswith(f"{NAME}.")]
    return {name: sys.modules.pop(name) for name in names}


def _empty(name: str, folders: list[str]) -> ModuleType:
    """A package with nothing in it, whose modules can be imported one by one."""
    package = ModuleType(name)
    package.__path__ = folders
    sys.modules[name] = package
    return package
