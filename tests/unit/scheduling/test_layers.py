"""Scheduling's modules import downwards only; ``.importlinter`` says what is above what."""

from __future__ import annotations

from pathlib import Path

import pai_backend.scheduling as scheduling


def test_no_import_hides_from_the_contracts() -> None:
    """Imports that only a type checker sees are not counted by the import contracts, and hide circles."""
    folder = Path(scheduling.__file__).parent
    hidden = [str(path.relative_to(folder)) for path in folder.rglob("*.py") if "TYPE_CHECKING" in path.read_text()]
    assert hidden == []
