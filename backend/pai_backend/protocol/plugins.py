"""OpenPAI's runtime plugins: ssh, cmd, git, tensorboard and teamwise_storage.

They stand in ``extras["com.microsoft.pai.runtimeplugin"]`` or are prerequisites with a ``plugin`` field whose
other fields are the parameters. Upstream runs each plugin's commands in a shell of its own before and after
the role's; here they are lines of the role's command, so that what they export is there for what follows.
Source: upstream's runtime and its plugins' descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pai_backend.model.spec import SshOptions
from pai_backend.model.tags import find
from pai_backend.model.text import Text
from pai_backend.protocol import plugin_shell
from pai_backend.protocol import v2_tables as tables
from pai_backend.protocol.field_table import Table
from pai_backend.protocol.fields import Members, Path
from pai_backend.protocol.mounts import Mount, mount
from pai_backend.protocol.template import Chosen
from pai_backend.protocol.tree import Node, shown
from pai_backend.protocol.v2_prerequisites import LocatedText, Prerequisite, Reading

KEY: Final = "com.microsoft.pai.runtimeplugin"
"""Where the plugins stand in extras, and what a prerequisite's ``plugin`` begins with."""

PARAMETERS: Final[Mapping[str, Table]] = {
    "ssh": tables.SSH,
    "cmd": tables.CMD,
    "git": tables.GIT,
    "tensorboard": tables.TENSORBOARD,
    "teamwise_storage": tables.STORAGE_PLUGIN,
}
_NOTHING_WITHOUT: Final = {"tensorboard": "parameters: {logdir: {path: /mnt/tensorboard}}", "git": "repo_uri:"}
"""Plugins that upstream leaves out when they have no parameters, and what they need."""
_PUBLIC_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]{1,60} [A-Za-z0-9+/]++=*+(?: [^\r\n]*)?")
_BEFORE = ("taskStarts", "containerStarts")
_AFTER = ("taskSucceeds", "containerEnds")
_BARRIER_MINUTES = 30
_REPOSITORY, _DIRECTORY = "repo_uri", "clone_dir"
_PREREQUISITE_FIELDS = frozenset(
    ("protocolVersion", "name", "type", "version", "contributor", "description", "uri", "require", "plugin")
) | {"failurePolicy"}


@dataclass(frozen=True)
class Plugin:
    """One plugin as a document asks for it. ``roles`` is None when it is for all.

    ``before`` and ``after`` are the commands of cmd; ``named`` and ``options`` what git and tensorboard need.
    """

    kind: str
    tolerant: bool
    roles: frozenset[str] | None
    before: tuple[LocatedText, ...] = ()
    after: tuple[LocatedText, ...] = ()
    options: tuple[LocatedText, ...] = ()
    named: Mapping[str, LocatedText] = field(default_factory=dict)
    ssh: SshOptions | None = None
    mounts: tuple[Mount, ...] = ()

    @property
    def lines(self) -> int:
        """How much it is to put into a role's command, roughly."""
        return 1 + len(self.before) + len(self.after) + len(self.options) + len(self.named)

    def serves(self, role: str) -> bool:
        """Whether it is for the task role of that name."""
        return self.roles is None or role in self.roles


def read_plugins(node: Node, reading: Reading) -> tuple[Plugin, ...]:
    """The plugins that stand in extras, in order."""
    if node.value is None:
        return ()
    if not isinstance(node.value, list):
        reading.reader.fault(
            ("extras", KEY), node.at, Text("the plugins must be a list"), Text("Write - plugin: name lines.")
        )
        return ()
    found = (_listed(item, ("extras", KEY, number), reading) for number, item in enumerate(node.value))
    return tuple(plugin for plugin in found if plugin is not None)


def plugins_of(every: Iterable[Prerequisite], reading: Reading) -> dict[Prerequisite, Plugin]:
    """The plugins that prerequisites are."""
    made = ((one, _prerequisite(one, reading)) for one in every)
    return {one: plugin for one, plugin in made if plugin is not None}


def _prerequisite(one: Prerequisite, reading: Reading) -> Plugin | None:
    """The plugin that a prerequisite is, or None."""
    name = one.members.text("plugin")
    if not name:
        return None
    if not name.startswith(f"{KEY}."):
        hint = Text("Write {prefix}. and the plugin's name.", prefix=KEY)
        path = (*one.path, "plugin")
        reading.reader.fault(path, one.members.at("plugin"), Text("the name of a plugin is not complete"), hint)
        return None
    members = one.node.value if isinstance(one.node.value, dict) else {}
    rest = {key: node for key, node in members.items() if key not in _PREREQUISITE_FIELDS}
    kind = name.removeprefix(f"{KEY}.")
    tolerant = _tolerant(one.members, reading)
    return _plugin(kind, one.members, Node(rest, one.node.at), one.path, tolerant, None, reading)


