"""A class name means one thing: a second definition is found, and so is an exception that is no longer needed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def class_names() -> ModuleType:
    spec = importlib.util.spec_from_file_location("class_names", ROOT / "tools" / "class_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_names_of_the_project_mean_one_thing(class_names: ModuleType) -> None:
    assert class_names.problems(class_names.places([ROOT / path for path in class_names.sources()])) == []


def test_a_second_definition_is_found(class_names: ModuleType, tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("class Spool:\n    pass\n\n\nclass _Own:\n    pass\n")
    found = class_names.places(sorted(tmp_path.iterdir()))
    assert f"class Spool is defined twice: {tmp_path}/one.py:1, {tmp_path}/two.py:1" in class_names.problems(found)
    assert not any("_Own" in problem for problem in class_names.problems(found))


def test_an_exception_that_is_not_needed_is_found(class_names: ModuleType) -> None:
    assert "class Fault is defined once: remove it from tools/class_names.py" in class_names.problems(
        {"Fault": ["a.py:1"]}
    )
