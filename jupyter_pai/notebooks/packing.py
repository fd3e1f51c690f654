"""What is sent with a notebook or a cell: itself, its variables, and the program that runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, cast

from jupyter_pai.errors import ClientError
from jupyter_pai.fs.places import wrong
from jupyter_pai.notebooks import execute
from pai_backend.model.text import Text

FOLDER = ".pai"
"""The directory of ours in the code tree."""
MOST_SENT_BYTES = 64 << 20
MOST_FETCHED_BYTES = 256 << 20
COMMAND = (
    "$(command -v python3 || command -v python || echo python3) "
    f'{FOLDER}/execute.py {FOLDER}/run.json "$PAI_OUTPUT_DIR"'
)
"""It names the output directory, without which a job has none."""
PARAMETERS, INJECTED = "parameters", "injected-parameters"
"""Tags of cells, as papermill has them."""

Notebook = dict[str, Any]


def read_notebook(path: Path) -> Notebook:
    """A notebook of Python in the format of Jupyter since 2014. Raises ClientError."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise wrong(
            Text("{path} cannot be read: {strerror}.", path=path, strerror=error.strerror),
            Text("Check the file's name."),
        ) from error
    except ValueError as error:
        raise wrong(
            Text("{path} is not a notebook: it is not JSON.", path=path), Text("Name a file that ends with .ipynb.")
        ) from error
    return checked(notebook, str(path))


def checked(notebook: object, path: str) -> Notebook:
    """What is in the file of this path, if it is such a notebook. Raises ClientError."""
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4 or not _are_cells(notebook.get("cells")):
        raise wrong(Text("{path} is not a notebook of format 4.", path=path), Text("Open it in Jupyter and save it."))
    metadata = cast(dict[str, Any], notebook.get("metadata") or {})
    language = _member(metadata, "kernelspec", "language") or _member(metadata, "language_info", "name") or "python"
    if str(language).lower() not in ("python", "python3", "ipython"):
        raise wrong(
            Text("{path} is a notebook of {language}; only Python runs as a job.", path=path, language=language),
            Text("Use `pai run` with its program."),
        )
    return notebook


def _member(value: dict[str, Any], *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else {}  # type: ignore[assignment]
    return value


def _are_cells(cells: object) -> bool:
    return isinstance(cells, list) and all(map(_is_cell, cells))


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict):
        return False
    source = cell.get("source")
    is_text = isinstance(source, str) or (isinstance(source, list) and all(isinstance(line, str) for line in source))
    return is_text and isinstance(cell.get("cell_type"), str)


def with_parameters(notebook: Notebook, parameters: Mapping[str, object]) -> Notebook:
    """The notebook with a cell that sets these, behind the one that is tagged ``parameters``, else before all."""
    cells = [cell for cell in notebook["cells"] if INJECTED not in _tags(cell)]
    place = next((number for number, cell in enumerate(cells, 1) if PARAMETERS in _tags(cell)), 0)
    if parameters:
        source = "\n".join(["# Parameters", *(f"{name} = {value!r}" for name, value in parameters.items())])
        own = {"id": INJECTED} if notebook.get("nbformat_minor", 0) >= 5 else {}  # earlier formats know no ids
        cells.insert(place, {**code_cell(source), **own, "metadata": {"tags": [INJECTED]}})
    return {**notebook, "cells": cells}


def _tags(cell: dict[str, Any]) -> Sequence[str]:
    tags = (cell.get("metadata") or {}).get("tags")
    return tags if isinstance(tags, list) else ()


def code_cell(source: str) -> dict[str, Any]:
    """A cell of code that has not run."""
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def cell_notebook(source: str) -> Notebook:
    """A notebook of one cell."""
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{**code_cell(source), "id": "cell"}]}


def parameter(text: str) -> tuple[str, object]:
    """``name=value``; the value is read as JSON, or as Python's True, False and None, else it is a text.

    Raises ValueError.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{text!r} is not NAME=VALUE")
    words: dict[str, object] = {"True": True, "False": False, "None": None}
    if value in words:
        return name, words[value]
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def files(
    notebook: Notebook,
    output: str,
    *,
    html: str = "",
    quiet: bool = False,
    send: Mapping[str, object] | None = None,
    fetch: Sequence[str] = (),
) -> dict[str, bytes]:
    """All that goes along, by path in the code tree. Raises ClientError for a variable that cannot be sent."""
    made = {"execute.py": resources.files(execute.__package__).joinpath("execute.py").read_bytes()}
    sent = {}
    left = MOST_SENT_BYTES
    for number, (name, value) in enumerate((send or {}).items()):
        try:
            data, portable = execute.pickled(value, left)
        except execute.NotebookRefused as error:
            raise ClientError(
                f"{name} {error}.",
                code="InvalidParametersError",
                hint="Upload data with `pai upload`, and read it in the job.",
            ) from None
        left -= len(data)
        made[f"send/{number}.pickle"] = data
        sent[name] = {"file": f"send/{number}.pickle", "portable": portable}
    if sent or fetch:
        library = resources.files("cloudpickle")
        made |= {
            f"lib/cloudpickle/{file.name}": file.read_bytes() for file in library.iterdir() if file.name.endswith(".py")
        }
    wanted = {
        "output": output,
        "html": html,
        "quiet": quiet,
        "sent": sent,
        "fetch": list(fetch),
        "most": MOST_FETCHED_BYTES,
        "python": execute.version(),
    }
    made["run.json"] = json.dumps(wanted).encode()
    made["notebook.ipynb"] = json.dumps(notebook, ensure_ascii=False).encode()
    return {f"{FOLDER}/{name}": data for name, data in made.items()}
