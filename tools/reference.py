"""Write docs/{cli,errors,exits}.md and docs/pai.1 from the code they describe; ``--check`` fails when one is stale."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from jupyter_pai.commands import VERBS
from jupyter_pai.errors import EXIT_CODES
from jupyter_pai.extension import PaiExtension
from jupyter_pai.verbs import Verb
from pai_backend.api.errors import STATUS
from pai_backend.lifecycle.exits import BY_SIGNAL, FAILED, RULES, ExitClass, Rule
from pai_backend.lifecycle.retry import (
    AT_ONCE,
    FIRST_CONFLICT_PAUSE,
    FIRST_PAUSE,
    LONG_RUN,
    LONGEST_CONFLICT_PAUSE,
    LONGEST_PAUSE,
)
from pai_backend.model.errors import PaiError
from tools import manual

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by `tools/reference.py`; a test holds it current. -->"

EXIT_CODE_ROWS = "\n".join(f"| {code} | {meaning} |" for code, meaning in manual.EXIT_CODES.items())
PLACES = "\n".join(
    f"| {', '.join(f'`{name}`' for name in names)} | {meaning} |" for names, meaning in manual.PLACES.items()
)

CLI_HEAD = f"""# Command line and magics

{MADE}

`pai VERB …` in a shell and `%pai VERB …` in a notebook (after `%load_ext jupyter_pai`) take the same verbs. A job is
named by its name, its alias or its uid. In a shell each verb also takes `--json`: then JSON is on stdout, and nothing
else. `pai VERB --help` and `man pai` tell what is below.

## In a notebook

- `%pai` lists the verbs, and `%pai VERB --help` tells more of one;
- `$name` stands for the value of a variable: a job, its name, a file, or a document as path, text or dict;
- `%%pai submit` takes the cell below it as the document; so does each verb with a document, whose word for it is `-`;
- a failure ends the cell, and `%pai submit --wait` fails with the job;
- `%pai show` and `%pai submit` give a live view, `%pai open` a link, and `%pai ssh` the command that logs in;
- in JupyterLab and Notebook 7 a view has the panel's buttons and goes on without its kernel, also in a notebook that is
  opened again; elsewhere it is HTML or text that the kernel renews. `view.widget()` gives it as widgets of ipywidgets;
- what asks before it does something in a shell wants `--yes`.

## Tab

Tab completes verbs, options and values, names of jobs, tasks and services among them. Notebooks have it at once; for a
shell put one of these into its start file:

| shell | file | line |
|---|---|---|
| bash | `~/.bashrc` | `eval "$(pai completion bash)"` |
| zsh | `~/.zshrc`, behind `compinit` | `eval "$(pai completion zsh)"` |
| fish | `~/.config/fish/config.fish` | <code>pai completion fish &#124; source</code> |

## Exit codes of `pai`

| code | meaning |
|---|---|
{EXIT_CODE_ROWS}

{manual.SPECIAL_EXIT_CODES}

## Which backend

The first of these that is there: the variables, the file, the private backend of this user.

| place | meaning |
|---|---|
{PLACES}

In a Jupyter server's configuration the same is said by these, and it is passed on to kernels and terminals:

| trait | meaning |
|---|---|
"""

ERRORS_HEAD = f"""# Errors

{MADE}

Every failure has one of these codes, for ever: in the REST answer's `code`, in `--json` output, in the panel. The
body is described in [rest.md](rest.md). `errors` lists every fault of a document with its line and column.

| code | HTTP status | exit code of `pai` | when |
|---|---|---|---|
"""

LANGUAGES = """
## Other languages

`message` and `hint` are English. Beside them, in the body, in each of `errors` and in each warning of a document, stand
`wording` and `hintWording`, from which a client makes the text in its reader's language:

```json
{
  "message": "taskNumber must be a whole number, not a list",
  "wording": {
    "template": "{name} must be {kind}, not {given}",
    "arguments": {
      "name": "taskNumber",
      "kind": {"template": "a whole number", "arguments": {}},
      "given": {"template": "a list", "arguments": {}}
    }
  }
}
```

