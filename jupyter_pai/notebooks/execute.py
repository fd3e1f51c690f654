"""Run a notebook in a task: ``python execute.py run.json``. Sent along with the notebook; needs only Python 3.8.

IPython runs the cells where the image has it, as a kernel does, with magics and rich outputs; else plain Python. What
cells print goes to the task's log at once and into the notebook, which is written to the job's output directory before
and after each cell, so that it tells how far it got whatever ends the process. ``result.json`` beside it has the cells
with their states, and the one that failed.
"""

from __future__ import annotations

import ast
import base64
import builtins
import importlib
import importlib.util
import io
import json
import os
import pickle
import sys
import time
import traceback
from typing import Any

STREAM_CHARS = 1_000_000
"""What a notebook keeps of what one cell prints; the log has all."""
LINE_CHARS = 120
"""Of a cell's first line, by which it is recognised where its progress is shown."""


class NotebookRefused(Exception):
    """A sentence for the user."""


class OutputTarget:
    """The job's output directory: a path, or a URI of a storage that fsspec knows."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.system: Any = None
        if "://" in place:
            try:
                import fsspec
            except ImportError:
                raise NotebookRefused(
                    f"The output directory {place} is reached by fsspec, which this image lacks."
                ) from None
            self.system = fsspec.core.url_to_fs(place)[0]

    def write(self, name: str, data: bytes) -> None:
        """A file that is there whole or not at all."""
        if self.system is not None:
            with self.system.open(f"{self.place.rstrip('/')}/{name}", "wb") as file:
                file.write(data)
            return
        path = os.path.join(self.place, name)
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)


class Recorder:
    """The outputs of the cell that runs, as a notebook has them."""

    def __init__(self) -> None:
        self.shown: dict[str, dict[str, Any]] = {}
        self.begin([])

    def begin(self, outputs: list[dict[str, Any]]) -> None:
        """Write into these from now on."""
        self.outputs = outputs
        self.left = STREAM_CHARS

    def text(self, name: str, text: str) -> None:
        """Something was printed."""
        if self.left <= 0 or not text:
            return
        self.left -= len(text)
        if self.left <= 0:
            text = text[: self.left + len(text)] + "\n… the job's log has the rest\n"
        last = self.outputs[-1] if self.outputs else {}
        if last.get("name") == name:
            last["text"] += text
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict[str, Any], metadata: dict[str, Any], **more: Any) -> None:
        """Something was displayed, or is the value of the cell."""
        kept = {mime: _storable(value) for mime, value in data.items()}
        self.outputs.append({"output_type": kind, "data": kept, "metadata": metadata or {}, **more})

    def display(self, data: dict[str, Any], metadata: dict[str, Any], display_id: Any, update: bool) -> None:
        """Something was displayed, or what was displayed under an id is another now."""
        if update and display_id in self.shown:
            self.shown[display_id]["data"] = {mime: _storable(value) for mime, value in data.items()}
            return
        self.rich("display_data", data, metadata)
        if display_id is not None:
            self.shown[display_id] = self.outputs[-1]

    def error(self, name: str, value: str, lines: list[str]) -> None:
        """The cell has failed."""
        self.outputs.append({"output_type": "error", "ename": name, "evalue": value, "traceback": lines})
        print("\n".join(lines), file=sys.__stderr__, flush=True)


def _storable(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class Tee(io.TextIOBase):
    """Passes what is printed on to the log, and to the recorder."""

    def __init__(self, name: str, real: Any, recorder: Recorder) -> None:
        self._name, self._real, self._recorder = name, real, recorder

    def writable(self) -> bool:
        """Always."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As the log's."""
        return "utf-8"

    def fileno(self) -> int:
        """The log's, for programs that cells start."""
        return int(self._real.fileno())

    def write(self, text: str) -> int:
        """Pass on at once: who waits reads along."""
        self._real.write(text)
        self._real.flush()
        self._recorder.text(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""
        self._real.flush()


class PlainShell:
    """Runs cells without IPython: the value of the last expression is shown, no magics."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.names: dict[str, Any] = sys.modules["__main__"].__dict__
        builtins.display = self._display  # type: ignore[attr-defined]

    def _display(self, *values: Any) -> None:
        for value in values:
            self._recorder.rich("display_data", _forms(value), {})

    def run(self, source: str, number: int) -> bool:
        """Run a cell; False when it fails."""
        try:
            tree = ast.parse(source, f"<cell {number}>")
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, f"<cell {number}>", "exec"), self.names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), self.names)
                if value is not None:
                    forms = _forms(value)
                    print(forms["text/plain"], file=sys.__stdout__, flush=True)
                    self._recorder.rich("execute_result", forms, {}, execution_count=number)
        except BaseException as error:  # noqa: BLE001 - a cell raises what it likes
            self._recorder.error(type(error).__name__, str(error), traceback.format_exc().splitlines())
            if isinstance(error, SyntaxError) and any(line.lstrip()[:1] in ("%", "!") for line in source.splitlines()):
                say("This image has no IPython, so % and ! do not work in cells.")
            return False
        return True


_FORMS = {"_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_png_": "image/png"}


def _forms(value: Any) -> dict[str, Any]:
    forms: dict[str, Any] = {"text/plain": repr(value)}
    for method, mime in _FORMS.items():
        if not isinstance(value, type) and callable(getattr(value, method, None)):
            made = getattr(value, method)()
            if made is not None:
                forms[mime] = made
    return forms


def ipython_shell(recorder: Recorder) -> Any:
    """A shell of IPython that records as a kernel would send; None where there is no IPython."""
    try:
        core: Any = importlib.import_module("IPython.core.interactiveshell")
    except ImportError:
        return None
    if importlib.util.find_spec("matplotlib_inline"):
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")

    class Publisher(core.DisplayPublisher):  # type: ignore[misc]
        def publish(
            self, data: Any, metadata: Any = None, transient: Any = None, update: Any = False, **_: Any
        ) -> None:
            recorder.display(data, metadata, (transient or {}).get("display_id"), bool(update))

        def clear_output(self, wait: bool = False) -> None:
            recorder.outputs.clear()

    class Hook(core.DisplayHook):  # type: ignore[misc]
        def write_output_prompt(self) -> None:
            """Notebooks have it beside the output."""

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            print(format_dict.get("text/plain", ""), file=sys.__stdout__, flush=True)
            recorder.rich("execute_result", format_dict, md_dict, execution_count=self.prompt_count)

    class Shell(core.InteractiveShell):  # type: ignore[misc]
        def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
            recorder.error(getattr(etype, "__name__", str(etype)), str(evalue), list(stb))

        def run(self, source: str, number: int) -> bool:
            return bool(self.run_cell(source, store_history=True).success)

        @property
        def names(self) -> Any:
            return self.user_ns

    shell: Any = Shell.instance()
    shell.displayhook, shell.display_pub = Hook(shell=shell, parent=shell), Publisher(shell=shell, parent=shell)
    sys.displayhook = shell.displayhook
    shell.display_trap.hook = shell.displayhook
    shell.system = shell.system_piped  # what programs print is an output, too
    return shell


def say(text: str) -> None:
    """A line for who reads the log."""
    print(f"pai: {text}", file=sys.__stderr__, flush=True)


def main(file: str) -> int:
    """Do what the file says; the exit status."""
    folder = os.path.dirname(os.path.abspath(file))
    with open(file, encoding="utf-8") as text:
        wanted = json.load(text)
    with open(os.path.join(folder, "notebook.ipynb"), encoding="utf-8") as text:
        notebook = json.load(text)
    os.environ["PYTHONUNBUFFERED"] = "1"
    sys.path[0] = os.getcwd()  # where the notebook's own modules are, as in Jupyter
    sys.path.append(os.path.join(folder, "lib"))
    sys.argv = [wanted["output"]]
    try:
        target = OutputTarget(os.environ["PAI_OUTPUT_DIR"])
        return run(wanted, notebook, target, folder)
    except NotebookRefused as error:
        say(str(error))
        return 1


def run(wanted: dict[str, Any], notebook: dict[str, Any], target: OutputTarget, folder: str) -> int:
    """Run all cells of code; the exit status."""
    recorder = Recorder()
    sys.stdout, sys.stderr = Tee("stdout", sys.__stdout__, recorder), Tee("stderr", sys.__stderr__, recorder)
    shell = ipython_shell(recorder) or PlainShell(recorder)
    take(wanted, folder, shell.names)
    cells, steps = [], []
    for place, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            if source := "".join(cell["source"]).strip():
                cells.append(cell)
                line = source.splitlines()[0][:LINE_CHARS]
                steps.append({"place": place, "line": line, "state": "waiting", "began": None, "seconds": None})
    result: dict[str, Any] = {
        "cells": len(cells),
        "python": version(),
        "failed": None,
        "fetched": {},
        "steps": [] if wanted["quiet"] else steps,
    }

    def save() -> None:
        target.write(wanted["output"], json.dumps(notebook, ensure_ascii=False, indent=1, default=str).encode())
        target.write("result.json", json.dumps(result).encode())

    for number, cell in enumerate(cells, 1):
        if not wanted["quiet"]:
            # By the way of what the cell prints, so that the log has both in order.
            print(f"pai: cell {number} of {len(cells)}", file=sys.__stdout__, flush=True)
        result["failed"] = {"cell": number, "error": "it did not end"}
        step = steps[number - 1]
        step["state"], step["began"], begun = "running", time.time(), time.monotonic()
        save()
        recorder.begin(cell["outputs"])
        cell["execution_count"] = number
        fine = shell.run("".join(cell["source"]), number)
        step["seconds"] = round(time.monotonic() - begun, 3)
        errors = [output for output in recorder.outputs if output["output_type"] == "error"]
        if not fine and "raises-exception" not in cell.get("metadata", {}).get("tags", ()):
            told = f"{errors[-1]['ename']}: {errors[-1]['evalue']}" if errors else "it failed"
            result["failed"] = {"cell": number, "error": told}
            step["state"] = "failed"
            save()
            say(f"cell {number} of {len(cells)} failed: {told}")
            return 1
        result["failed"] = None
        step["state"] = "done"
        save()
    give(wanted, target, shell.names, result)
    save()
    page(wanted, notebook, target)
    return 0


def version() -> str:
    """Of this Python, as far as functions depend on it."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def take(wanted: dict[str, Any], folder: str, names: dict[str, Any]) -> None:
    """Put the variables that were sent into the notebook's names. Raises Refused."""
    for name, sent in wanted["sent"].items():
        if not sent["portable"] and wanted["python"] != version():
            raise NotebookRefused(
                f"{name} holds functions or classes of the notebook, which were written by Python {wanted['python']}; "
                f"this image has Python {version()}. Use an image with Python {wanted['python']}, or send plain data."
            )
        try:
            with open(os.path.join(folder, sent["file"]), "rb") as file:
                names[name] = pickle.load(file)
        except Exception as error:  # noqa: BLE001 - what loading runs may raise anything
            raise NotebookRefused(f"{name} cannot be read in this image: {type(error).__name__}: {error}") from None


class Bounded(io.BytesIO):
    """Refuses to hold more bytes than it was told."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, data: Any) -> int:
        """As a file. Raises Refused when it is too much."""
        if self.tell() + memoryview(data).nbytes > self._most:
            raise NotebookRefused(f"is larger than {self._most:,} bytes")
        return super().write(data)


def pickled(value: Any, most: int) -> tuple[bytes, bool]:
    """A value as bytes, and whether every Python can read it. Raises Refused, with the end of a sentence."""
    file = Bounded(most)
    try:
        pickle.dump(value, file, protocol=4)
        portable = b"__main__" not in file.getvalue()
    except NotebookRefused:
        raise
    except Exception:  # noqa: BLE001 - what pickle cannot, cloudpickle may
        portable = False
    if portable:
        return file.getvalue(), True
    import cloudpickle

    file = Bounded(most)
    try:
        cloudpickle.dump(value, file, protocol=4)
    except NotebookRefused:
        raise
    except Exception as error:  # noqa: BLE001 - objects raise what they like
        raise NotebookRefused(f"cannot be sent: {type(error).__name__}: {error}") from None
    return file.getvalue(), False


def give(wanted: dict[str, Any], target: OutputTarget, names: dict[str, Any], result: dict[str, Any]) -> None:
    """Write the variables that are to come back. Raises Refused."""
    for name in wanted["fetch"]:
        if name not in names:
            raise NotebookRefused(f"There is no variable {name} to fetch.")
        try:
            data, portable = pickled(names[name], wanted["most"])
        except NotebookRefused as error:
            raise NotebookRefused(f"{name} {error}. Write it to a file in $PAI_OUTPUT_DIR instead.") from None
        target.write(f"{name}.pickle", data)
        result["fetched"][name] = portable


def page(wanted: dict[str, Any], notebook: dict[str, Any], target: OutputTarget) -> None:
    """The notebook as HTML, where the image can make it; else who fetches it does."""
    if not wanted["html"]:
        return
    try:
        nbformat: Any = importlib.import_module("nbformat")
        exporter: Any = importlib.import_module("nbconvert").HTMLExporter()
        text, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(notebook, default=str), as_version=4))
    except ImportError:
        return
    except Exception as error:  # noqa: BLE001 - the notebook is what counts, and it is there
        say(f"nbconvert of this image makes no HTML of the notebook: {type(error).__name__}: {error}")
        return
    target.write(wanted["html"], text.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