def _listed(node: Node, path: Path, reading: Reading) -> Plugin | None:
    """One item of the list in extras."""
    members = reading.reader.members(node, path, tables.PLUGIN)
    if members is None or (kind := members.text("plugin")) is None:
        return None
    roles = frozenset(_roles_of(members, "taskroles", reading))
    given = members.values["parameters"]
    parameters = given if isinstance(given, Node) else Node({}, node.at)
    only = roles if members.items("taskroles") else None
    tolerant = _tolerant(members, reading)
    return _plugin(kind, members, parameters, (*path, "parameters"), tolerant, only, reading)


def _tolerant(members: Members, reading: Reading) -> bool:
    """Whether a failure of the plugin stops nothing."""
    policy = members.text("failurePolicy") or "fail"
    if policy not in ("fail", "ignore"):
        path = (*members.path, "failurePolicy")
        reading.reader.fault(
            path, members.at("failurePolicy"), Text("no such failurePolicy"), Text("Write fail or ignore.")
        )
    return policy == "ignore"


def _plugin(
    kind: str,
    owner: Members,
    parameters: Node,
    path: Path,
    tolerant: bool,
    roles: frozenset[str] | None,
    reading: Reading,
) -> Plugin | None:
    """A plugin with its parameters checked."""
    table = PARAMETERS.get(kind)
    if table is None:
        at = owner.at("plugin")
        if tolerant:
            hint = Text("Known here: {parameters}.", parameters=", ".join(PARAMETERS))
            reading.reader.warn(
                "unknown-plugin", (*owner.path, "plugin"), Text("the plugin {kind} is left out", kind=shown(kind)), hint
            )
        else:
            reading.no_such(
                (*owner.path, "plugin"), at, Text("no such plugin: {name}", name=shown(kind)), kind, list(PARAMETERS)
            )
        return None
    if kind in _NOTHING_WITHOUT and (parameters.value is None or parameters.value == {}):
        hint = Text("Write {needed}, or remove the plugin.", needed=_NOTHING_WITHOUT[kind])
        message = Text("the plugin {kind} has no parameters; it is left out", kind=kind)
        reading.reader.warn("empty-plugin", (*owner.path, "plugin"), message, hint)
        return None
    members = reading.reader.members(parameters, path, table)
    return None if members is None else _READERS[kind](Plugin(kind, tolerant, roles), members, reading)


def _ssh(plugin: Plugin, members: Members, reading: Reading) -> Plugin:
    """The ssh plugin. Source of 30 minutes: upstream's documentation (its code waits 5 hours)."""
    minutes = members.integer("sshbarrierTimeout")
    barrier, barrier_roles = _barrier(members, reading)
    options = SshOptions(
        job_ssh=reading.flag(members, "jobssh", False),
        authorized_keys=_public_keys(members, reading),
        barrier=barrier,
        barrier_roles=barrier_roles,
        barrier_timeout_s=60 * (_BARRIER_MINUTES if minutes is None else minutes),
    )
    return replace(plugin, ssh=options)


def _barrier(members: Members, reading: Reading) -> tuple[bool, tuple[str, ...]]:
    """Whether tasks wait for each other, and for the tasks of which roles; none means all.

    ``sshbarrier`` is a flag or, in documents of the plugin's first form, the list of roles; later they stood in
    ``sshbarriertaskroles`` beside the flag. Upstream waits only when ``jobssh`` is on.
    """
    node = members.values["sshbarrier"]
    named = _roles_of(members, "sshbarrier", reading)
    is_list = isinstance(node, Node) and isinstance(node.value, list)
    named = named or _roles_of(members, "sshbarriertaskroles", reading)
    asked = bool(named) if is_list else reading.flag(members, "sshbarrier", False)
    if asked and not reading.flag(members, "jobssh", False):
        hint = Text("Write jobssh: true beside it, or remove it.")
        message = Text("tasks wait for each other only with jobssh; the barrier is left out")
        reading.reader.warn("barrier-without-jobssh", (*members.path, "sshbarrier"), message, hint)
        return False, ()
    return asked, named


def _roles_of(owner: Members, name: str, reading: Reading) -> tuple[str, ...]:
    """The task roles that a list names."""
    found = reading.texts(owner, name)
    for text in found:
        if text.node.value not in reading.roles:
            word = str(text.node.value)
            reading.no_such(
                text.path,
                text.node.at,
                Text("{name} is not a task role of this job", name=shown(word)),
                word,
                reading.roles,
            )
    return tuple(dict.fromkeys(str(text.node.value) for text in found))


def _public_keys(members: Members, reading: Reading) -> tuple[str, ...]:
    """The keys of ``userssh``, which is an object of type custom or, in old documents, the key itself."""
    node = members.values["userssh"]
    path: Path = (*members.path, "userssh")
    if not isinstance(node, Node) or node.value is None or node.value == "":
        return ()
    if not isinstance(node.value, str):
        user = reading.reader.members(node, path, tables.USER_SSH)
        value = reading.text(user, "value") if user is not None else None
        if value is None:
            return ()
        node, path = value.node, value.path
    text = reading.template.fill(node, path)
    keys = tuple(line.strip() for line in text.splitlines() if line.strip())
    if all(_PUBLIC_KEY.fullmatch(key) or any(tag.scope == "secrets" for tag in find(key)) for key in keys):
        return keys
    hint = Text("Write the one line of a .pub file; never put a private key into a document.")
    reading.reader.fault(path, node.at, Text("this is not an OpenSSH public key"), hint)
    return ()


