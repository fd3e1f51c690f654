"""``pai convert`` as a process: the document on stdout or in a file, what it loses on stderr, the usual exit codes."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from pai_backend.model.spec import Dialect
from pai_backend.protocol import read_document
from tests.support.warm_start import run_pai

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
SCM = str(DOCUMENTS / "scm-helloworld.json")


@pytest.mark.parametrize(("to", "dialect"), [("openpai-v1", Dialect.OPENPAI_V1), ("openpai-v2", Dialect.OPENPAI_V2)])
def test_the_document_is_on_stdout_and_what_it_loses_on_stderr(to: str, dialect: Dialect) -> None:
    done = run_pai("convert", SCM, "--to", to)
    assert done.returncode == 0
    assert read_document(done.stdout).dialect is dialect
    assert "! lost $.tmp: tmp, a picture of SCM's screen, is left out — It is ignored.\n" in done.stderr


def test_a_file_is_written_whole_and_stdout_stays_empty(tmp_path: Path) -> None:
    target = tmp_path / "job.yaml"
    target.write_text("old")
    done = run_pai("convert", "-", "--to", "openpai-v2", "-o", str(target), stdin=Path(SCM).read_text())
    assert (done.returncode, done.stdout) == (0, "")
    assert read_document(target.read_bytes()).spec.name == "helloworld_16be675e"
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


def test_what_is_no_file_is_not_replaced() -> None:
    assert run_pai("convert", SCM, "--to", "openpai-v1", "-o", "/dev/null").returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_json_has_the_document_and_the_list() -> None:
    done = run_pai("convert", SCM, "--to", "openpai-v2", "--json")
    answer = json.loads(done.stdout)
    assert read_document(answer["document"]).spec.name == answer["name"]
    assert [loss["path"] for loss in answer["lost"]] == ["$.tmp", "$.taskRoles[0].storageGB", "$.gpuType"]


def test_a_faulty_document_is_answered_as_validate_answers(tmp_path: Path) -> None:
    target = tmp_path / "out"
    done = run_pai("convert", "-", "--to", "openpai-v2", "-o", str(target), stdin='{"jobName": "a",\n "image" "x"}')
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin:2:" in done.stderr
    assert done.stderr == run_pai("validate", "-", stdin='{"jobName": "a",\n "image" "x"}').stderr
    assert not target.exists()


def test_what_cannot_be_converted_names_its_place() -> None:
    text = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "r", "command": "<% $secrets.x %>"}]}'
    done = run_pai("convert", "-", "--to", "openpai-v2", stdin=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert "$.taskRoles[0].command: v2 would take a part of the command for one of its tags" in done.stderr


def test_a_directory_that_is_not_there_is_a_plain_error(tmp_path: Path) -> None:
    done = run_pai("convert", SCM, "--to", "openpai-v1", "-o", str(tmp_path / "none" / "job.json"))
    assert done.returncode == 2
    assert "cannot be written: No such file or directory." in done.stderr
