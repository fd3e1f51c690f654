"""``%pai`` in a real IPython shell, before a fake backend."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai import cell, completion
from jupyter_pai.render import clock
from jupyter_pai.shown import CellFailure, JobFailed, ServiceLink
from jupyter_pai.widgets.job_view import JobView
from jupyter_pai.widgets.output import MIME
from tests.support.running_fake import RunningFake

TIMEOUT_S = 60


class Notebook:
    """Runs cells; keeps what the last one printed, gave back and raised."""

    def __init__(self) -> None:
        self.shell = InteractiveShell.instance()
        self.shell.run_line_magic("load_ext", "jupyter_pai")
        self.text = ""

    def run(self, cell: str) -> Any:
        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        self.text = captured.stdout + captured.stderr
        self.error = result.error_before_exec or result.error_in_exec
        return result.result


@pytest.fixture
def notebook(fake: RunningFake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Notebook]:
    monkeypatch.setenv("PAI_URL", fake.endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", fake.endpoint.token)
    monkeypatch.setenv("PAI_SSH_DIR", str(tmp_path / "ssh"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    yield Notebook()
    InteractiveShell.clear_instance()


def test_a_cell_is_a_document(notebook: Notebook, fake: RunningFake) -> None:
    view = notebook.run('%%pai submit --name mine\n{"jobName": "from-cell"}\n')
    assert isinstance(view, JobView)
    assert view.job["name"] == "mine"
    assert fake.backend.sources[view.job["uid"]] == b'{"jobName": "from-cell"}\n'


@pytest.mark.parametrize("value", ["{'jobName': 'v'}", '\'{"jobName": "v"}\'', 'b\'{"jobName": "v"}\'', "path"])
def test_a_variable_holds_a_document_or_its_path(notebook: Notebook, tmp_path: Path, value: str) -> None:
    (tmp_path / "job.json").write_text('{"jobName": "v"}')
    notebook.run(f"from pathlib import Path; path = Path({str(tmp_path / 'job.json')!r}); document = {value}")
    assert notebook.run("%pai submit $document").job["name"] == "v"


def test_a_view_follows_its_job_to_the_end(notebook: Notebook, fake: RunningFake) -> None:
    view: JobView = notebook.run('%%pai submit\n{"jobName": "train"}')
    assert "WAITING" in view.bundle()["text/html"]
    uid = view.job["uid"]
    fake.advance(uid, "RUNNING")
    assert view.wait_for("RUNNING", timeout_s=TIMEOUT_S)["state"] == "RUNNING"
    assert not view.widget().button.disabled
    fake.write_log(uid, b"loss <0.5>\n")
    fake.advance(uid, "SUCCEEDED")
    assert view.wait(TIMEOUT_S)["state"] == "SUCCEEDED"
    bundle = view.bundle()
    assert "loss &lt;0.5&gt;" in bundle["text/html"]
    assert bundle[MIME] == {"uid": uid, "name": "train", "state": "SUCCEEDED", "seen": ANY, "ended": True}
    assert view.widget().button.disabled
    assert repr(view).startswith("train: SUCCEEDED")
    assert bundle["text/plain"] == f"{view!r}\nloss <0.5>"
    view._thread.join(TIMEOUT_S)
    assert not view._thread.is_alive()


def test_the_stop_button_stops(notebook: Notebook, fake: RunningFake) -> None:
    view: JobView = notebook.run('%%pai submit\n{"jobName": "train"}')
    view.widget().button.click()
    assert view.wait(TIMEOUT_S)["state"] == "STOPPED"


def test_waiting_prints_states_and_log_and_fails_the_cell_with_the_job(notebook: Notebook, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    fake.write_log(uid, "日志\n".encode())
    exit_ = {"status": 3, "message": "the command failed", "role": "main", "index": 0}
    fake.advance(uid, "FAILED", exit=exit_)
    notebook.run("%pai status train --watch")
    assert isinstance(notebook.error, JobFailed)
    assert "Traceback" not in notebook.text
    assert "train failed in main-0 with exit status 3: the command failed" in notebook.text
    notebook.run("%pai logs train -f")
    assert notebook.text == "日志\n"
    notebook.run("%pai logs train")
    assert notebook.text == "日志\n"


def test_submitting_and_waiting_in_one(notebook: Notebook, fake: RunningFake) -> None:
    async def finish() -> None:
        async with fake.backend.changed:
            await fake.backend.changed.wait_for(lambda: fake.backend.jobs)
        uid = next(iter(fake.backend.jobs))
        await fake.backend.advance(uid, "RUNNING")
        await fake.backend.write_log(uid, b"hello\n")
        await fake.backend.advance(uid, "SUCCEEDED")

    finishing = fake.thread.start(finish())
    view = notebook.run('%%pai submit --wait\n{"jobName": "train"}')
    finishing.result(TIMEOUT_S)
    assert notebook.error is None
    assert view.job["state"] == "SUCCEEDED"
    assert "hello\n" in notebook.text
    # The view is not shown a second time; the empty prompt is IPython's.
    assert notebook.text.removesuffix("Out[0]: ").endswith("train: SUCCEEDED\n")


def test_interrupting_leaves_the_job_running_and_says_so(
    notebook: Notebook, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = fake.add_job("train")
    say = cell._say

    def say_and_interrupt(text: str) -> None:
        """The signal comes while the magic waits, not before or after: elsewhere it would end the test run."""
        say(text)
        if "WAITING" in text:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cell, "_say", say_and_interrupt)
    notebook.run("%pai status train --watch")
    assert isinstance(notebook.error, CellFailure)
    assert "the job keeps running" in notebook.text
    assert fake.backend.jobs[uid]["state"] == "WAITING"


def test_a_fault_is_marked_without_a_traceback(notebook: Notebook) -> None:
    notebook.run('%%pai submit\n{\n  "jobName" 5\n}')
    assert isinstance(notebook.error, CellFailure)
    assert "cell:2:13" in notebook.text
    assert '      "jobName" 5\n                ^' in notebook.text
    assert "Traceback" not in notebook.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%pai show nobody", "There is no job nobody."),
        ("%pai fly", "no such verb"),
        ("%pai submit", "Name either a document or a --template."),
        ("%pai submit -", "there is no cell below this line"),
        ('%%pai submit -\n{"jobName": "x"}', "unrecognized arguments: -"),
        ("%pai list --limit $nothing", "there is no variable 'nothing'"),
        ("%pai list --limit many", "invalid int value: 'many'"),
        ("%pai completion bash", "no such verb"),
        ("%pai submit $nothing", "there is no variable 'nothing'"),
        ("%pai submit none.json", "none.json cannot be read: No such file or directory."),
        ("%pai logs x --stream both", "invalid choice"),
        ("%pai keys", "the following arguments are required: ACTION"),
        ("%pai keys fly", "invalid choice: 'fly'"),
        ("%pai keys add none.pub", "none.pub cannot be read"),
        ("%pai share x --with bob --for soon", "not a duration"),
        ("%pai share 'x", "No closing quotation"),
        ("%pai share $nothing --with bob", "there is no variable 'nothing'"),
        ("%%pai list\nx", "use %%pai submit"),
    ],
)
def test_mistakes_are_one_short_message(notebook: Notebook, line: str, message: str) -> None:
    notebook.run(line)
    assert notebook.error is not None
    assert message in notebook.text
    assert "Traceback" not in notebook.text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("%pai", "Submit a job document"),
        ("%pai --help", "%pai VERB --help tells more"),
        ("%pai submit --help", "append a number"),
        ("%pai keys --help", "Register a public key"),
        ("%pai keys add -h", "usage: %pai keys add"),
    ],
)
def test_help_is_shown_and_ends_nothing(notebook: Notebook, line: str, told: str) -> None:
    assert notebook.run(line) is None
    assert notebook.error is None
    assert told in " ".join(notebook.text.split())


def test_any_argument_may_be_a_variable(notebook: Notebook, fake: RunningFake) -> None:
    for name in ("one", "two"):
        fake.add_job(name)
    notebook.run("count, state = 1, 'WAITING'")
    notebook.run("%pai list --limit $count --state=$state")
    assert ("GET", "/api/v2/jobs?state=WAITING&limit=1") in [each[:2] for each in fake.backend.requests]


def test_a_cell_is_validated_without_a_backend(notebook: Notebook, fake: RunningFake) -> None:
    fake.stop()
    notebook.run('%%pai validate\n{\n  "jobName" 5\n}')
    assert isinstance(notebook.error, CellFailure)
    assert "cell:2:12" in notebook.text


def test_jobs_are_shown_stopped_and_opened(notebook: Notebook, fake: RunningFake) -> None:
    view = notebook.run("job = None\n%pai list")
    assert repr(view) == "No jobs."
    notebook.run('%%pai submit\n{"jobName": "train"}')
    assert "train" in repr(notebook.run("%pai list"))
    assert repr(notebook.run("%pai status train")) == "train: WAITING (queued)"
    link = notebook.run("%pai open train")
    assert isinstance(link, ServiceLink)
    assert link.url in link._repr_html_()
    assert link.url == link.path_url, "the own address leads nowhere, as `pai open` finds"
    assert link.path_url.startswith(f"{fake.endpoint.url}/s/")
    assert link.service_url.endswith("--web/")
    assert repr(notebook.run("%pai config train")) == '{"jobName": "train"}\n'
    notebook.run("view = get_ipython().run_line_magic('pai', 'show train')")
    assert notebook.run("print(view.document(), view.state)") is None
    assert notebook.text == '{"jobName": "train"}\n WAITING\n'
    assert repr(notebook.run("%pai stop $view")) == "train: STOPPED"
    assert repr(notebook.run("%pai release $view main-0")).startswith("job train: nothing to release")


def test_ssh_shows_the_command(notebook: Notebook, fake: RunningFake, tmp_path: Path) -> None:
    uid = fake.add_job("train")
    fake.advance(uid, "RUNNING")
    config = tmp_path / "ssh" / "pai" / "test-cluster" / "config"
    assert str(notebook.run("%pai ssh train")) == f"ssh -F {config} {uid}--main-0"


def share(uid: str, job: str, user: str, **terms: object) -> dict[str, object]:
    return {"uid": uid, "job": job, "alias": "its-alias", "user": user, "only": [], "expiresAt": None, **terms}


def test_the_list_says_what_is_shared_with_whom_until_when_and_for_what(notebook: Notebook, fake: RunningFake) -> None:
    uid, other = fake.add_job("train"), fake.add_job("other")
    assert "SHARED" not in repr(notebook.run("%pai list"))
    fake.backend.given = [share(uid, "tester~train", user) for user in ("bob", "carol")]
    ends = {"only": ["sftp", "port:web"], "expiresAt": "2026-11-22T12:00:00Z"}
    fake.backend.shares = [share("j9", "dave~theirs", "tester", **ends)]
    jobs, _, received = repr(notebook.run("%pai list")).partition("\n\n")
    by_name = {line.split()[0]: line for line in jobs.splitlines()}
    assert "SHARED WITH" in by_name["NAME"]
    assert "bob, carol" in by_name["train"]
    assert "bob" not in by_name["other"]
    assert other in by_name["other"]
    head, line = received.splitlines()
    assert head.split() == ["SHARED", "WITH", "YOU", "SSH", "NAME", "BY", "ALLOWED", "UNTIL"]
    assert line.split()[:5] == ["dave~theirs", "its-alias", "dave", "sftp", "port:web"]
    assert line.endswith(clock("2026-11-22T12:00:00Z"))
    assert "dave" not in repr(notebook.run("%pai list --state RUNNING"))
    told = repr(notebook.run("%pai shares"))
    assert "SHARED BY YOU  WITH" in told
    assert told.count("the job's end") == 2


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%pai sha", {"share", "shares"}),
        ("%pai keys ro", {"rotate"}),
        ("%pai keys job x --outp", {"--output"}),
        ("%pai keys job x --format p", {"pem", "ppk", "ppk2"}),
        ("%pai share x --w", {"--with"}),
        ("%pai logs x --stream std", {"stdout", "stderr"}),
        ("%pai cluster p", {"plan"}),
        ("%pai why tr", {"train", "tree"}),
        ("%pai delete ended tr", {"tree"}),
        ("%pai release train m", {"main-0"}),
        ("%pai logs train --role m", {"main"}),
        ("%pai open --index 0 train w", {"web"}),
        ("%pai move train --after tre", {"tree"}),
    ],
)
def test_tab_offers_verbs_options_and_values(
    notebook: Notebook, fake: RunningFake, line: str, offered: set[str]
) -> None:
    fake.advance(fake.add_job("train"), "RUNNING")
    fake.advance(fake.add_job("tree"), "FAILED")
    with provisionalcompleter():  # as a kernel asks
        found = notebook.shell.Completer.completions(line, len(line))
        assert {each.text for each in found} == offered


def test_tab_offers_files_beside_options(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yaml").touch()
    (tmp_path / "jobs").mkdir()
    assert {"train.yaml", "jobs/", "--name"} <= set(completion.words(["submit"]))
    assert completion.words(["submit"], "jobs/")[0].startswith("--")


def test_tab_offers_options_when_the_backend_is_away(notebook: Notebook, fake: RunningFake) -> None:
    fake.stop()
    assert completion.words(["status"]) == ["--watch"]


def test_a_backend_that_is_away_is_one_message(notebook: Notebook, fake: RunningFake) -> None:
    fake.stop()
    notebook.run("%pai list")
    assert "does not answer: Connection refused" in notebook.text