def _cmd(plugin: Plugin, members: Members, reading: Reading) -> Plugin:
    """The cmd plugin in both of its forms: two lists, or callbacks for events."""
    before, after = reading.texts(members, "preCommands"), reading.texts(members, "postCommands")
    if members.items("callbacks") and (before or after):
        message = Text("callbacks and preCommands or postCommands are both given")
        path = (*members.path, "callbacks")
        reading.reader.fault(path, members.at("callbacks"), message, Text("Use one of the two forms."))
    for number, node in enumerate(members.items("callbacks")):
        callback = reading.reader.members(node, (*members.path, "callbacks", number), tables.CALLBACK)
        if callback is None:
            continue
        event, texts = callback.text("event"), reading.texts(callback, "commands")
        if event in _BEFORE:
            before += texts
        elif event in _AFTER:
            after += texts
        elif event is not None:
            hint = Text("Write taskStarts or taskSucceeds.")
            reading.reader.fault((*callback.path, "event"), callback.at("event"), Text("no such event"), hint)
    return replace(plugin, before=before, after=after)


def _git(plugin: Plugin, members: Members, reading: Reading) -> Plugin:
    """The git plugin; ``repo`` is the older name of ``repo_uri``."""
    repository = reading.text(members, "repo_uri") or reading.text(members, "repo")
    directory = reading.text(members, "clone_dir")
    if repository is None:
        hint = Text("Write repo_uri: and the repository's address.")
        reading.reader.fault((*members.path, "repo_uri"), members.node.at, Text("repo_uri is missing"), hint)
        return plugin
    named = {_REPOSITORY: repository} | ({} if directory is None else {_DIRECTORY: directory})
    return replace(plugin, named=named, options=reading.texts(members, "options"))


def _tensorboard(plugin: Plugin, members: Members, reading: Reading) -> Plugin:
    """The tensorboard plugin. Its ``port`` is checked and not used: the port is leased, like every other."""
    directories = {}
    for name, node in members.entries("logdir").items():
        path = (*members.path, "logdir", name)
        if isinstance(node.value, str) and node.value:
            directories[name] = LocatedText(node, path)
        else:
            reading.reader.fault(path, node.at, Text("a directory must be text"), Text("Write path: /mnt/tensorboard."))
    if members.given("logdir") and not members.entries("logdir"):
        hint = Text("Write a name and a directory, like path: /mnt/tensorboard.")
        reading.reader.fault((*members.path, "logdir"), members.at("logdir"), Text("logdir is empty"), hint)
    return replace(plugin, named=directories)


def _teamwise_storage(plugin: Plugin, members: Members, reading: Reading) -> Plugin:
    """The old form of ``extras.storages``; each storage is mounted below /mnt under its name."""
    named = reading.texts(members, "storageConfigNames")
    found = (mount(str(text.node.value), None, text.path, text.node.at, reading) for text in named)
    return replace(plugin, mounts=tuple(one for one in found if one is not None))


_READERS: Final[Mapping[str, Callable[[Plugin, Members, Reading], Plugin]]] = {
    "ssh": _ssh,
    "cmd": _cmd,
    "git": _git,
    "tensorboard": _tensorboard,
    "teamwise_storage": _teamwise_storage,
}


def shell_before(plugin: Plugin, reading: Reading, chosen: Chosen) -> str:
    """The lines that a plugin puts before the commands of a role that chose ``chosen``; empty when it has none."""
    template = reading.template
    named = {name: template.fill(text.node, text.path, chosen) for name, text in plugin.named.items()}
    if plugin.kind == "tensorboard":
        return plugin_shell.tensorboard(named) if named else ""
    if plugin.kind == "git" and named:
        options = [template.fill(text.node, text.path, chosen) for text in plugin.options]
        lines = plugin_shell.git_clone(named[_REPOSITORY], options, named.get(_DIRECTORY, ""))
    else:
        lines = _lines(plugin.before, reading, chosen)
    return plugin_shell.tolerant(lines, plugin.kind) if lines and plugin.tolerant else lines


def shell_after(plugin: Plugin, reading: Reading, chosen: Chosen) -> str:
    """The lines that a plugin puts after a role's commands; empty when it has none."""
    lines = _lines(plugin.after, reading, chosen)
    return plugin_shell.tolerant(lines, plugin.kind) if lines and plugin.tolerant else lines


def _lines(texts: tuple[LocatedText, ...], reading: Reading, chosen: Chosen) -> str:
    return "\n".join(reading.template.fill(text.node, text.path, chosen).strip() for text in texts)
