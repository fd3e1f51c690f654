"""Which Jupyter servers are recognised, and when they are open to strangers.

The real programs run in tests/integration/proxy.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.launch.jupyter import (
    JupyterCommand,
    TokenSource,
    find_jupyter,
    made_token,
    open_listener_warnings,
    upstream_token,
)
from pai_backend.launch.shell_words import MAX_EXPANDED, MAX_TEXT, UNKNOWN, simple_commands
from pai_backend.testing.builders import make_role, make_spec
from tests.support.interpreter_steps import interpreter_steps

SEEDS_COMMAND = (
    r"jupyter notebook --allow-root --no-browser --ip 0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST "
    r"--NotebookApp.token=\"\" --NotebookApp.allow_origin=\"*\" --NotebookApp.base_url=\"/\""
)
PORT_ENV = {"PAI_CONTAINER_HOST_jupyter_PORT_LIST": "15001"}


def words(text: str, **env: str) -> list[tuple[str, ...]]:
    return [command.words for command in simple_commands(text, env)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b; c && d || e | f &", [("a", "b"), ("c",), ("d",), ("e",), ("f",)]),
        ("a 'b  c' \"d $X\" e\\ f", [("a", "b  c", "d 1 2", "e f")]),
        ("a $X ${X}y \"$X\" '$X'", [("a", "1", "2", "1", "2y", "1 2", "$X")]),
        ("a # b\nc#d", [("a",), ("c#d",)]),
        ("a \\\nb", [("a", "b")]),
        ("a > out 2>&1 < in >>log b &>all c", [("a", "b", "c")]),
        ("cat <<EOF\njupyter lab\nEOF\nb", [("cat",), ("b",)]),
        ("X=5 Y=6; a $X$Y", [("a", "56")]),
        ("export X=5 && a $X", [("a", "5")]),
        ("if a; then b; else c; fi; (d)", [("a",), ("b",), ("c",), ("d",)]),
        ("a $(b $(c ')') d) `e` $NONE $? $'x' $", [("a", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, "$")]),
        ("a --x=$(b)y", [("a", f"--x={UNKNOWN}y")]),
        ("a '' \"\"", [("a", "", "")]),
        ("", []),
        ("a\0b", []),
    ],
)
def test_a_shell_text_is_split_as_the_shell_would(text: str, expected: list[tuple[str, ...]]) -> None:
    assert words(text, X="1 2") == expected


def test_assignments_in_front_hold_for_one_command_only() -> None:
    first, second = simple_commands("X=2 a; b", {"X": "1"})
    assert (first.env["X"], second.env["X"]) == ("2", "1")


@given(st.text(alphabet="ab=$(){}'\"\\`#;&|<>\n 1", max_size=60))
def test_any_text_is_read_to_its_end(text: str) -> None:
    for command in simple_commands(text, {"a": "b c"}):
        assert command.words
    find_jupyter(text, {})


def test_what_stands_behind_the_limit_is_not_read() -> None:
    assert words("a " + " " * MAX_TEXT + "b") == [("a",)]


def _filled(piece: str, length: int, head: str = "") -> str:
    return head + piece * (length // len(piece))


DEAR = {
    "one word": lambda n: _filled("x", n),
    "quotes": lambda n: _filled("'a'", n),
    "expansions": lambda n: _filled('"a$b"', n),
    "reserved words": lambda n: _filled("if ", n),
    "assignments": lambda n: _filled("a=1 ", n),
    "prefixes": lambda n: _filled("env ", n),
    "variables and commands": lambda n: "".join(f"a{i}=1\nx\n" for i in range(n // 10)),
    "variables and texts": lambda n: "".join(f"a{i}=1\nbash -c x\n" for i in range(n // 20)),
    "doubling": lambda n: _filled("a=$a$a\n", n, "a=xx\n"),
    "a text in itself": lambda n: _filled('bash -c "$a"\n', n, "a='bash -c \"$a\"'\n"),
    "here-documents": lambda n: _filled("<<a ", n),
    "nested": lambda n: _filled("$(", n),
    "redirections": lambda n: _filled("2>", n),
    "expansions of nothing": lambda n: _filled("$e ", n, "e=\n"),
}


@pytest.mark.parametrize("name", DEAR)
def test_time_grows_as_the_text_does(name: str) -> None:
    """``pai validate`` looks at every command, and the service proxy at those whose services it is asked for."""
    less, more = (interpreter_steps(lambda n=n: find_jupyter(DEAR[name](n), {})) for n in (4_000, 16_000))  # type: ignore[misc]
    assert more < 6 * less + 1_000


def test_variables_add_a_bounded_amount() -> None:
    text = "a=xxxxxxxx\n" + "a=$a$a\n" * 60 + "b $a"
    (found,) = words(text)
    assert sum(map(len, found)) < 2 * MAX_EXPANDED
    assert find_jupyter('a=\'bash -c "$a"\'; bash -c "$a"', {}) is None


def test_a_port_of_thousands_of_digits_is_none() -> None:
    for port in ("9" * 5_000, "²"):
        found = find_jupyter(f"jupyter lab --port {port}", {})
        assert found is not None
        assert found.port is None


def test_the_documents_classic_command_has_a_token_of_two_quote_characters() -> None:
    assert find_jupyter(SEEDS_COMMAND, PORT_ENV) == JupyterCommand(
        ip="0.0.0.0", port=15001, token='""', token_source=TokenSource.COMMAND, base_url="/", password=False
    )


@pytest.mark.parametrize(
    "command",
    [
        "jupyter lab",
        "jupyter server",
        "jupyter nbclassic",
        "jupyter-notebook --no-browser",
        "/opt/conda/bin/jupyter-lab",
        "python -m jupyterlab",
        "python3.11 -u -m notebook",
        "python3 -m jupyter lab",
        "python -m jupyter_server",
        "cd work && exec jupyter lab > log 2>&1",
        "pip install x; A=b nohup jupyter lab &",
        "env A=b jupyter lab",
        "bash -lc 'cd x; jupyter lab'",
        "if true; then jupyter lab; fi",
    ],
)
def test_a_jupyter_server_is_found(command: str) -> None:
    found = find_jupyter(command, {})
    assert found is not None
    assert (found.ip, found.port, found.token_source, found.base_url) == ("localhost", None, TokenSource.NONE, "/")


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "",
        "echo jupyter lab",
        "pip install jupyter notebook",
        "jupyter nbconvert x.ipynb",
        "jupyter",
        "jupyter lab build",
        "jupyter server list",
        "jupyter lab --version",
        "python train.py -m notebook",
        "python -c 'jupyter lab'",
        "cat <<E\njupyter lab\nE",
        "echo 'jupyter lab'",
    ],
)
def test_other_commands_are_no_server(command: str) -> None:
    assert find_jupyter(command, {}) is None


@pytest.mark.parametrize(
    ("options", "env", "token", "source"),
    [
        ("", {}, None, TokenSource.NONE),
        ("", {"JUPYTER_TOKEN": "t"}, "t", TokenSource.ENVIRONMENT),
        ("", {"JUPYTER_TOKEN_FILE": "/f"}, None, TokenSource.UNKNOWN),
        ("--ServerApp.token=abc", {"JUPYTER_TOKEN": "t"}, "abc", TokenSource.COMMAND),
        ("--ServerApp.token abc", {}, "abc", TokenSource.COMMAND),
        ("--IdentityProvider.token='x y'", {}, "x y", TokenSource.COMMAND),
        ("--LabApp.token=$T", {"T": "v"}, "v", TokenSource.COMMAND),
        ("--LabApp.token=$T", {}, None, TokenSource.UNKNOWN),
        ("--NotebookApp.token=$(cat token)", {}, None, TokenSource.UNKNOWN),
        ("--NotebookApp.token=", {}, "", TokenSource.COMMAND),
        ("--NotebookApp.token=''", {}, "", TokenSource.COMMAND),
        (r"--NotebookApp.token=\'\'", {}, "", TokenSource.COMMAND),
        (r"--NotebookApp.token=\"abc\"", {}, "abc", TokenSource.COMMAND),
        ("--token=abc", {}, None, TokenSource.NONE),
        ("--Other.token=abc", {}, None, TokenSource.NONE),
        ("--ServerApp.token --no-browser", {}, None, TokenSource.NONE),
    ],
)
def test_the_token_is_what_the_program_will_use(
    options: str, env: dict[str, str], token: str | None, source: TokenSource
) -> None:
    found = find_jupyter(f"jupyter lab {options}", env)
    assert found is not None
    assert (found.token, found.token_source) == (token, source)


@pytest.mark.parametrize("command", ["JUPYTER_TOKEN=t jupyter lab", "env JUPYTER_TOKEN=t jupyter lab"])
def test_a_token_variable_in_front_of_the_command_counts(command: str) -> None:
    found = find_jupyter(command, {"JUPYTER_TOKEN": "other"})
    assert found is not None
    assert found.token == "t"


def test_a_found_server_does_not_print_its_token() -> None:
    assert "hush" not in repr(find_jupyter("jupyter lab --ServerApp.token=hush", {}))


def test_the_made_token_is_one_per_job_and_key() -> None:
    assert made_token("k", "j1") == made_token("k", "j1")
    assert len({made_token("k", "j1"), made_token("k", "j2"), made_token("l", "j1")}) == 3
    assert int(made_token("k", "j1"), 16) >= 0
    assert len(made_token("k", "j1")) == 64


@pytest.mark.parametrize(
    ("command", "env", "label", "token"),
    [
        ("jupyter lab", {}, "web", "made"),
        ("jupyter lab --port=15000", {}, "web", "made"),
        ("jupyter lab --port=15009", {}, "web", None),
        ("jupyter lab", {"JUPYTER_TOKEN": "mine"}, "web", "mine"),
        ("jupyter lab --ServerApp.token=abc", {}, "web", "abc"),
        ("jupyter lab --ServerApp.token=", {}, "web", None),
        ("jupyter lab --ServerApp.token=$(x)", {}, "web", None),
        ("./start.sh", {}, "jupyter", "made"),
        ("./start.sh", {}, "my-lab", "made"),
        ("./start.sh", {"JUPYTER_TOKEN": "mine"}, "notebook", "mine"),
        ("./start.sh", {}, "tensorboard", None),
        ("./start.sh", {}, "label", None),
    ],
)
def test_what_is_presented_to_a_port(command: str, env: dict[str, str], label: str, token: str | None) -> None:
    assert upstream_token(command, env, label=label, port=15000, made="made") == token


@pytest.mark.parametrize(
    "command",
    [
        SEEDS_COMMAND,
        "jupyter lab --ip=0.0.0.0 --ServerApp.token=",
        "jupyter lab --ip='*' --ServerApp.token=''",
        "jupyter lab --ip=:: --ServerApp.token=",
        "jupyter lab --ip=10.1.2.3 --ServerApp.token=",
        "jupyter lab --ServerApp.ip=0.0.0.0 --IdentityProvider.token=",
    ],
)
def test_an_open_jupyter_is_flagged_at_its_command(command: str) -> None:
    spec = make_spec(roles=[make_role("ps"), make_role("worker", command=command)])
    (warning,) = open_listener_warnings(spec)
    assert (warning.code, warning.path) == ("open-jupyter", "$.taskRoles[1].command")
    assert "--ip" in warning.hint
    assert "token" in warning.hint


@pytest.mark.parametrize(
    "command",
    [
        "jupyter lab",
        "jupyter lab --ip 0.0.0.0",
        "jupyter lab --ip 0.0.0.0 --ServerApp.token=secret",
        "jupyter lab --ip 0.0.0.0 --ServerApp.token=$(pwgen)",
        "jupyter lab --ip 0.0.0.0 --ServerApp.token= --PasswordIdentityProvider.hashed_password=argon2:x",
        "jupyter lab --ip 127.0.0.1 --ServerApp.token=",
        "jupyter lab --ip localhost --ServerApp.token=",
        "jupyter lab --ServerApp.token=",
    ],
)
def test_a_closed_jupyter_is_not_flagged(command: str) -> None:
    assert open_listener_warnings(make_spec(roles=[make_role(command=command)])) == ()
