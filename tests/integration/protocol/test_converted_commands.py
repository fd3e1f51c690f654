"""What conversions write before and into commands, run by a real bash: it must do what the original did."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from pai_backend.model import tags
from pai_backend.protocol import read_document
from pai_backend.protocol.convert import Converted, to_v1, to_v2
from pai_backend.protocol.convert.qizhi import rewritten
from pai_backend.protocol.mask import masked

NASTY = {
    "PLAIN": "abc",
    "EMPTY": "",
    "SPACES": "  a  b ",
    "QUOTES": 'it\'s "here"',
    "DOLLARS": "$HOME `id` $(id) \\n",
    "LINES": "a\nb\n",
    "TAG": "<% $secrets.x %> <%",
    "UNICODE": "训练 😀",
    "NUMBER": 1.5,
    "NOTHING": None,
    "WHOLE": {"a": [1, True, "x'y"]},
    "DB_PASSWORD": "hunter2'\"$&<>",
    "API_KEYS": {"a": ["hunter2's", 1]},
    "KEYS_TO_USE": [1, None],
    "SHORT_KEY": "a'b",
    "TOKENIZERS": "100000",
    "isDebug": True,
}


def bash(script: str, **variables: str) -> str:
    """What ``script`` prints in a bash with these variables, in the mode of v2; raises when it fails."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | variables
    command = ["bash", "--noprofile", "--norc", "-o", "errexit", "-o", "nounset", "-o", "pipefail", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)
    return done.stdout.decode()


def converted(command: str, **job: Any) -> Converted:
    role = {"name": "r", "command": command, "portList": [{"label": "tb"}]}
    return to_v2(read_document(json.dumps({"jobName": "j", "image": "i", "taskRoles": [role]} | job)))


def ready_to_run(result: Converted) -> str:
    """The command as a task's plan has it, with its secrets filled in."""
    document = read_document(result.text)
    return tags.fill(document.spec.task_roles[0].command, "secrets", document.secrets)


@pytest.mark.parametrize("name", NASTY)
def test_a_variable_arrives_as_v1_gives_it(name: str) -> None:
    value = NASTY[name]
    expected = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    script = ready_to_run(converted(f'printf "[%s]" "${name}"; env -0 | grep -zc "^{name}="', jobEnvs={name: value}))
    assert bash(script) == f"[{expected}]1\n"


def test_a_password_is_written_as_a_secret() -> None:
    result = converted("x", jobEnvs=NASTY)
    assert read_document(result.text).spec.secret_names == ("DB_PASSWORD", "API_KEYS")
    assert b"hunter2" not in masked(result.text.encode())
    assert [loss.message for loss in result.lost if loss.path == "$.jobEnvs"] == [
        "moved into secrets, by their names: DB_PASSWORD, API_KEYS",
        "numbers and short texts stay in the command: KEYS_TO_USE, SHORT_KEY, TOKENIZERS",
    ]


@pytest.mark.parametrize(("given", "seen"), [({}, "mine"), ({"PAI_JOB_NAME": "platform"}, "platform")])
def test_a_variable_of_the_platform_keeps_the_platforms_value(given: dict[str, str], seen: str) -> None:
    result = converted('printf %s "$PAI_JOB_NAME"', jobEnvs={"PAI_JOB_NAME": "mine"})
    assert bash(ready_to_run(result), **given) == seen


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("false; echo on", "on\n"),
        ('echo "[$NOBODY]"', "[]\n"),
        ("false | true; echo $?", "0\n"),
        ("cat <<E\n$((1 + 1))\nE\n", "2\n"),
        ("(exit 3) || echo $?", "3\n"),
    ],
)
def test_a_v1_command_runs_in_the_mode_of_v1(command: str, printed: str) -> None:
    assert bash(ready_to_run(converted(command))) == printed


def test_a_v1_command_ends_with_its_own_status() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        bash(ready_to_run(converted("true; (exit 7)")))
    assert caught.value.returncode == 7


