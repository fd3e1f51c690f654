"""Sweeps: one document as many jobs, which differ in a few values and belong together.

The values are ``parameters`` of a v2 document or ``jobEnvs`` of a v1 one. Each job is complete in itself. Its document
has ``sweep`` and ``sweepParallel``, so that the backend keeps the limit whether a client is there or not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.fs.places import wrong
from jupyter_pai.language import tr
from jupyter_pai.streams import decoded
from jupyter_pai.wire_types import JobDetail, Summary
from pai_backend.model.text import Text

MOST_JOBS = 256
AT_ONCE = 8
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")
_SUFFIX = re.compile(r"(.+)-\d{3}")

Values = Mapping[str, str]


def axis(text: str) -> tuple[str, tuple[str, ...]]:
    """``lr=0.1,0.01`` or ``seed=1..5``. Raises ValueError."""
    name, equals, rest = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(Text("{text} is not NAME=VALUE,VALUE or NAME=FIRST..LAST", text=f"{text!r}"))
    if found := _RANGE.fullmatch(rest):
        first, last = int(found[1]), int(found[2])
        if abs(last - first) >= MOST_JOBS:
            raise ValueError(Text("{text} has more than {most_jobs} values", text=f"{text!r}", most_jobs=MOST_JOBS))
        step = 1 if last >= first else -1
        return name, tuple(str(number) for number in range(first, last + step, step))
    values = tuple(value.strip() for value in rest.split(","))
    if len(set(values)) < len(values) or "" in values:
        raise ValueError(Text("{text} has an empty value, or one twice", text=f"{text!r}"))
    return name, values


@dataclass(frozen=True)
class SweepMember:
    """A job of a sweep before it is submitted. Masked values of its document are those of the job ``secrets_of``."""

    name: str
    document: bytes
    values: Values
    secrets_of: str | None = None


def members(document: bytes, axes: Mapping[str, Sequence[str]], name: str, parallel: int | None) -> list[SweepMember]:
    """One document for each combination of values, the last name changing first. ``name`` may be empty.

    Raises ClientError for too many, and for a document that has no such parameter or cannot be changed.
    """
    count = 1
    for each in axes.values():
        count *= len(each)
    if count > MOST_JOBS:
        raise wrong(
            Text(
                "The sweep would have {count} jobs; {most_jobs} are the most.", count=f"{count:,}", most_jobs=MOST_JOBS
            ),
            Text("Use fewer values."),
        )
    text = document.decode("utf-8-sig", "replace")
    sweep = name or f"{_name(text)}-{secrets.token_hex(2)}"
    made = []
    for number, combination in enumerate(itertools.product(*axes.values()), 1):
        values = dict(zip(axes, combination, strict=True))
        made.append(SweepMember(f"{sweep}-{number:03d}", _changed(text, values, sweep, parallel), values))
    return made


def _name(text: str) -> str:
    tree = _tree(text)
    return str(tree.get("name") or tree.get("jobName") or "sweep")


def _tree(text: str) -> dict[str, Any]:
    """What is in a document, for looking at. Raises ClientError."""
    try:
        tree = json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, yaml.BaseLoader)
    except (ValueError, yaml.YAMLError) as error:
        raise wrong(
            Text("The document cannot be read for a sweep: {error}", error=error),
            Text("It is JSON without comments, or YAML."),
        ) from error
    if not isinstance(tree, dict):
        raise wrong(Text("The document is not an object."), Text("`pai validate` tells more."))
    return tree


def _changed(text: str, values: Values, sweep: str, parallel: int | None) -> bytes:
    """The document with these values."""
    own: dict[str, object] = {"sweep": sweep} | ({} if parallel is None else {"sweepParallel": parallel})
    tree = _tree(text)
    place = "parameters" if "protocolVersion" in tree or "protocol_version" in tree else "jobEnvs"
    given = tree.get(place) or {}
    if place == "parameters" and (missing := [name for name in values if name not in given]):
        known = Text("It has: {given}.", given=", ".join(given)) if given else Text("It has none.")
        raise wrong(Text("The document has no parameter {missing}.", missing=missing[0]), known)
    if text.lstrip().startswith("{"):
        numbers = {name: _number(value) for name, value in values.items()}
        extras = tree.get("extras") or {}
        tree[place] = {**given, **numbers}
        tree["extras"] = {**extras, "jupyterPai": {**(extras.get("jupyterPai") or {}), **own}}
        return json.dumps(tree, ensure_ascii=False, indent=2).encode()
    root = yaml.compose(text, yaml.SafeLoader)
    assert root is not None, "it was an object a line above"
    for name, value in values.items():
        _set(root, (place, name), value)
    for name, kept in own.items():
        _set(root, ("extras", "jupyterPai", name), str(kept))
    return str(yaml.serialize(root, allow_unicode=True, width=1 << 20)).encode()


def _number(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _set(node: yaml.Node, path: Sequence[str], value: str) -> None:
    """Set a member of a tree of YAML, whose other scalars stay as they are written."""
    if not isinstance(node, yaml.MappingNode):
        raise wrong(
            Text("The document has something else than an object at {path}.", path=path[0]),
            Text("`pai validate` tells more."),
        )
    name, rest = path[0], path[1:]
    for number, (key, member) in enumerate(node.value):
        if key.value == name:
            if rest and not (isinstance(member, yaml.ScalarNode) and not member.value):
                return _set(member, rest, value)
            del node.value[number]
            break
    made: yaml.Node = yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False) if rest else _scalar(value)
    node.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", name), made))
    if rest:
        _set(made, rest, value)
    return None


def _scalar(value: str) -> yaml.ScalarNode:
    """A number as it is written, anything else in quotes."""
    plain = re.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", value)
    written = yaml.compose(value, yaml.SafeLoader) if plain else None
    kind = "tag:yaml.org,2002:str" if written is None else written.tag
    return yaml.ScalarNode(kind, value, style=None if plain else '"')


async def submit(client: AsyncClient, sweep: Sequence[SweepMember], say: Callable[[str], None]) -> list[JobDetail]:
    """Submit all, in order. Raises ClientError at the first refusal, which says what was submitted before."""
    jobs: list[JobDetail] = []
    for member in sweep:
        try:
            jobs.append(await client.submit(member.document, name=member.name, secrets_of=member.secrets_of))
        except ClientError:
            if jobs:
                say(
                    tr(
                        "Submitted before this: {number} of {total} jobs, up to {name}.",
                        number=len(jobs),
                        total=len(sweep),
                        name=jobs[-1]["name"],
                    )
                )
            raise
    return jobs


@dataclass(frozen=True)
class SweptJob:
    """A job of a sweep, with its document and the values by which it differs from the others."""

    job: Summary
    document: bytes
    values: Values


async def find(client: AsyncClient, name: str) -> list[SweptJob]:
    """The caller's jobs of a sweep, in its order. Raises NotFound."""
    me = cast(dict[str, str], decoded((await client.request("GET", "/api/v2/users/me")).body))["username"]
    listed = await client.jobs(keyword=f"{name}-", username=me, limit=2 * MOST_JOBS)
    jobs = [job for job in listed if (numbered := _SUFFIX.fullmatch(job["name"])) and numbered[1] == name]
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(job: Summary) -> bytes:
        async with gate:
            return (await client.source(job["uid"])).data

    documents = await asyncio.gather(*(read(job) for job in jobs))
    trees = [_tree(each.decode("utf-8-sig", "replace")) for each in documents]
    of_it = [place for place, tree in enumerate(trees) if _of(tree) == name]
    if not of_it:
        raise NotFound(
            Text("There is no sweep {name}.", name=name),
            hint="`pai list --keyword NAME` shows jobs; theirs end with -001.",
        )
    given = [{**(trees[place].get("parameters") or {}), **(trees[place].get("jobEnvs") or {})} for place in of_it]
    names = list(dict.fromkeys(key for each in given for key in each))
    varying = [key for key in names if len({str(each.get(key)) for each in given}) > 1]
    found = [
        SweptJob(jobs[place], documents[place], {key: str(each.get(key, "")) for key in varying})
        for place, each in zip(of_it, given, strict=True)
    ]
    return sorted(found, key=lambda each: each.job["name"])


def _of(tree: Mapping[str, Any]) -> str:
    extras = tree.get("extras")
    own = extras.get("jupyterPai") if isinstance(extras, dict) else None
    return str(own.get("sweep", "")) if isinstance(own, dict) else ""


def cloned(jobs: Sequence[SweptJob], name: str) -> Iterator[SweepMember]:
    """The same jobs as another sweep."""
    for number, each in enumerate(jobs, 1):
        tree = _tree(each.document.decode("utf-8-sig", "replace"))
        parallel = tree["extras"]["jupyterPai"].get("sweepParallel")
        text = _changed(each.document.decode("utf-8-sig", "replace"), {}, name, int(parallel) if parallel else None)
        yield SweepMember(f"{name}-{number:03d}", text, each.values)
