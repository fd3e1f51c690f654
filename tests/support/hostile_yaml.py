"""Texts of the largest size, or small ones that grow, made to be dear to a reader of YAML job documents."""

from __future__ import annotations

LARGEST = 1_048_576
HEAD = "protocolVersion: 2\nname: a\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: a}]\n"
ROLE = "{dockerImage: i, commands: [x], resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}}"
KEY = "com.microsoft.pai.runtimeplugin"


def _filled(piece: str, head: str = "", tail: str = "") -> str:
    return head + piece * ((LARGEST - len(head) - len(tail)) // len(piece)) + tail


def _numbered(piece: str, head: str = "", tail: str = "") -> str:
    """As many of ``piece`` with a running number as fit."""
    pieces: list[str] = []
    left = LARGEST - len(head) - len(tail)
    while left > 0:
        pieces.append(piece.format(len(pieces)))
        left -= len(pieces[-1])
    return head + "".join(pieces[:-1]) + tail


def _roles(count: int, role: str = ROLE, tail: str = "") -> str:
    return HEAD + "taskRoles:\n" + "".join(f"  r{number}: {role}\n" for number in range(count)) + tail


def _plugins(parameters: str, count: int = 1) -> str:
    return f"extras:\n  {KEY}:\n" + f"    - {{plugin: cmd, parameters: {parameters}}}\n" * count


TEXTS: dict[str, str] = {
    # Many of one kind of node, token or line.
    "items": _filled("- a\n"),
    "empty items": _filled("-\n"),
    "numbers": _filled("- 1e5\n"),
    "different numbers": _numbered("- {0}.5\n"),
    "quoted items": _filled('- "a"\n'),
    "flow items": _filled("a,", "[", "]"),
    "single pairs": _filled("a: b,", "[", "]"),
    "keys": _numbered("k{0}:\n"),
    "duplicate keys": _filled("a: 1\n"),
    "anchors": _numbered("- &a{0} a\n"),
    "tags": _filled("- !x a\n"),
    "comments": _filled("#\n"),
    "comments after CR": _filled("#\r"),
    "line ends": _filled("\n"),
    "spaces": _filled(" "),
    "tabs": _filled("\t"),
    "documents": _filled("---\n"),
    "document ends": _filled("...\n"),
    "directives": _numbered("%TAG !a{0}! x\n"),
    "directives after a document": _numbered("%TAG !a{0}! x\n", "{}\n"),
    "byte order marks": _filled("\ufeff")[: LARGEST // 3],
    # Long scalars.
    "a plain text": _filled("x ", "a: "),
    "a quoted text": _filled("x", 'a: "', '"'),
    "escapes": _filled("\\u1234", 'a: "', '"'),
    "a literal": _filled(" x\n", "a: |\n"),
    "a folded text": _filled(" x\n", "a: >\n"),
    "a text of line ends": _filled("\n", "a: |\n"),
    "a key": _filled("x", "{"),
    "an anchor": _filled("x", "&"),
    "a number": _filled("9", "a: "),
    # Depth.
    "open brackets": _filled("["),
    "open braces": _filled("{a: "),
    "dashes": _filled("- "),
    "question marks": _filled("? "),
    # Little text that grows.
    "lists of aliases": "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 60)),
    "deep aliases": "a0: &a0 []\n" + "".join(f"a{n}: &a{n} {'[' * 9}*a{n - 1}{']' * 9}\n" for n in range(1, 999)),
    "merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{f'*a{n - 1},' * 9}], k{n}: 1}}\n" for n in range(1, 60)),
    "long aliases": f"a: &a {'x' * 500_000}\nb: [{'*a, ' * 9_000}]\n",
    "roles by alias": HEAD + f"taskRoles:\n  r: &r {ROLE}\n" + "".join(f"  r{n}: *r\n" for n in range(5_000)),
    "a command by alias": HEAD
    + f"x: &x {'x' * 400_000}\n"
    + f"taskRoles: {{r: {{dockerImage: i, resourcePerInstance: {{}}, commands: [{'*x, ' * 5_000}]}}}}\n",
    "printed lists": HEAD
    + f"parameters: {{x: &x {'x' * 100_000}, l: &l [{'*x, ' * 40}], m: [{'*x, ' * 40}]}}\ntaskRoles: {{r: {{commands: ["
    + "'<% $parameters.l %>', " * 500
    + "]}}\n",
    "parameters in many roles": _roles(
        1_000, ROLE.replace("[x]", "['<% $parameters.x %>']"), f"parameters: {{x: {'x' * 300_000}}}\n"
    ),
    "plugins in many roles": _roles(1_000, ROLE, _plugins(f"{{preCommands: [{'a, ' * 9_000}]}}")),
    "a long plugin in many roles": _roles(1_000, ROLE, _plugins(f"{{preCommands: [{'x' * 500_000}]}}")),
    "many plugins in many roles": _roles(1_000, ROLE, _plugins("{preCommands: [a]}", 2_000)),
    "a chain of prerequisites": HEAD.replace(
        "uri: a}]",
        "uri: a},\n"
        + "".join(f" {{name: p{n}, type: data, require: [p{n + 1}]}},\n" for n in range(498))
        + " {name: p498, type: data}]",
    )
    + "taskRoles:\n"
    + "".join(f"  r{n}: {ROLE.replace('{dock', '{prerequisites: [p0], dock')}\n" for n in range(1_000)),
    # Much to read that is in order, or at fault.
    "small roles": _roles(1_000),
    "too many roles": _roles(2_500),
    "wrong roles": _roles(4_000, "{}"),
    "unknown fields": _numbered("f{0}: x\n", HEAD),
    "wrong ports": HEAD
    + "taskRoles: {r: {dockerImage: i, commands: [x], resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0, ports: {"
    + "".join(f"a{n}: x, " for n in range(19_000))
    + "}}}}\n",
    "unknown roles of the scheduler": _roles(1, ROLE, "extras: {hivedScheduler: {taskRoles: {")
    + "".join(f"x{n}: , " for n in range(19_000))
    + "}}}\n",
    "storages at one place": _roles(1, ROLE, "extras: {storages: [") + "{name: a, mountPath: /x}, " * 7_000 + "]}\n",
    "names of drafts": _roles(
        1_000, "{instance: 1, resourcePerInstanec: {cpu: 1}, docker_image: i, completion: {min_failed_instances: 1}}"
    ),
    "tags in a command": _roles(
        1, ROLE.replace("[x]", "['" + "<%$parameters.a%>" * 60_000 + "']"), "parameters: {a: b}\n"
    ),
    "wrong tags": _roles(1, ROLE.replace("[x]", "['" + "<% x %>" * 140_000 + "']")),
    "signs of tags": _roles(1, ROLE.replace("[x]", "['" + "<%" * 500_000 + "']")),
    "keys of public keys": _roles(
        1, ROLE, f"extras: {{{KEY}: [{{plugin: ssh, parameters: {{userssh: '{'ssh-a ' * 150_000}'}}}}]}}\n"
    ),
}
