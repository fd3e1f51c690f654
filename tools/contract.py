"""Write the wire types of the fronts from the API's models; ``--check`` fails when a file is stale.

Words of the models are taken over into comments when a file is written, and are not compared.

The models make the OpenAPI description, and the description makes ``jupyter_pai/wire_types.py`` and
``labextension/src/api/schema.ts`` (ADR 0031). Where Node.js or its generator is missing, only the Python half is done.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datamodel_code_generator import GenerateConfig, InputFileType, LiteralType, PythonVersion, generate
from datamodel_code_generator.enums import DataModelType
from datamodel_code_generator.format import Formatter
from pydantic import TypeAdapter

from jupyter_pai.connect.guide import Guide
from jupyter_pai.context_handlers import ContextList
from jupyter_pai.doctor.examining import DoctorReport
from jupyter_pai.notebook_handlers import FetchedNotebook, NotebookRun
from jupyter_pai.sweep_handlers import SubmittedSweep, SweepShown
from jupyter_pai.vscode_server import CodeServer
from jupyter_pai.widgets.output import JobOutput
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.simulation import Comparison

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "jupyter_pai" / "wire_types.py"
NAMED = ROOT / "labextension" / "src" / "types.ts"
TYPESCRIPT = ROOT / "labextension" / "src" / "api" / "schema.ts"
GENERATOR = ROOT / "labextension" / "node_modules" / ".bin" / "openapi-typescript"
REFERENCE = "#/components/schemas/"
BESIDE_REST = (
    Guide,
    DoctorReport,
    CodeServer,
    JobOutput,
    NotebookRun,
    FetchedNotebook,
    SweepShown,
    SubmittedSweep,
    ContextList,
    Comparison,
)
"""What the Jupyter server itself answers, what a notebook holds, what ``pai_backend simulate`` prints for ``pai``."""
HEAD = "Made by tools/contract.py from the models of pai_backend.api; make contract writes it again."
Json = dict[str, Any]


def schemas_of(names: Iterable[str]) -> Json:
    """The schemas of these names, and of all that they refer to, without the titles that pydantic makes of names."""
    every = {**describe(ROUTES, "")["components"]["schemas"], **_schemas_beside_rest()}
    wanted: Json = {}
    left = list(names)
    while left:
        if (name := left.pop()) not in wanted:
            wanted[name] = _untitled(every[name])
            left += _referred(every[name])
    return {name: wanted[name] for name in sorted(wanted)}


def _untitled(schema: Json) -> Json:
    about = {key: value for key, value in schema.items() if key not in ("title", "properties")}
    if properties := schema.get("properties"):
        about["properties"] = {name: _untitled(value) for name, value in properties.items()}
    return about


def _referred(value: object) -> Iterator[str]:
    """The names of the schemas that a schema refers to."""
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.removeprefix(REFERENCE)
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _referred(each)


def python_names() -> set[str]:
    """The shapes that modules of ``jupyter_pai`` import."""
    return {
        alias.name
        for path in PYTHON.parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "jupyter_pai.wire_types"
        for alias in node.names
    }


def typescript_names() -> set[str]:
    """The shapes that ``types.ts`` gives to the panel."""
    given = re.search(r"export type \{(.*?)\} from './api/schema';", NAMED.read_text(encoding="utf-8"), re.DOTALL)
    assert given is not None
    return set(re.findall(r"(\w+)(?: as \w+)?(?:,|$)", given[1].strip()))


def _schemas_beside_rest() -> Json:
    """The schemas of what comes from elsewhere than the API."""
    kinds = [(kind.__name__, "serialization", TypeAdapter(kind)) for kind in BESIDE_REST]
    _, schemas = TypeAdapter.json_schemas(kinds, ref_template=REFERENCE + "{model}")  # type: ignore[arg-type]
    found: Json = schemas["$defs"]
    return found


def document(schemas: Json) -> str:
    """An OpenAPI description of these schemas alone."""
    about = {"title": "jupyter-pai", "version": ""}
    return json.dumps({"openapi": "3.1.0", "info": about, "paths": {}, "components": {"schemas": schemas}})


def python_types() -> str:
    """The text of ``wire_types.py``: types only, for the command line may not pay for importing pydantic."""
    made = generate(
        document(schemas_of(python_names())),
        config=GenerateConfig(
            input_file_type=InputFileType.OpenAPI,
            output_model_type=DataModelType.TypingTypedDict,
            target_python_version=PythonVersion.PY_311,
            enum_field_as_literal=LiteralType.All,
            use_closed_typed_dict=False,
            use_schema_description=True,
            use_single_line_docstring=True,
            custom_file_header=f'"""{HEAD}"""',
            disable_future_imports=False,
            formatters=[Formatter.BUILTIN],
        ),
    )
    assert isinstance(made, str)
    return _formatted(made)


def _formatted(text: str) -> str:
    """The text as ``make format`` leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def typescript_types() -> str | None:
    """The text of ``schema.ts``; None where it cannot be made."""
    if shutil.which("node") is None or not GENERATOR.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        source.write_text(document(schemas_of(typescript_names())), encoding="utf-8")
        options = ["--immutable", "--root-types", "--root-types-no-schema-prefix"]
        subprocess.run([str(GENERATOR), str(source), "-o", str(made), *options], capture_output=True, check=True)
        return f"// {HEAD}\n{made.read_text(encoding='utf-8')}"


def same_python(one: str, other: str) -> bool:
    """Whether two modules have the same types; their lines may be broken elsewhere, and docstrings may differ."""
    return _types_alone(one) == _types_alone(other)


def _types_alone(text: str) -> list[str]:
    module = ast.parse(text)
    for node in (each for each in module.body if isinstance(each, ast.ClassDef)):
        node.body = [each for each in node.body if not isinstance(each, ast.Expr)]
    return [ast.dump(each) for each in module.body if not isinstance(each, ast.Expr)]


def same_typescript(one: str, other: str) -> bool:
    """Whether two texts of TypeScript say the same but in their comments."""
    bare = [re.sub(r"/\*.*?\*/|//[^\n]*|\s+", " ", text, flags=re.DOTALL).split() for text in (one, other)]
    return bare[0] == bare[1]


def stale() -> list[Path]:
    """The files that are not what the models say now."""
    typescript = typescript_types()
    found = [] if same_python(PYTHON.read_text(encoding="utf-8"), python_types()) else [PYTHON]
    if typescript is not None and not same_typescript(TYPESCRIPT.read_text(encoding="utf-8"), typescript):
        found.append(TYPESCRIPT)
    return found


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a file is stale, write nothing")
    if parser.parse_args().check:
        files = stale()
        for file in files:
            print(f"{file.relative_to(ROOT)} is not what the models say; run make contract", file=sys.stderr)
        return 1 if files else 0
    PYTHON.write_text(python_types(), encoding="utf-8")
    if (typescript := typescript_types()) is None:
        print("Node.js or openapi-typescript is missing: schema.ts is left as it is.", file=sys.stderr)
    else:
        TYPESCRIPT.parent.mkdir(exist_ok=True)
        TYPESCRIPT.write_text(typescript, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
