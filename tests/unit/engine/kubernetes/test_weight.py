"""A backend on a laptop pays nothing for the Kubernetes engine: not installed, or installed and not imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.interpreters import run_alone

LOCAL = """
import asyncio, pkgutil, sys
{prelude}
import pai_backend.processes.app, pai_backend.processes.supervisor, pai_backend.processes.roles
for module in pkgutil.iter_modules(pai_backend.processes.roles.__path__, "pai_backend.processes.roles."):
    __import__(module.name)
from pai_backend.engine.base import Listed
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.nodes import simulated_node
from pathlib import Path

async def main():
    engine = LocalEngine(Path({root!r}), [simulated_node("carol", "TITANX", 1, cpus=4, memory_mb=4096)])
    async for event in engine.watch():
        if isinstance(event, Listed):
            await engine.aclose()

asyncio.run(main())
{conclusion}
"""
HIDE = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kubernetes_asyncio", "aiohttp"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
"""
TELL = """
words = ("kubernetes_asyncio", "aiohttp", "pai_backend.engine.kubernetes")
print(*sorted(name for name in sys.modules if name.startswith(words)))
"""


def test_nothing_of_it_is_imported_while_the_local_engine_runs(tmp_path: Path) -> None:
    done = run_alone(LOCAL.format(prelude="", root=str(tmp_path / "engine"), conclusion=TELL))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_local_engine_runs_where_the_library_is_not_installed(tmp_path: Path) -> None:
    done = run_alone(LOCAL.format(prelude=HIDE, root=str(tmp_path / "engine"), conclusion=""))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", ["reflection", "handover", "objects", "failures", "retrying", "access", "kubeconfig"]
)
def test_the_parts_without_requests_need_no_http_library(module: str) -> None:
    done = run_alone(f"import sys\n{HIDE}\nimport pai_backend.engine.kubernetes.{module}")
    assert done.returncode == 0, done.stderr
