"""Of the Kubernetes library only what is used is loaded, and it stays whole for others in the process."""

from __future__ import annotations

from tests.support.interpreters import run_alone

MODULES = 100
"""More than are loaded, those of urllib3 and six included; the whole library is more than 800."""

LOADED = """
import aiohttp, sys
from pai_backend.engine.kubernetes import access
from pai_backend.engine.kubernetes.library import library

before = len(sys.modules)
found = library()
print(len(sys.modules) - before, *[name for name in sys.modules if name.startswith("kubernetes_asyncio")])
"""
WHOLE = """
from pai_backend.engine.kubernetes.library import library

ours = library()
from kubernetes_asyncio import client, config

assert client.V1Pod(kind="Pod").kind == "Pod" and client.ApiClient.PRIMITIVE_TYPES
assert config.kube_config.ApiClient is client.ApiClient
assert library() is ours
"""
BESIDE = """
import sys
import kubernetes_asyncio.client as client

before = {name: module for name, module in sys.modules.items() if name.startswith("kubernetes_asyncio")}
from pai_backend.engine.kubernetes.library import library

library().configuration()
assert {name: module for name, module in sys.modules.items() if name.startswith("kubernetes_asyncio")} == before
assert client.V1Node(kind="Node").kind == "Node"
"""


def run(program: str) -> str:
    """What it prints; it must succeed."""
    done = run_alone(program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_what_is_used_is_loaded() -> None:
    count, *left = run(LOADED).split()
    assert int(count) < MODULES
    assert left == []


def test_who_imports_the_library_later_has_all_of_it() -> None:
    run(WHOLE)


def test_who_has_imported_the_library_keeps_it() -> None:
    run(BESIDE)


BESIDE_IMPORTS = """
import sys
from pai_backend.engine.kubernetes.library import library

class Name(str):
    __hash__ = str.__hash__
    def __eq__(self, other):  # another thread imports something just now
        sys.modules.setdefault(f"imported_{len(sys.modules)}", sys)
        return str.__eq__(self, other)

sys.modules[Name("first_of_them")] = sys
library()
"""


def test_it_is_loaded_beside_other_imports() -> None:
    run(BESIDE_IMPORTS)


CHANGED = """
import asyncio, logging, sys
from pai_backend.engine.kubernetes import library as module

real = module.import_module

def import_module(name):
    if name == "kubernetes_asyncio.client.configuration":
        raise ModuleNotFoundError(f"No module named {name!r}")
    return real(name)

module.import_module = import_module
logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stdout)
library = module.library

found = library()
import kubernetes_asyncio.client as client
import kubernetes_asyncio.config as config

assert library() is found
assert found.configuration is client.Configuration and found.config_exception is config.ConfigException

async def main():
    api = found.rest_client(found.configuration(host="https://127.0.0.1:1"))
    assert api.pool_manager.connector is not None
    await api.close()

asyncio.run(main())
"""


def test_a_release_with_other_modules_is_imported_whole_and_that_is_said_once() -> None:
    (line,) = run(CHANGED).splitlines()
    assert line.startswith("WARNING this release of kubernetes_asyncio is imported whole")
