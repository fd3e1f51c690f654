"""What proves a predecessor dead: a file on one machine, the lease alone where controllers are on several."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from pai_backend.config.settings import Settings
from pai_backend.processes.roles.controller import lock_of


@pytest.mark.parametrize("database", [None, "sqlite:////somewhere/else.sqlite"])
def test_controllers_of_one_machine_share_a_lock(tmp_path: Path, database: str | None) -> None:
    settings = Settings(data_dir=tmp_path, database=SecretStr(database) if database else None)
    assert lock_of(settings) == tmp_path / "controller.lock"


def test_controllers_of_several_machines_go_by_the_lease(tmp_path: Path) -> None:
    assert lock_of(Settings(data_dir=tmp_path, database=SecretStr("postgresql://db/pai"))) is None
