"""What rewriting the pages of a Jupyter never does, whatever the page is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.proxy.rewriting import Rewriter, page_below

PREFIX = "/user/ann/pai/s/a--j"
MARK = b'<body data-base-url="/">'
# Pieces that pages are made of, whole and broken.
PIECES = st.sampled_from(
    [
        "<a href='/x'>",
        '<img src="/y" alt="src=\'/z\'">',
        '<link href="style.css">',
        "<script>",
        "</script>",
        "<SCRIPT src=/u>",
        '<script id="jupyter-config-data">{"baseUrl": "/", "n": [1.5, "é<"]}</script>',
        "<!--",
        "-->",
        "<",
        '"',
        "'",
        ">",
        " href=",
        "//elsewhere",
        "é",
        "\x00",
    ]
)
PAGES = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map(lambda pieces: "".join(pieces).encode())


@given(PAGES)
def test_what_is_rewritten_once_is_not_rewritten_again(body: bytes) -> None:
    once = page_below(MARK + body, PREFIX)
    assert page_below(once, PREFIX) == once


@given(PAGES)
def test_without_the_prefix_a_page_is_what_it_was(body: bytes) -> None:
    page = MARK + body.replace(b"jupyter-config-data", b"other-data")  # whose text is written anew
    assert page_below(page, PREFIX).replace(PREFIX.encode(), b"") == page


@given(PAGES, st.lists(st.integers(min_value=1, max_value=50), max_size=20))
def test_a_page_reads_the_same_however_it_comes(body: bytes, sizes: list[int]) -> None:
    page, rewriter, given_out, at = MARK + body, Rewriter(page_below, PREFIX), b"", 0
    for size in sizes:
        given_out += rewriter.feed(page[at : at + size])
        at += size
    given_out += rewriter.feed(page[at:]) + rewriter.flush()
    assert given_out == page_below(page, PREFIX)