1. Look `template` up in your catalogue. Ours is `jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json`.
2. Replace each `{name}` by the argument of that name: a text as it is, an object after the same two steps. Other braces
   are text.
3. Where the template is unknown, or `wording` is null because another program wrote the text, show `message`.

The panel, `pai` and `%pai` do this in Chinese. `--json` keeps the English text and has the wordings.
"""

WARNINGS_HEAD = """
## Warnings

A document with warnings is accepted; they are shown with the job, each with its remedy.

| code | when |
|---|---|
"""

EXITS_HEAD = f"""# Exits

{MADE}

Whatever ends a task, its user reads one sentence, the raw fact beside it, and what can be done. The first row that
matches counts. What the engine knows comes first (a *reason*); only when the command ended by itself does its exit
status say something, and only what is certain is said: a KILL that the platform did not send may have many senders.
A signal counts as the status 128 and its number, which is also how shells report it; numbers are Linux's.
[debugging.md](debugging.md) tells how retries and debugging go together.

- **Who** is whom a retry is counted under, as in OpenPAI's `retryDetails`.
- **Kind** decides about running it again: *transient* always, free; *transient-conflict* always, free, after a longer
  pause; *permanent* never; *unknown* as often as `retryCount` allows (`taskRetryCount` in a job with `gangAllocation:
  false`). A count of -1 has no limit, and -2 runs everything again, even a success.
- A task that something took away (`lost`, `vanished`) while its machine went on may have done so itself, such as by
  `kill -9` of the process that keeps it on the local engine: then its kind is *unknown*, and a retry is charged.