def test_directories_are_set_where_the_platform_does_not() -> None:
    result = converted(
        'printf "%s|" "$PAI_DATA_DIR" "$PAI_OUTPUT_DIR" "$PAI_CODE_DIR"',
        dataDir="$QIZHI_DEFAULT_FS_URI/it's $HOME/$PAI_JOB_NAME",
        outputDir="/out",
    )
    given = {"PAI_DEFAULT_FS_URI": "hdfs://h", "PAI_JOB_NAME": "j", "PAI_OUTPUT_DIR": "/set", "PAI_CODE_DIR": ""}
    assert bash(ready_to_run(result), **given) == "hdfs://h/it's $HOME/j|/set||"


def test_a_v2_command_keeps_its_mode_in_v1() -> None:
    text = "protocolVersion: 2\nname: j\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: x}]\n" + (
        "taskRoles: {r: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}, commands: [COMMAND]}}"
    )
    for command in ("'false; echo on'", "'echo $NOBODY'", "'false | true'"):
        script = read_document(to_v1(read_document(text.replace("COMMAND", command))).text).spec.task_roles[0].command
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (1, b"")


QIZHI = {"QIZHI_A": "a  b", "QIZHI_INDEX": "2", "QIZHI_CONTAINER_HOST__tb_PORT_LIST": "6006", "QIZHI_LIST": "x,y"}
PAI = {"PAI_A": "a  b", "PAI_INDEX": "2", "PAI_CONTAINER_HOST_tb_PORT_LIST": "6006", "PAI_LIST": "x,y"}
SNIPPETS = [
    'echo $QIZHI_A "$QIZHI_A" ${QIZHI_A} "${QIZHI_A:-none}" ${#QIZHI_A}',
    "echo '$QIZHI_A' \\$QIZHI_A \"\\$QIZHI_A\"",
    "bash -c 'echo $QIZHI_A ${QIZHI_LIST%,*}'",
    "bash -c \"echo '$QIZHI_A' \\$QIZHI_LIST\"",
    "printenv QIZHI_A",
    "env | grep -c ^QIZHI_INDEX=",
    'echo $(echo "$(echo "$QIZHI_A")") `echo $QIZHI_LIST`',
    "echo $((QIZHI_INDEX + $QIZHI_INDEX))",
    "cat <<E\n$QIZHI_A '$QIZHI_LIST' \\$QIZHI_A\nE\necho $QIZHI_A",
    "cat <<'E'\n$QIZHI_A\nE\necho $QIZHI_A",
    "cat <<-E\n\t$QIZHI_A\n\tE\necho '$QIZHI_A'",
    "cat <<< \"$QIZHI_A\" '' 2>/dev/null || cat <<< $QIZHI_A",
    "# don't $QIZHI_A\necho $QIZHI_A # it's\necho '$QIZHI_A'",
    "echo a#b $QIZHI_A \"it's $QIZHI_A\" $'it\\'s $QIZHI_A'",
    "case x in x) echo '$QIZHI_A';; esac; echo $QIZHI_A",
    "for i in ${QIZHI_LIST//,/ }; do echo $i-$QIZHI_INDEX; done",
    "echo port $QIZHI_CONTAINER_HOST__tb_PORT_LIST",
    "QIZHI_OWN=1; echo $QIZHI_OWN $QIZHI_A",
    "export QIZHI_A=mine; bash -c 'echo $QIZHI_A'",
    "n=QIZHI_A; echo ${!n}",
    "python3 -c \"import os; print(os.environ['QIZHI_A'])\"",
    "if [ -n \"$QIZHI_A\" ]; then echo 'yes $QIZHI_A'; fi",
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_rewritten_command_prints_the_same_with_openpais_variables(snippet: str) -> None:
    mode = "set +o errexit +o nounset +o pipefail\n"
    assert bash(mode + rewritten(snippet, ["tb"]).command, **PAI) == bash(mode + snippet, **QIZHI)
