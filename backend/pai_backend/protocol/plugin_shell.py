"""The shell text that runtime plugins become, put before and after a role's own commands.

Everything from the document is quoted for the one bash parse that a command goes through. The tags of
``$secrets`` are filled later, inside of the quotes: a secret that holds a quote itself cannot be used there.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

TENSORBOARD_LABEL: Final = "tensorboard"
"""Label of the port that TensorBoard listens on."""

_FIRST = '[ "${PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX:-0}" = 0 ]'


def tolerant(lines: str, plugin: str) -> str:
    """``lines`` in a shell of their own whose failure is told on stderr and stops nothing (failurePolicy ignore)."""
    note = shlex.quote(f"the plugin {plugin} failed; going on, as its failurePolicy says")
    return f"(\n{lines}\n) || echo {note} >&2"


def git_clone(repository: str, options: Sequence[str], directory: str) -> str:
    """Clone ``repository`` below the working directory, into ``directory`` when one is named."""
    words = ["git", "clone", *options, "--", repository, *([directory] if directory else [])]
    return " ".join(shlex.quote(word) for word in words)


def ssh_barrier(roles: Sequence[str], timeout_s: int) -> str:
    """Wait until each task of ``roles`` takes an SSH login, at most ``timeout_s`` seconds; then exit with 249.

    A task that has reached all tells each of them before it goes on: it may have ended when a slower one looks for it.

    Source of 249: upstream's exit specification. A peer that is not up yet is tried again by ``ssh`` itself; the
    pause is for one that is up and refuses.
    """
    names = " ".join(shlex.quote(role) for role in roles)
    return f"""\
if ! command -v ssh >/dev/null; then
  echo 'sshbarrier: there is no ssh in this task' >&2
  exit 249
fi
pai_barrier_ends=$((SECONDS + {timeout_s}))
pai_barrier_self="$PAI_CURRENT_TASK_ROLE_NAME-$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
pai_tell='touch "${{TMPDIR:-/tmp}}/pai-barrier-$PAI_TASK_UID-"'"$pai_barrier_self"
for pai_say in true "$pai_tell"; do
  for pai_role in {names}; do
    pai_count="PAI_TASK_ROLE_TASK_COUNT_$pai_role"
    for ((pai_index = 0; pai_index < ${{!pai_count}}; pai_index++)); do
      until ssh -o BatchMode=yes -o ConnectTimeout=10 "$pai_role-$pai_index" "$pai_say" </dev/null >/dev/null 2>&1 ||
        [ -e "${{TMPDIR:-/tmp}}/pai-barrier-$PAI_TASK_UID-$pai_role-$pai_index" ]; do
        if [ "$SECONDS" -ge "$pai_barrier_ends" ]; then
          echo "sshbarrier: $pai_role-$pai_index did not answer within {timeout_s} s" >&2
          exit 249
        fi
        sleep 1
      done
    done
  done
done
rm -f "${{TMPDIR:-/tmp}}/pai-barrier-$PAI_TASK_UID-"*"""


def tensorboard(directories: Mapping[str, str]) -> str:
    """Start TensorBoard on its leased port in the background of task 0; it can neither block nor fail the command.

    It listens where the service proxy reaches it: on the loopback interface of the backend's machine, where strangers
    do not come, and on all addresses of a pod.
    """
    if len(directories) == 1:
        option = f"--logdir={next(iter(directories.values()))}"
    else:
        option = f"--logdir_spec={','.join(f'{name}:{path}' for name, path in directories.items())}"
    port = f'"${{PAI_CONTAINER_HOST_{TENSORBOARD_LABEL}_PORT_LIST%%,*}}"'
    run = f'exec tensorboard {shlex.quote(option)} "$pai_host" --port={port}'
    return (
        f"if {_FIRST}; then\n"
        "  if command -v tensorboard >/dev/null; then\n"
        "    pai_host=--bind_all\n"
        '    [[ "${PAI_CURRENT_CONTAINER_IP:-}" != 127.* ]] || pai_host=--host=127.0.0.1\n'
        f"    ( {run} ) </dev/null >tensorboard.log 2>&1 &\n"
        "  else\n"
        "    echo 'tensorboard is not in this image; going on without it' >&2\n"
        "  fi\n"
        "fi"
    )
