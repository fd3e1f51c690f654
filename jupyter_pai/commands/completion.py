"""``completion``: Tab behind ``pai`` in a shell."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.output import Output
from jupyter_pai.errors import OK
from jupyter_pai.verbs import argument, verb


@verb(
    "completion",
    argument("shell", choices=("bash", "zsh", "fish"), help="the shell"),
    shell_only=True,
)
def completion(args: argparse.Namespace, out: Output) -> int:
    """Print what a shell sources to complete ``pai`` with Tab.

    Names of jobs, services and keys are asked from the backend when it runs. Put it into the start file of your shell:
    ``eval "$(pai completion bash)"`` into ``~/.bashrc``, ``eval "$(pai completion zsh)"`` behind ``compinit`` into
    ``~/.zshrc``, ``pai completion fish | source`` into ``~/.config/fish/config.fish``.
    """
    from argcomplete.shell_integration import shellcode

    text = shellcode(["pai"], shell=args.shell)
    out.result({"shell": args.shell, "script": text}, text.rstrip("\n"))
    return OK
