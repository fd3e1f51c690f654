"""The man page pai(1), made from the table of verbs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jupyter_pai.commands import VERBS
from jupyter_pai.verbs import Argument, Verb

EXIT_CODES = {
    0: "Done; with `--wait`, the job succeeded.",
    1: "The job failed.",
    2: "Wrong usage, an invalid document, or something that does not exist.",
    3: "The backend is away.",
    130: "Ended with Ctrl-C; the job goes on.",
}

SPECIAL_EXIT_CODES = """\
`pai ssh` ends with the exit code of `ssh`, which is that of the remote command. `pai cluster plan` ends with 0 when
no job is affected, 1 when the configuration is invalid, and 2 when jobs are affected; with two
files 2 says that virtual clusters or nodes differ. 3 stays what it is."""

PLACES = {
    ("PAI_CONTEXT",): "A context, as `pai context list` shows them; `--context NAME` says it for one command.",
    ("PAI_URL",): "Address of a backend elsewhere.",
    ("PAI_TOKEN", "PAI_TOKEN_FILE"): "The token for `PAI_URL`, or the file that holds it.",
    ("PAI_TOKEN_SOURCE",): "`jupyterhub`: the token for `PAI_URL` is the one that a JupyterHub gave this server.",
    ("client.toml",): (
        "The same for good: `context`, or `url` and `token` or `token_file`; in the configuration directory, as is "
        "`contexts/NAME.toml` of each context."
    ),
    ("PAI_DATA_DIR",): "Directory of the private backend; beats `client.toml`.",
    ("PAI_BACKEND_CONFIG",): ("Configuration file of the private backend, else `backend.yaml` beside `client.toml`."),
    ("PAI_SSH_DIR",): "Where SSH files are written, instead of `~/.ssh`.",
    ("PAI_SSH_CERTIFICATE",): "`no`: `pai ssh` registers your key, and fetches no certificates.",
    ("PAI_LANG",): (
        "`zh_CN` or `en`: the language of what `pai` and `%pai` say, else that of `LC_ALL`, `LC_MESSAGES` or `LANG`; "
        "in notebooks JupyterLab's comes before these. `--json` is English in each."
    ),
}
"""What says which backend and language is meant: variables and a file."""


def words(verb: Verb) -> str:
    """The words that a verb takes, as a usage line has them."""
    forms = {None: "{}", "?": "[{}]", "*": "[{}…]", "+": "{}…"}
    given = [each for each in verb.arguments if not each.is_option]
    return " ".join([verb.name, *(forms[each.options.get("nargs")].format(each.metavar) for each in given)])


def name(argument: Argument) -> str:
    """An argument as a list of arguments has it: its names, and what stands for its value."""
    if not argument.is_option:
        return argument.metavar
    names = ", ".join(argument.names)
    if "BooleanOptionalAction" in str(argument.options.get("action")):
        names += f", --no-{argument.names[-1].removeprefix('--')}"
    return f"{names} {argument.metavar}" if argument.takes_value else names


def sentence(verb: Verb) -> str:
    """What a verb does."""
    return f"{verb.summary}. {verb.details}".rstrip()


def page() -> str:
    """The page in the man macros of troff."""
    lines = [
        '.TH PAI 1 "" "jupyter\\-pai" "User Commands"',
        ".SH NAME",
        r"pai \- submit OpenPAI job documents and reach their tasks",
        ".SH SYNOPSIS",
        r".B pai\fR \fIVERB\fR [\fIARGUMENT\fR ...] [\fB\-\-json\fR]",
        ".SH DESCRIPTION",
        _text("A job is named by its name, its alias or its uid. With `--json` JSON is on stdout, and nothing else."),
        ".SH VERBS",
    ]
    for verb in VERBS.values():
        lines += [f'.SS "pai {_text(words(verb))}"', _text(sentence(verb)), *_listed(verb.arguments)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _text(meaning)]
    lines += [".PP", _text(SPECIAL_EXIT_CODES), ".SH ENVIRONMENT"]
    for names, meaning in PLACES.items():
        lines += [".TP", f".B {_text(', '.join(names))}", _text(meaning)]
    return "\n".join(lines) + "\n"


def _listed(arguments: tuple[Argument, ...]) -> Iterator[str]:
    for argument in arguments:
        yield from (".TP", f'.B "{_text(name(argument))}"', _text(argument.help))


def _text(text: str) -> str:
    """Text as troff takes it: code in bold, and nothing that is a request, an escape or a typographic dash."""
    escaped = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq").replace("…", "...")
    marked = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", escaped)
    return rf"\&{marked}" if marked.startswith((".", "'")) else marked
