"""The command of a v2 task role: plugins, the active deployment and the role's own lines, in upstream's order.

Plugins' lines come first and, after the role's own, in reverse; between them the deployment's preCommands, the
commands and the deployment's postCommands. Each is trimmed, and all run in one shell with errexit, nounset and
pipefail, so that what comes after the commands runs only when they succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_backend.model.spec import SshOptions
from pai_backend.protocol.fields import Members
from pai_backend.protocol.locate import Node
from pai_backend.protocol.plugin_shell import ssh_barrier, tolerant
from pai_backend.protocol.plugins import Plugin, shell_after, shell_before
from pai_backend.protocol.template import Chosen
from pai_backend.protocol.v1 import MAX_ARGUMENT
from pai_backend.protocol.v2_extras import Extras
from pai_backend.protocol.v2_prerequisites import Prerequisite, Prerequisites
from pai_backend.protocol.v2_reading import Located, Reading

_NO_SSH = SshOptions()


@dataclass(frozen=True)
class Deployed:
    """What the active deployment adds to one role."""

    before: tuple[Located, ...] = ()
    after: tuple[Located, ...] = ()


def used_plugins(
    role: Members,
    chosen: Iterable[Prerequisite],
    prerequisites: Prerequisites,
    made: Mapping[Prerequisite, Plugin],
    extras: Extras,
    name: str,
    reading: Reading,
) -> list[Plugin]:
    """The plugins of a role in order: those of its prerequisites, what they require first, then those of extras.

    ``made`` has the plugins that prerequisites are.
    """
    wanted = list(chosen)
    for text in reading.texts(role, "prerequisites"):
        word = str(text.node.value)
        named = prerequisites.named(word)
        wanted += named
        if not named and word not in prerequisites.faulty:
            message = "{} is no prerequisite of this job"
            reading.no_such(text.path, text.node.at, message, word, prerequisites.names())
    needed = prerequisites.with_required(dict.fromkeys(wanted))
    found = [made[one] for one in needed if one in made]
    found += [plugin for plugin in extras.plugins if plugin.serves(name)]
    lines = len(needed) + sum(plugin.lines for plugin in found)
    return found if not lines or reading.use(lines, role.path, role.node.at) else []


def ssh_of(plugins: Sequence[Plugin]) -> SshOptions:
    """What the ssh plugins of a role ask for together."""
    asked = [plugin.ssh for plugin in plugins if plugin.ssh is not None]
    if not asked:
        return _NO_SSH
    return SshOptions(
        job_ssh=any(one.job_ssh for one in asked),
        authorized_keys=tuple(dict.fromkeys(key for one in asked for key in one.authorized_keys)),
        barrier=any(one.barrier for one in asked),
        barrier_roles=_barrier_roles(asked),
        barrier_timeout_s=max(one.barrier_timeout_s for one in asked),
    )


def _barrier_roles(asked: Sequence[SshOptions]) -> tuple[str, ...]:
    """The roles that are waited for; none means all, and who waits for all need not name any."""
    barriers = [one.barrier_roles for one in asked if one.barrier]
    return tuple(dict.fromkeys(name for names in barriers for name in names)) if all(barriers) else ()


def _barrier(plugins: Sequence[Plugin], reading: Reading) -> str:
    """The lines that wait for other tasks' SSH; empty when no plugin asks for it."""
    asking = [plugin for plugin in plugins if plugin.ssh is not None and plugin.ssh.barrier]
    if not asking or not reading.gang:
        return ""
    ssh = ssh_of(asking)
    lines = ssh_barrier(ssh.barrier_roles or tuple(reading.roles), ssh.barrier_timeout_s)
    return tolerant(lines, "ssh") if all(plugin.tolerant for plugin in asking) else lines


def command(
    role: Members,
    plugins: Sequence[Plugin],
    deployed: Deployed,
    scopes: Chosen,
    board: bool,
    reading: Reading,
) -> str | None:
    """The shell text of a role, or None when it has none (recorded). ``board``: TensorBoard runs here."""
    own = reading.commands(role, "commands")
    path = (*role.path, "commands")
    pieces = [shell_before(plugin, reading, scopes) for plugin in plugins if board or plugin.kind != "tensorboard"]
    pieces.append(_barrier(plugins, reading))
    for text in (*deployed.before, *own, *deployed.after):
        pieces.append(reading.template.fill(text.node, text.path, scopes).strip())
    pieces += [shell_after(plugin, reading, scopes) for plugin in reversed(plugins)]
    node = role.values["commands"]
    if not isinstance(node, Node) or not reading.template.spend(sum(map(len, pieces)), node, path):
        return None
    whole = "\n".join(piece for piece in pieces if piece)
    if not whole:
        if own:
            reading.reader.fault(path, node.at, "there is nothing to run", "Write a command.")
        return None
    if len(whole) > MAX_ARGUMENT // 4 and len(whole.encode()) > MAX_ARGUMENT:
        message = f"the command is longer than {MAX_ARGUMENT} bytes; Linux cannot start it"
        hint = "Put the script into the image or the data and call it from the command."
        reading.reader.warn("long-command", path, message, hint)
    return whole
