"""What becomes of the text of a command: one parse by bash, and the options of the document's protocol."""

from __future__ import annotations

import json

from tests.conformance.engines.documents import commands, submitted, v1, v1_role
from tests.conformance.engines.room import Job

LARGE = 100_000
WORDS = """printf '[%s]' "a b" 'c "d"' \\$HOME "it's" e\\ f ""; echo"""


@submitted(commands("one=1", "if test $one = 1", "then", "  echo first", "fi", "echo second", "echo $((one + 1))"))
def test_lines_of_a_v2_document_are_one_script(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == "first\nsecond\n2\n"


@submitted(commands("echo before", "false", "echo after"))
def test_a_v2_script_ends_at_the_first_line_that_fails(job: Job) -> None:
    assert job.ended("FAILED")["exitStatus"] == 1
    assert job.log() == "before\n"


@submitted(commands("echo $NOT_SET_ANYWHERE"))
def test_a_v2_script_may_not_use_what_is_not_set(job: Job) -> None:
    job.ended("FAILED")
    assert "NOT_SET_ANYWHERE" in job.log(stream="all")


@submitted(commands("(exit 7) | cat"))
def test_a_v2_script_counts_a_failure_within_a_pipe(job: Job) -> None:
    assert job.ended("FAILED")["exitStatus"] == 7


@submitted(v1(v1_role("false\necho after $NOT_SET; (exit 7) | cat")))
def test_a_v1_command_goes_on_after_a_failure(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == "after\n"


@submitted(v1(v1_role(WORDS)))
def test_quotes_mean_what_they_mean_to_bash(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == """[a b][c "d"][$HOME][it's][e f][]\n"""


@submitted(v1(v1_role("""printf '[%s]' --token=\\"\\" --origin=\\"*\\"; echo""")))
def test_quotes_that_scm_escapes_twice_reach_the_program(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == '[--token=""][--origin="*"]\n'


@submitted(commands("cat <<'END'", "as it is: $HOME `no` \\", "END", "cat <<END", "filled: $((6 * 7))", "END"))
def test_here_documents(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == "as it is: $HOME `no` \\\nfilled: 42\n"


@submitted(commands("echo grüße 数据 🎉", "python3 -c 'print(\"é\" * 3)'"))
def test_text_beyond_ascii_is_written_as_it_is(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == "grüße 数据 🎉\nééé\n"


@submitted(commands(f"text={'x' * LARGE}", "echo ${#text}"))
def test_a_command_of_100_kb(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log() == f"{LARGE}\n"


@submitted(commands("shopt -s extglob", "case abc in @(abc|d)) echo bash;; esac", "echo ${BASH_VERSION%%.*}"))
def test_the_shell_is_bash(job: Job) -> None:
    job.ended("SUCCEEDED")
    name, version = job.log().split()
    assert (name, int(version) >= 4) == ("bash", True)


@submitted(
    commands(
        "echo '<% $parameters.rate %> <% $parameters.list %>'",
        "test '<% $secrets.word %>' = '&<>\"' && echo the secret <% $secrets.word2 %>",
        parameters={"rate": 0.1, "list": ["a", "b"]},
        secrets={"word": '&<>"', "word2": "hunter2-never-shown"},
    )
)
def test_tags_are_filled_and_secrets_hidden(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert job.log().splitlines()[0] == "0.1 a,b"
    assert "hunter2-never-shown" not in job.log() + json.dumps(job.events())
