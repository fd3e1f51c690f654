"""What stays in a notebook of a job that a cell followed: run by nbclient in a real kernel, before a fake backend."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbclient import NotebookClient

from jupyter_pai.widgets.output import MIME
from tests.support.running_fake import RunningFake

FOLLOWING = """\
%load_ext jupyter_pai
view = %pai submit $document
view
"""
TIMEOUT_S = 120


@pytest.fixture
def environment(fake: RunningFake, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PAI_URL", fake.endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", fake.endpoint.token)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))


@pytest.mark.usefixtures("environment")
def test_an_output_holds_how_the_job_ended_and_no_widget(fake: RunningFake) -> None:
    async def finish() -> None:
        async with fake.backend.changed:
            await fake.backend.changed.wait_for(lambda: fake.backend.jobs)
        uid = next(iter(fake.backend.jobs))
        await fake.backend.advance(uid, "RUNNING")
        await fake.backend.write_log(uid, "损失 0.5\n".encode())
        await fake.backend.advance(uid, "SUCCEEDED")

    document = json.dumps({"jobName": "train"})
    cells = [f"document = {document!r}", FOLLOWING, "view.wait().get('state')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    finishing = fake.thread.start(finish())
    NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3").execute()
    finishing.result(TIMEOUT_S)
    assert notebook.cells[2].outputs[0].data["text/plain"] == "'SUCCEEDED'"
    (output,) = notebook.cells[1].outputs
    assert output.data.keys() == {MIME, "text/html", "text/plain"}
    assert output.data[MIME]["state"] == "SUCCEEDED"
    assert output.data[MIME]["ended"] is True
    for form in ("text/html", "text/plain"):
        assert "SUCCEEDED" in output.data[form]
        assert "损失 0.5" in output.data[form]
    assert "widgets" not in notebook.metadata
