"""The dearest requests of about 1 MB that we could make, for every reader of users' texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bench.scene import document
from tests.support import hostile_json, hostile_yaml

SIZE = 1_000_000
Request = tuple[str, str, bytes, Mapping[str, str]]

V2 = b"""\
protocolVersion: 2
name: slow
type: job
prerequisites: [{name: i, type: dockerimage, uri: x}]
taskRoles:
  w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: ["""
"""A v2 document up to its command."""


def commands() -> Iterator[str]:
    """Commands that a shell reads slowly, or could."""
    for piece in (
        "x",
        "\\'",
        "$(",
        "`",
        '"$(',
        "<<E\n",
        "a;",
        "a&",
        "${a",
        "((",
        "case a in ",
        "if ",
        "\\\n",
        "'",
        "a=b ",
        "jupyter ",
    ):
        yield piece * (SIZE // 2 // len(json.dumps(piece)))


def documents() -> Iterator[bytes]:
    """Documents of all dialects."""
    yield from (text.encode() for text in hostile_json.TEXTS.values())
    yield from (text.encode() for text in hostile_yaml.TEXTS.values())
    for command in commands():
        yield document("slow", command=command)
        yield V2 + json.dumps(command).encode() + b"]}\n"
    for piece in (
        b"[",
        b"{a: ",
        b"- ",
        b"? ",
        b"&a ",
        b"!!str ",
        b"<% $parameters.a %>",
        b"\\u0000",
        b"#",
        b"|\n ",
        b"a: &a [*a]\n",
        b'"',
        b"\t",
    ):
        yield b"protocolVersion: 2\nname: " + piece * (SIZE // len(piece))


def configurations() -> Iterator[bytes]:
    """Cluster configurations."""
    for piece in (
        b"[",
        b"{a: ",
        b"- ",
        b"a: &a [*a]\n",
        b"? ",
        b"physicalCluster: {cellTypes: {a: {childCellType: a}}}\n",
        b"\n",
        b"#x\n",
    ):
        yield piece * (SIZE // len(piece))
    cells = "".join(f"    t{n}: {{childCellType: t{n + 1}, childCellNumber: 2}}\n" for n in range(15_000))
    yield f"physicalCluster:\n  cellTypes:\n{cells}".encode()


def requests() -> list[Request]:
    """All of them: method, path, body, headers."""
    found: list[Request] = [("POST", "/api/v2/validate", text, {}) for text in documents()]
    found += [("POST", "/api/v2/cluster/config?dryRun=true", text, {}) for text in configurations()]
    found += [("PUT", "/api/v2/cluster/config?dryRun=true", text, {}) for text in configurations()]
    form, many = {"Content-Type": "application/x-www-form-urlencoded"}, b"a=b&" * 250_000
    found += [("POST", "/api/v2/keys", many, form), ("PUT", "/api/v2/users/me", b"%" * SIZE, form)]
    parts = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n" * 20_000
    found += [("POST", "/api/v2/keys", parts + b"--x--", {"Content-Type": "multipart/form-data; boundary=x"})]
    found += [("PUT", "/api/v2/jobs/job-0/tag", b"[" * SIZE, {}), ("POST", "/api/v2/keys", b'{"a":' * (SIZE // 5), {})]
    long = "a=b&" * 15_000
    found += [("GET", f"/api/v2/jobs?{long}", b"", {}), ("GET", "/api/v2/jobs?keyword=" + "%25_" * 15_000, b"", {})]
    found += [("GET", "/api/v2/jobs?tagsContain=" + "a," * 30_000, b"", {})]
    cookies = "a=b; " * 12_000
    found += [("GET", path, b"", {"Cookie": cookies}) for path in ("/api/v2/jobs?limit=1", "/s/job-0--web/")]
    found += [("GET", "/api/v2/jobs?limit=1", b"", {f"X-A{n}": "b" for n in range(3_000)})]
    found += [("GET", "/api/v2/jobs?limit=1", b"", {"Accept": "," * 60_000})]
    return found
