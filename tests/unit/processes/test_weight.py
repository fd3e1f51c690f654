"""Each process of a backend imports what its role needs: a start is mostly imports."""

from __future__ import annotations

import pytest

from tests.support.interpreters import run_alone


@pytest.mark.parametrize("module", ["config.load", "processes.roles.gateway", "processes.roles.agent"])
def test_what_decides_where_tasks_run_is_imported_by_the_controller_and_the_api_alone(module: str) -> None:
    told = "print(*(name for name in sys.modules if name.startswith('pai_backend.scheduling')))"
    done = run_alone(f"import sys, pai_backend.{module}\n{told}")
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
