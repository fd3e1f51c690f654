"""What the scrubber promises, for any values and any text: against a plain search that is too slow to be used."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from pai_backend.model.scrub import SHORTEST, Scrubber, spellings

FEW_LETTERS = st.text("ab'\"% é", min_size=1, max_size=9)
"""Values over few letters overlap and contain each other, which is where searches go wrong."""

VALUES = st.lists(FEW_LETTERS, max_size=5)
CUTS = st.lists(st.integers(0, 200), max_size=8)


@st.composite
def output(draw: st.DrawFn, values: list[str]) -> bytes:
    """A text with the values in it, whole and in parts, in all their spellings."""
    known = [form for value in values for form in spellings(value)] or [b"ab"]
    whole = st.sampled_from(known)
    part = whole.flatmap(lambda form: st.integers(0, len(form)).map(lambda at: form[at:]))
    return b"".join(draw(st.lists(st.one_of(whole, part, st.binary(max_size=6)), max_size=12)))


def pieces(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[first:last] for first, last in pairwise(places)]


def plainly_scrubbed(values: list[str], text: bytes) -> bytes:
    """Every occurrence of every spelling, looked for one by one."""
    out = bytearray(text)
    for form in {form for value in values for form in spellings(value.strip())}:
        at = text.find(form) if len(form) >= SHORTEST else -1
        while at >= 0:
            out[at : at + len(form)] = b"*" * len(form)
            at = text.find(form, at + 1)
    return bytes(out)


@given(st.data(), VALUES)
def test_exactly_the_bytes_of_occurrences_are_covered(data: st.DataObject, values: list[str]) -> None:
    text = data.draw(output(values))

    scrubbed = Scrubber(values).whole(text)

    assert len(scrubbed) == len(text)
    assert scrubbed == plainly_scrubbed(values, text)


@given(st.data(), VALUES)
def test_no_value_is_left(data: st.DataObject, values: list[str]) -> None:
    text = data.draw(output(values)).replace(b"*", b"-")

    scrubbed = Scrubber(values).whole(text)

    for value in values:
        plain = value.strip().encode()
        assert len(plain) < SHORTEST or plain not in scrubbed


@given(st.data(), VALUES, CUTS)
def test_how_a_text_is_cut_into_pieces_changes_nothing(data: st.DataObject, values: list[str], cuts: list[int]) -> None:
    text = data.draw(output(values))
    scrubber = Scrubber(values)
    work = scrubber.begin()

    shown = b"".join(work.feed(piece) for piece in pieces(text, cuts)) + work.end()

    assert shown == scrubber.whole(text)


@given(st.data(), VALUES, CUTS)
def test_what_is_held_back_may_still_become_a_value(data: st.DataObject, values: list[str], cuts: list[int]) -> None:
    text = data.draw(output(values))
    scrubber = Scrubber(values)
    known = [form for value in values for form in spellings(value.strip()) if len(form) >= SHORTEST]
    work, shown, given_so_far = scrubber.begin(), 0, b""
    for piece in pieces(text, cuts):
        given_so_far += piece
        shown += len(work.feed(piece))
        held = given_so_far[shown:]
        assert not held or any(form.startswith(held) for form in known), "nothing is held back without need"


@given(st.data(), VALUES, st.integers(0, 200))
def test_reading_may_begin_anywhere_when_it_looks_back(data: st.DataObject, values: list[str], first: int) -> None:
    text = data.draw(output(values))
    scrubber = Scrubber(values)
    first = min(first, len(text))
    start = max(0, first - scrubber.reach)

    shown = scrubber.whole(text[start:])[first - start :]

    assert shown == scrubber.whole(text)[first:]


@given(st.data(), VALUES.filter(any), st.integers(0, 9), CUTS)
@example(data=None, values=["abab"], lost=0, cuts=[])
def test_the_rest_of_a_value_whose_beginning_is_lost_is_covered(
    data: st.DataObject | None, values: list[str], lost: int, cuts: list[int]
) -> None:
    cut_value = max((value.strip() for value in values), key=len).encode()
    rest = cut_value[min(lost + 1, len(cut_value)) :]
    text = rest + (data.draw(output(values)) if data is not None else b"")
    scrubber = Scrubber(values)
    work = scrubber.begin(cut=True)

    shown = b"".join(work.feed(piece) for piece in pieces(text, cuts)) + work.end()

    assert len(shown) == len(text)
    if len(rest) >= SHORTEST:
        assert shown.startswith(b"*" * len(rest))
    after = shown[len(rest) :]
    assert after == scrubber.whole(text)[len(rest) :] or b"*" in after, "covers more only where a value goes on"
