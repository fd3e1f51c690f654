"""``pai simulate`` as a user runs it, in real processes and without a backend."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pai_backend.simulation import Arrival, read_trace
from tests.docs.pages import fences, read

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "simulate"
CONFIG, TRACE = str(EXAMPLES / "cluster.yaml"), str(EXAMPLES / "trace.jsonl")


def run(*words: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "jupyter_pai.cli", "simulate", *words]
    env = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done


def test_the_example_is_shown_as_a_table_with_a_row_for_each_virtual_cluster() -> None:
    done = run(CONFIG, TRACE)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "12 groups on 32 GPUs in 4:15:00"
    head, *rows = (line.split() for line in lines if line.startswith(("VC ", "vision ", "speech ", "all ")))
    assert head[:2] == ["VC", "GROUPS"]
    assert [row[:2] for row in rows] == [["vision", "8"], ["speech", "4"], ["all", "12"]]
    assert "eva~huge is refused: It needs 32 GPUs" in lines[-1]


def test_json_has_the_fate_of_every_group_and_is_the_same_in_every_process() -> None:
    one, other = run(CONFIG, TRACE, "--json", seed="1"), run(CONFIG, TRACE, "--json", seed="2")
    assert one.stdout == other.stdout
    fates = {fate["name"]: fate for fate in json.loads(one.stdout)["fates"]}
    assert len(fates) == 12
    assert fates["bob~night"]["preempted"] > 0
    assert fates["eva~huge"]["startedS"] is None


def test_a_picture_is_written_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "out.svg"
    assert run(CONFIG, TRACE, "--picture", str(file)).returncode == 0
    assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_grace_delays_those_who_evict() -> None:
    def started(*words: str) -> float:
        fates = json.loads(run(CONFIG, TRACE, "--json", *words).stdout)["fates"]
        return float(next(fate["startedS"] for fate in fates if fate["name"] == "dan~asr"))

    assert started("--grace", "45") == started() + 45


def test_a_wrong_line_is_shown_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text('{"at": 0, "name": "g", "vc": "vision", "duration": 1, "gpu": 2}\n')
    done = run(CONFIG, str(file))
    assert done.returncode == 2
    assert f"{file}:1" in done.stderr
    assert "Did you mean gpus?" in done.stderr
    assert done.stdout == ""


def test_a_wrong_configuration_is_named_and_not_the_trace() -> None:
    done = run(TRACE, TRACE)
    assert done.returncode == 2
    assert done.stderr.startswith("pai: the cluster configuration has")


@pytest.mark.parametrize("words", [("nowhere.yaml", TRACE), (CONFIG, "nowhere.jsonl")])
def test_a_file_that_is_not_there_is_named(words: tuple[str, str]) -> None:
    done = run(*words, "--json")
    assert done.returncode == 2
    assert "cannot read nowhere" in json.loads(done.stdout)["message"]


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    done = run(CONFIG, TRACE, "--picture", str(tmp_path / "no" / "out.svg"))
    assert done.returncode == 2
    assert "cannot write" in done.stderr


@pytest.mark.parametrize("grace", ["-1", "nan", "soon"])
def test_a_grace_that_is_no_time_is_wrong_usage(grace: str) -> None:
    done = run(CONFIG, TRACE, f"--grace={grace}")
    assert done.returncode == 2
    assert "number of seconds" in done.stderr


def test_the_line_in_the_documentation_is_a_line_of_the_example() -> None:
    (documented,) = [fence.text for fence in fences("docs/scheduling.md") if '"duration"' in fence.text]
    assert json.loads(documented) in [json.loads(line) for line in Path(TRACE).read_text().splitlines()]


def test_the_documentation_has_a_row_for_each_field_of_a_trace() -> None:
    chapter = read("docs/scheduling.md").partition("## Simulating")[2].partition("\n## ")[0]
    assert set(Arrival.model_fields) == set(re.findall(r"^\| `(\w+)` \|", chapter, re.MULTILINE))


def test_the_other_lines_in_the_documentation_can_be_read() -> None:
    chapter = read("docs/scheduling.md").partition("## Simulating")[2].partition("\n## ")[0]
    written = re.findall(r"^\| `({.*})` \|", chapter, re.MULTILINE)
    assert len(written) == 5
    (documented,) = [fence.text.strip() for fence in fences("docs/scheduling.md") if '"duration"' in fence.text]
    assert len(read_trace("\n".join([documented, *written])).lines) == 6


def other(tmp_path: Path) -> Path:
    """The example with one machine more, for speech."""
    file = tmp_path / "more.yaml"
    text = Path(CONFIG).read_text().replace("childCellNumber: 4}\n  physical", "childCellNumber: 5}\n  physical")
    text = text.replace("{cellAddress: node-3}", "{cellAddress: node-3}, {cellAddress: node-4}")
    before, _, after = text.partition("speech:")
    file.write_text(before + "speech:" + after.replace("cellNumber: 2", "cellNumber: 3"))
    return file


def test_two_configurations_stand_side_by_side_in_table_json_and_picture(tmp_path: Path) -> None:
    more, picture = other(tmp_path), tmp_path / "both.svg"
    done = run(CONFIG, TRACE, "--compare", str(more), "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^GPUs +32 +40$", done.stdout, re.MULTILINE)
    assert re.search(r"^speech .*→", done.stdout, re.MULTILINE)
    assert picture.read_text().count("GPUs in use of") == 2
    answer = json.loads(run(CONFIG, TRACE, "--compare", str(more), "--json").stdout)
    alone = json.loads(run(str(more), TRACE, "--json").stdout)
    assert answer["configs"] == [CONFIG, str(more)]
    assert answer["reports"][1] == alone


def test_caps_come_from_the_settings_of_a_backend_and_from_options(tmp_path: Path) -> None:
    settings = tmp_path / "backend.yaml"
    settings.write_text("api: {token: not-looked-at}\nqueue:\n  user: {gpus: 16}\n  users:\n    ann: {gpus: 4}\n")

    def capped(*words: str) -> float:
        users = json.loads(run(CONFIG, TRACE, "--json", *words).stdout)["users"]
        return float(next(user["cappedHours"] for user in users if user["user"] == "ann"))

    assert capped() == 0
    assert capped("--settings", str(settings)) > 0
    assert capped("--settings", str(settings), "--queue", "users.ann.gpus=32") == 0


def test_a_wrong_setting_is_shown_with_its_line(tmp_path: Path) -> None:
    settings = tmp_path / "backend.yaml"
    settings.write_text("queue:\n  user:\n    gpu: 16\n")
    done = run(CONFIG, TRACE, "--settings", str(settings))
    assert done.returncode == 2
    assert f"{settings}:3" in done.stderr
    assert "gpus" in done.stderr


@pytest.mark.parametrize("option", ["user.gpus", "user.gpu=3", "user.gpus=many", "=3"])
def test_an_option_that_is_no_setting_is_refused(option: str) -> None:
    done = run(CONFIG, TRACE, "--queue", option)
    assert done.returncode == 2
    assert done.stdout == ""


def test_a_configuration_of_the_trace_is_read_from_beside_it_and_its_faults_are_told(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    other(tmp_path)
    line = '{"at": 100, "event": "config", "file": "more.yaml"}\n'
    trace.write_text(Path(TRACE).read_text() + line)
    assert json.loads(run(CONFIG, str(trace), "--json").stdout)["gpus"] == 40
    trace.write_text(Path(TRACE).read_text() + line.replace("more.yaml", "none.yaml"))
    done = run(CONFIG, str(trace))
    assert done.returncode == 2
    assert f"{trace}:13" in done.stderr