- **Pauses** double from one retry to the next: none after preemption and for the first {AT_ONCE} charged retries or
  refusals by nodes; then, and after lost tasks, {FIRST_PAUSE.seconds} s to {LONGEST_PAUSE.seconds} s; after conflicts
  {FIRST_CONFLICT_PAUSE.seconds} s to {LONGEST_CONFLICT_PAUSE.seconds} s. They start over
  after a run of {LONG_RUN.seconds // 60} minutes.

| exit | class | what it means | what to do | who | kind | OpenPAI |
|---|---|---|---|---|---|---|
"""

WARNINGS = {
    "barrier-without-gang": "Tasks that start one by one do not wait for each other at the SSH barrier.",
    "barrier-without-jobssh": "The SSH barrier is asked for without `jobssh`; it is left out.",
    "draft-name": "A field of an early draft of v2 has another name now; it is followed.",
    "draft-null": "In an early draft of v2 null switches a rule off; v2 writes -1.",
    "draft-port": "In an early draft of v2 a port count of 0 asks for one port.",
    "empty-plugin": "A runtime plugin has none of the parameters that it needs; it is left out.",
    "first-role-ends-job": "The first role to finish completely ends the job, and the other roles are stopped.",
    "first-task-ends-job": "The first instance to succeed ends the job, and the others are stopped.",
    "flag-as-text": "A yes or no is written as text.",
    "gang-release-unused": "`gangReleaseEnable` is set; it is ignored.",
    "literal-password": "A registry's password stands in `auth` itself; it is kept as a secret.",
    "long-command": "A command is longer than Linux lets one argument be.",
    "long-variable": "A variable of `jobEnvs` is longer than Linux lets one variable be.",
    "lower-case-hivedscheduler": "`extras.hivedscheduler`, the seed's spelling, is read as `hivedScheduler`.",
    "kubernetes-unused": "The document chooses settings of pods, and the tasks of this backend are not pods.",
    "missing-field": "A field that has a default is missing; the default is used.",
    "more-warnings": "There are more warnings than are listed.",
    "no-default-storage": "An empty `storages` asks for default storages, and there are none.",
    "notification-unused": "`jobStatusChangeNotification` is set, and its user has no notification (`pai notify`).",
    "number-as-text": "A number is written as text.",
    "obsolete-field": "An obsolete field is set; it is still followed.",
    "open-jupyter": "A Jupyter server listens beyond the machine and lets everyone in.",
    "other-documents": "The text holds other YAML documents beside the job; they are left out.",
    "reserved-variable": "A variable of `jobEnvs` has a name of the platform's.",
    "shm-over-memory": "`shmMB` is more than `memoryMB`.",
    "task-retry-unused": "`taskRetryCount` is set, and is followed only without gang allocation.",
    "trailing-comma": "A comma stands after the last member of an object or list.",
    "unknown-field": "A field is unknown; it is ignored. In an SCM document it is kept.",
    "unknown-plugin": "A runtime plugin that is not known here, and may be left out, is left out.",
    "unreachable-count": "A completion counter is more than the role's instances: its rule never applies.",
    "unreachable-variable": "No shell can read a variable of that name.",
    "v1-name": "A completion counter has its name of v1.",
}
"""What each code that reading a document can warn with means; a test finds all codes in the code."""


def _section(verb: Verb) -> Iterator[str]:
    """A heading, what the verb does, and a table of its arguments."""
    yield from ["", f"### `pai {manual.words(verb)}`", "", manual.sentence(verb)]
    if verb.shell_only:
        yield from ["", "Not in a notebook."]
    if verb.arguments:
        yield from ["", "| argument | meaning |", "|---|---|"]
    for argument in verb.arguments:
        name = manual.name(argument).replace("|", chr(92) + "|")
        yield f"| `{name}` | {argument.help} |"


def cli_page() -> str:
    """All of ``pai`` and ``%pai``, and the extension's traits."""
    traits = sorted(PaiExtension.class_own_traits(config=True).items())
    lines = [f"| `PaiExtension.{name}` | {trait.help} |" for name, trait in traits]
    lines += ["", "## Verbs", *(line for verb in VERBS.values() for line in _section(verb))]
    return CLI_HEAD + "\n".join(lines) + "\n"


def errors() -> list[type[PaiError]]:
    """The errors of the model and of the API, in the order of the table of statuses."""
    found: dict[str, type[PaiError]] = {"UnknownError": PaiError}
    found.update({kind.code: kind for kind in PaiError.__subclasses__()})
    return [found[code] for code in STATUS]


def errors_page() -> str:
    """The table of error codes, and the codes of warnings."""
    rows = []
    for kind in errors():
        when = (inspect.getdoc(kind) or "").splitlines()[0].replace("``", "`")
        if kind is PaiError:
            when = "An internal error; the backend's log has the request id."
        rows.append(f"| `{kind.code}` | {STATUS[kind.code]} | {EXIT_CODES.get(kind.code, 2)} | {when} |")
    warnings = [f"| `{code}` | {when} |" for code, when in sorted(WARNINGS.items())]
    return ERRORS_HEAD + "\n".join(rows) + "\n" + LANGUAGES + WARNINGS_HEAD + "\n".join(warnings) + "\n"


def exits_page() -> str:
    """The table of exit classes."""
    rows = [_exit_row(_when(rule), rule.of) for rule in RULES]
    rows += [_exit_row("any other signal", BY_SIGNAL), _exit_row("any other status", FAILED)]
    return EXITS_HEAD + "\n".join(rows) + "\n"


def _when(rule: Rule) -> str:
    return f"reason `{rule.reason}`" if rule.reason else "status " + ", ".join(str(status) for status in rule.statuses)


def _exit_row(when: str, of: ExitClass) -> str:
    meaning = of.explanation.format(signal="N")
    number = "" if of.openpai is None else str(of.openpai)
    who = "as the engine says" if any(rule.of is of and rule.causer_as_engine_says for rule in RULES) else of.causer
    return f"| {when} | {of.phrase} | {meaning} | {of.remedy} | {who} | {of.kind} | {number} |"


PAGES: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
    "docs/errors.md": errors_page,
    "docs/exits.md": exits_page,
    "docs/pai.1": manual.page,
}


def main() -> int:
    """Write the pages, or compare with ``--check``."""
    stale = [name for name, page in PAGES.items() if not _same(ROOT / name, page())]
    if "--check" not in sys.argv:
        for name in stale:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
            print(f"wrote {name}")
        return 0
    for name in stale:
        print(f"{name} is stale; run .venv/bin/python tools/reference.py", file=sys.stderr)
    return 1 if stale else 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    raise SystemExit(main())
