"""A Jupyter's token is taken out of its pages however they are cut into pieces."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pai_backend.access.proxy.scrub import TokenScrubber

MADE = "0123456789abcdef" * 4


def scrubbed(token: str, page: bytes, cuts: list[int]) -> bytes:
    scrubber = TokenScrubber(token)
    edges = [0, *sorted(cut % (len(page) + 1) for cut in cuts), len(page)]
    pieces = [scrubber.feed(page[start:end]) for start, end in pairwise(edges)]
    return b"".join([*pieces, scrubber.flush()])


@pytest.mark.parametrize("token", ['""', MADE, "a&b'<c>", ""])
@pytest.mark.parametrize("gap", ["", " "])
@given(cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=6))
@example(cuts=list(range(400)))
def test_the_page_configuration_loses_its_token_and_keeps_its_length(token: str, gap: str, cuts: list[int]) -> None:
    before, after = f'<script>{{"a": 1, "token":{gap}', f', "tokens": "x", "b": {json.dumps(["tok", "token"])}}}'
    page = (before + json.dumps(token) + after).encode()
    result = scrubbed(token, page, cuts)
    assert len(result) == len(page)
    assert json.loads(result.removeprefix(b"<script>")) == {"a": 1, "token": "", "tokens": "x", "b": ["tok", "token"]}


def test_classic_pages_lose_it_too() -> None:
    assert b"%22%22" not in scrubbed('""', b'<body data-jupyter-api-token="%22%22" dir="ltr">', [20])


def test_a_long_token_is_taken_out_wherever_it_is() -> None:
    assert MADE.encode() not in scrubbed(MADE, f'<a href="/lab?token={MADE}">'.encode(), [30])


@given(st.binary(max_size=200), st.lists(st.integers(min_value=0), max_size=5))
def test_a_page_without_the_token_passes_unchanged(page: bytes, cuts: list[int]) -> None:
    assert scrubbed(MADE, page, cuts) == page


def test_nothing_is_held_back_that_cannot_begin_the_token() -> None:
    assert TokenScrubber('""').feed(b"data: tick\n\n") == b"data: tick\n\n"
