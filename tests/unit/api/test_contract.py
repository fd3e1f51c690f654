"""The types of the fronts are those that the API's models make, and none of them is written a second time."""

from __future__ import annotations

import ast

from jupyter_pai import wire_types
from tools import contract


def test_the_python_types_are_what_the_models_say() -> None:
    assert contract.same_python(contract.PYTHON.read_text(encoding="utf-8"), contract.python_types())


def test_the_panels_types_are_what_the_models_say() -> None:
    made = contract.typescript_types()  # None without Node.js; make check has it
    assert made is None or contract.same_typescript(contract.TYPESCRIPT.read_text(encoding="utf-8"), made)


def test_a_changed_type_is_stale() -> None:
    text = contract.PYTHON.read_text(encoding="utf-8")
    assert contract.same_python(text, text.replace("\n\n\n", "\n\n").replace('    """', '    """Words: '))
    assert not contract.same_python(text, text.replace("    alias: str\n", "    alias: str | None\n", 1))
    panel = contract.TYPESCRIPT.read_text(encoding="utf-8")
    assert contract.same_typescript(panel, panel.replace("* @description ", "* @description Words: "))
    assert not contract.same_typescript(panel, panel.replace("alias: string", "alias: string | null", 1))


def test_only_shapes_that_a_front_uses_are_written() -> None:
    tree = ast.parse(contract.PYTHON.read_text(encoding="utf-8"))
    written = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert contract.python_names() <= set(vars(wire_types))
    assert written <= set(contract.schemas_of(contract.python_names()))


def test_the_panel_names_shapes_of_the_backend_and_of_the_jupyter_server() -> None:
    assert {"JobDetail", "Fault", "Guide"} <= contract.typescript_names()
