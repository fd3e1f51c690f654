"""Pages of a Jupyter server below a path."""

from __future__ import annotations

import json

import pytest

from pai_backend.access.proxy.rewriting import (
    MAX_BYTES,
    Rewriter,
    kernelspecs_below,
    page_below,
    rewrite_for,
)

PREFIX = "/user/ann/pai/s/a--j"
CONFIGURATION = {
    "baseUrl": "/",
    "fullStaticUrl": "/static/lab",
    "fullLabextensionsUrl": "/lab/extensions",
    "appUrl": "/lab",
    "settingsUrl": "/lab/api/settings",
    "fullTextSearch": "/no/address",
    "title": "<Müller & 'Söhne'>",
    "nested": {"baseUrl": "/"},
}


def page(configuration: str) -> bytes:
    return f"""<!doctype html><html><head><link rel="icon" href="/static/favicon.ico"><link href="static/x.css">
<!-- <a href="/comment"> -->
<script id="jupyter-config-data" type="application/json">{configuration}</script>
<script src='/static/main.js'></script><script>let a = '<a href="/script">';</script></head>
<body data-base-url="/" title=" href='/text' "><a href="//elsewhere/x">1 < 2</a><img src="/api/x?y=/z"></body></html>
""".encode()


def test_the_known_places_of_a_page_are_below_the_path_and_nothing_else_changes() -> None:
    before = page(json.dumps(CONFIGURATION))
    after = page_below(before, PREFIX)
    text = after.decode()
    expected = before.decode()
    for address in ('href="/static/favicon', "src='/static/main", 'data-base-url="/"', 'src="/api/x'):
        expected = expected.replace(address, address.replace("/", f"{PREFIX}/", 1))
    begin, end = text.index("{"), text.index("</script>")
    assert text[:begin] == expected[: expected.index("{")]
    assert text[end:] == expected[expected.index("</script>") :]
    assert not set("<>&'") & set(text[begin:end])
    assert json.loads(text[begin:end]) == CONFIGURATION | {
        "baseUrl": f"{PREFIX}/",
        "fullStaticUrl": f"{PREFIX}/static/lab",
        "fullLabextensionsUrl": f"{PREFIX}/lab/extensions",
    }


LOADING = b"""<script>
require.config({ baseUrl: '/static/', paths: { 'auth/js/main': 'auth/js/main.min', custom : '/custom', nbextensions
: '/nbextensions', kernelspecs:'/kernelspecs', jquery: 'components/jquery', other: '/other', customs: '/customs' } });
</script>"""


def test_the_scripts_of_a_classic_page_load_from_below_the_path() -> None:
    after = page_below(LOADING + b'<body data-base-url="/"></body>', PREFIX).partition(b"<body")[0].decode()
    expected = LOADING.decode()
    for address in ("'/static/'", "'/custom'", "'/nbextensions'", "'/kernelspecs'"):
        expected = expected.replace(address, address.replace("/", f"{PREFIX}/", 1))
    assert after == expected
    lab = LOADING + page(json.dumps(CONFIGURATION)).replace(b"data-base-url", b"data-other")
    assert page_below(lab, PREFIX).startswith(LOADING), "other pages have no such scripts"


def test_a_page_that_is_no_jupyters_stays_as_it_is() -> None:
    plain = b'<html><a href="/x"> id="jupyter-config-data2" </a></html>'
    assert page_below(plain, PREFIX) == plain


@pytest.mark.parametrize("configuration", ["", "{", "[]", "[" * 100_000])
def test_a_configuration_that_cannot_be_read_stays_as_it_is(configuration: str) -> None:
    assert f">{configuration}<".encode() in page_below(page(configuration), PREFIX)


def test_a_tag_without_its_end_ends_the_search() -> None:
    broken = b'<body data-base-url="/"><a href="/x' + b"<a " * 10
    assert page_below(broken, PREFIX) == broken.replace(b'url="/"', f'url="{PREFIX}/"'.encode())


def test_resources_of_kernels_are_below_the_path() -> None:
    one = {"name": "p", "spec": {"x": "/y"}, "resources": {"logo": "/kernelspecs/p/logo.png", "far": "https://x/y"}}
    moved = one | {"resources": {"logo": f"{PREFIX}/kernelspecs/p/logo.png", "far": "https://x/y"}}
    many = {"default": "p", "kernelspecs": {"p": one, "odd": 3}}
    assert json.loads(kernelspecs_below(json.dumps(one).encode(), PREFIX)) == moved
    answer = kernelspecs_below(json.dumps(many).encode(), PREFIX)
    assert json.loads(answer) == {"default": "p", "kernelspecs": {"p": moved, "odd": 3}}
    assert kernelspecs_below(b'{"message"', PREFIX) == b'{"message"'


@pytest.mark.parametrize(
    ("path", "content_type", "rewrite"),
    [
        ("/lab", "text/html; charset=UTF-8", page_below),
        ("/files/report.html", "text/html", None),
        ("/api/kernelspecs", "application/json", kernelspecs_below),
        ("/api/kernelspecs/python3/", "application/json; charset=utf-8", kernelspecs_below),
        ("/api/contents", "application/json", None),
        ("/lab/main.js", "text/javascript", None),
    ],
)
def test_only_pages_and_kernels_are_rewritten(path: str, content_type: str, rewrite: object) -> None:
    assert rewrite_for(path, content_type) is rewrite


def test_a_large_answer_passes_as_it_comes() -> None:
    rewriter = Rewriter(page_below, PREFIX)
    assert rewriter.feed(page("{}")) == b""
    assert rewriter.feed(b" " * MAX_BYTES) == page("{}") + b" " * MAX_BYTES
    assert (rewriter.feed(b"rest"), rewriter.flush()) == (b"rest", b"")
