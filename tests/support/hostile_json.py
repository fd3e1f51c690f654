"""JSON documents of the largest size that are as dear to read as their author could make them.

Each is dear in another way: many values, deep ones, texts and comments that a careless expression tries in pieces,
faults that are looked up again and again, rules that compare each with each.
"""

from __future__ import annotations

from typing import Final

from pai_backend.protocol.locate import MAX_BRACKETS, MAX_VALUES
from pai_backend.protocol.tree import MAX_FLAWS
from pai_backend.protocol.v1 import MAX_ROLES, MAX_VARIABLES
from pai_backend.protocol.v1_ports import MAX_LABELS

LARGEST: Final = 1_048_576
HEAD = '{"jobName":"d","image":"i",'
FULL = (
    '{"name":"r#","taskNumber":1,"cpuNumber":1,"memoryMB":100,"shmMB":64,"gpuNumber":0,"storageGB":5,'
    '"minFailedTaskCount":null,"minSucceededTaskCount":null,"command":"python train.py --index #",'
    '"portList":[{"label":"a","beginAt":0,"portNumber":1},{"label":"b","beginAt":0,"portNumber":1}]}'
)
ROLE = '{"name":"r","command":"x"}'


def roles(number: int, text: str) -> str:
    """A job of so many roles; ``#`` is the number of each."""
    return HEAD + '"taskRoles":[' + ",".join(text.replace("#", str(one)) for one in range(number)) + "]}"


def variables(number: int, text: str) -> str:
    """A job of so many variables; ``#`` is the number of each."""
    return (
        HEAD
        + '"jobEnvs":{'
        + ",".join(text.replace("#", str(one)) for one in range(number))
        + f'}},"taskRoles":[{ROLE}]}}'
    )


def listed(number: int, text: str) -> str:
    """A job with so many items in its extras, each written with a comma behind it."""
    return HEAD + f'"taskRoles":[{ROLE}],"extras":{{"a":[' + text * number + "0]}}"


def ports(number: int, text: str) -> str:
    """A role with so many ports."""
    one = ",".join(text.replace("#", str(port)) for port in range(number))
    return HEAD + '"taskRoles":[{"name":"a","command":"x","portList":[' + one + "]}]}"


THOUSAND_ROLES: Final = roles(1000, FULL)
"""A large job as a program would write it."""

MANY = MAX_VALUES - 50
TEXTS: Final[dict[str, str]] = {
    "a thousand roles": THOUSAND_ROLES,
    "full roles": roles(MAX_VALUES // 22, FULL),
    "small roles": roles(MAX_ROLES, '{"name":"r#","command":"x"}'),
    "too many roles": roles(MAX_BRACKETS - 10, "{}"),
    "roles of nothing": roles(MAX_ROLES, "{}"),
    "roles that are numbers": roles(MANY, "0"),
    "roles with ports": roles(
        MAX_BRACKETS // 6,
        '{"name":"r#","command":"x","portList":[{"label":"a#"},{"label":"b#"},{"label":"c#","beginAt":#}]}',
    ),
    "roles with unknown fields": roles(MAX_ROLES, '{"name":"r#","command":"x","nmae":1,"comand":2,"wholly":3}'),
    "unknown fields of SCM": roles(MAX_ROLES, '{"name":"r#","command":"x","storageGB":1,"one":{},"other#":3}'),
    "unknown fields of one role of SCM": HEAD
    + '"taskRoles":[{"name":"r","command":"x","storageGB":1,'
    + ",".join(f'"field{one}of":0' for one in range(MANY))
    + "}]}",
    "ports": ports(MAX_LABELS, '{"label":"a#","beginAt":1#}'),
    "ports that overlap": ports(MAX_LABELS, '{"label":"a#","beginAt":8000,"portNumber":999}'),
    "too many ports": ports(MAX_BRACKETS - 10, '{"label":"a#"}'),
    "variables": variables(MAX_VARIABLES, '"a#":0'),
    "too many variables": variables(MANY, '"a#":0'),
    "wrong variables": variables(MAX_VARIABLES, '"a=#":0'),
    "variables of the platform": variables(MAX_VARIABLES, '"PAI_#":"x"'),
    "variables no shell reads": variables(MAX_VARIABLES, '"a-#":"x"'),
    "variables with escapes": variables(MANY // 3, '"a\\t#":"\\n\\u4e00"'),
    "long variables": variables(30, '"a#":"' + "x" * 33_000 + '"'),
    "unknown fields": HEAD + ",".join(f'"job{one}Nam":0' for one in range(MANY)) + "}",
    "values": listed(MANY, "0,"),
    "too many values": listed(500_000, "0,"),
    "fractions": listed(MANY, "1.5e-3,"),
    "long fractions": listed(MANY, "1." + "5" * 30 + ","),
    "long integers": listed(MANY // 3, "9" * 90 + ","),
    "lists": listed((MAX_BRACKETS - 10), "[0,0],"),
    "deep objects": listed(MAX_BRACKETS // 60, '{"a":' * 55 + "0" + "}" * 55 + ","),
    "values between comments": listed(MANY // 2, "/**/" * 8 + "0" + "/**/" * 8 + ","),
    "fractions between comments": listed(MANY // 2, "/**/" * 8 + "0.5" + "/**/" * 8 + ","),
    "commas too many": listed(MAX_BRACKETS - 10, "[0,],"),
    "open brackets": '{"a":' + "[" * 1_000_000,
    "open objects": '{"a":' * 200_000,
    "open comments": "{" + "/*" * 500_000,
    "stars": "{/*" + "*" * 1_000_000,
    "slashes": "{" + "/" * 1_000_000,
    "short comments": "{" + "/**/" * 250_000,
    "comments, then nothing": '{"a": 1' + "/* */ " * 170_000 + "?",
    "comments after a key": '{"a"' + "/**/" * 250_000 + "?",
    "backslashes": '{"a": "' + "\\" * 1_000_001 + '"}',
    "escapes": '{"a": "' + r"\n" * 500_000 + "\x01",
    "bad escapes": '{"a": "' + r"\q" * 500_000 + '"}',
    "quotes": "{" + '"' * 1_000_000,
    "single quotes": "{" + "'" * 1_000_000,
    "digits": '{"a": ' + "1" * 1_000_000 + "}",
    "words": '{"a": [' + "x," * 500_000,
    "words far apart": '{"a": [' + ("x," + " " * (LARGEST // MAX_FLAWS - 100)) * MAX_FLAWS,
    "words between comments": '{"a": [' + ("x," + "/**/" * (LARGEST // MAX_FLAWS // 4 - 100)) * MAX_FLAWS,
    "words on lines": '{"a": [' + ("x," + "\n" * (LARGEST // MAX_FLAWS - 100)) * MAX_FLAWS,
    "the same key": "{" + '"a":0,' * 150_000 + '"a":0}',
    "lines": "{" + "\n" * 1_000_000 + "?",
    "carriage returns": "{" + "\r" * 1_000_000 + "?",
    "white space": " " * LARGEST,
    "white space before commas": '{"a": [' + "0 ," * MANY + " " * 500_000 + "]}",
    "a long command": roles(1, '{"name":"a","command":"' + "训" * 340_000 + '"}'),
    "a command of escapes": roles(1, '{"name":"a","command":"' + r"\u4e00" * 170_000 + '"}'),
    "a command of four bytes": roles(1, '{"name":"a","command":"' + "😀" * 260_000 + '"}'),
    "a long name": '{"jobName":"' + "-" * 1_000_000 + '"}',
}
