"""Pages of a Jupyter server as they must read below a path. Pure.

A Jupyter that serves ``/`` writes addresses from the root into its pages and into its list of kernels. Below
``/s/<service alias>`` each of them needs that prefix. Only these places are changed, because JupyterLab joins all other
addresses of its configuration to ``baseUrl`` itself:

- ``href``, ``src`` and ``data-base-url`` of elements,
- ``baseUrl`` and ``full…Url`` of the element ``jupyter-config-data``,
- ``baseUrl``, ``custom``, ``nbextensions``, ``kernelspecs``, from which scripts of classic pages have RequireJS load,
- ``resources`` in answers of ``api/kernelspecs``.

Tried with notebook 7.6 and 6.5, and jupyterlab 4.6. A page without the marks of a Jupyter's own, such as a user's file,
stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

MAX_BYTES = 1 << 20  # of a page; Jupyter's own have less than 100 KiB, and nothing larger is gathered

_MARKS = re.compile(rb"""\sid=["']jupyter-config-data["']|\sdata-base-url=["']""")
_TAG = re.compile(rb"""<(?P<name>[a-zA-Z][^\s/>]*+)(?:"[^"]*+"|'[^']*+'|[^'">])*+>""")
# Every attribute is read, so that what looks like one within another's value is not taken for one.
_ATTRIBUTE = re.compile(
    rb"""(?P<before>\s(?P<name>[^\s"'<>/=]++)\s*+=\s*+)(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)')"""
)
_OF_ADDRESSES = frozenset({b"href", b"src", b"data-base-url"})
_CONFIGURATION = re.compile(rb"""\sid=["']jupyter-config-data["']""")
_CLASSIC = re.compile(rb"""\sdata-base-url=["']""")
_LOADED_FROM = re.compile(
    rb"""(?P<before>\b(?:baseUrl|custom|nbextensions|kernelspecs)\s*+:\s*+')(?P<address>/[^'\\]*+)(?=')"""
)
_FULL_URL = re.compile(r"baseUrl|full[A-Z]\w*Url", re.ASCII)
_RAW_TEXT = frozenset({b"script", b"style", b"textarea", b"title"})
"""Elements whose text holds no elements. Source: HTML, §13.1.2."""
_KERNELSPECS = re.compile(r"/api/kernelspecs(/[^/]+)?", re.ASCII)
# What jinja2's tojson filter escapes, so that no text ends the element or begins another.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"}
_ESCAPED = re.compile("[<>&']")

Rewrite = Callable[[bytes, str], bytes]


class Rewriter:
    """Gathers an answer and gives it rewritten at its end; one of more than ``MAX_BYTES`` passes as it comes."""

    def __init__(self, rewrite: Rewrite, prefix: str) -> None:
        self._rewrite = rewrite
        self._prefix = prefix
        self._gathered = b""
        self._passes = False

    def feed(self, data: bytes) -> bytes:
        """The next bytes of the answer; what may be passed on already."""
        if self._passes:
            return data
        self._gathered += data
        if len(self._gathered) <= MAX_BYTES:
            return b""
        self._passes = True
        rest, self._gathered = self._gathered, b""
        return rest

    def flush(self) -> bytes:
        """What was gathered, at the end of the answer."""
        rest, self._gathered = self._gathered, b""
        return self._rewrite(rest, self._prefix)


def rewrite_for(path: str, content_type: str) -> Rewrite | None:
    """What rewrites a Jupyter's answer of that type from that path of its own; None when it stays as it is."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "text/html" and not path.startswith("/files/"):
        return page_below
    if media_type == "application/json" and _KERNELSPECS.fullmatch(path.rstrip("/")):
        return kernelspecs_below
    return None


def page_below(page: bytes, prefix: str) -> bytes:
    """A whole HTML page with its addresses below ``prefix`` (``/s/x``, without a slash at its end)."""
    if not _MARKS.search(page):
        return page
    kept: list[bytes] = []
    at, is_classic = 0, _CLASSIC.search(page) is not None
    while (begin := page.find(b"<", at)) >= 0:
        if page.startswith(b"<!--", begin):
            end = page.find(b"-->", begin)
            end = len(page) if end < 0 else end + 3
            kept.append(page[at:end])
        elif not page[begin + 1 : begin + 2].isalpha():
            end = begin + 1
            kept.append(page[at:end])
        elif (tag := _TAG.match(page, begin)) is None:
            break  # it never ends: what follows is no element
        else:
            end, name = tag.end(), tag["name"].lower()
            kept += [page[at:begin], _ATTRIBUTE.sub(lambda found: _attribute(found, prefix), tag[0])]
            if name in _RAW_TEXT:
                text_end = _end_of_text(page, end, name)
                text = page[end:text_end]
                if _CONFIGURATION.search(tag[0]):
                    text = _configuration(text, prefix)
                elif is_classic and name == b"script":
                    text = _LOADED_FROM.sub(lambda found: _loaded_from(found, prefix), text)
                kept.append(text)
                end = text_end
        at = end
    return b"".join([*kept, page[at:]])


def kernelspecs_below(answer: bytes, prefix: str) -> bytes:
    """An answer of ``api/kernelspecs`` with the addresses of its resources below ``prefix``."""
    value = _json(answer)
    if value is None:
        return answer
    many = value.get("kernelspecs")
    for spec in many.values() if isinstance(many, dict) else [value]:
        resources = spec.get("resources") if isinstance(spec, dict) else None
        if isinstance(resources, dict):
            resources.update({name: _below(address, prefix) for name, address in resources.items()})
    return json.dumps(value).encode()


def _end_of_text(page: bytes, begin: int, name: bytes) -> int:
    found = re.compile(rb"</" + name + rb"[\s/>]", re.IGNORECASE).search(page, begin)
    return found.start() if found else len(page)


def _attribute(found: re.Match[bytes], prefix: str) -> bytes:
    if found["name"].lower() not in _OF_ADDRESSES:
        return found[0]
    quote, value = (b'"', found["double"]) if found["single"] is None else (b"'", found["single"])
    return found["before"] + quote + str(_below(value.decode("latin-1"), prefix)).encode("latin-1") + quote


def _loaded_from(found: re.Match[bytes], prefix: str) -> bytes:
    return found["before"] + str(_below(found["address"].decode("latin-1"), prefix)).encode("latin-1")


def _configuration(text: bytes, prefix: str) -> bytes:
    value = _json(text)
    if value is None:
        return text
    for key, address in value.items():
        if _FULL_URL.fullmatch(key):
            value[key] = _below(address, prefix)
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], json.dumps(value)).encode()


def _json(text: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _below(address: object, prefix: str) -> object:
    """An address from the root, below the prefix; what is there already, or no such address, stays as it is."""
    if not isinstance(address, str) or not address.startswith("/") or address.startswith("//"):
        return address
    return address if f"{address}/".startswith(f"{prefix}/") else prefix + address
