"""Laws of the small file formats: what is written is what is read, whatever the text."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.engine.local.layout import to_json
from pai_backend.engine.local.logfiles import LogReader, segments, times
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Launch, decode, encode

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NO_NUL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
LABELS = st.from_regex(r"[A-Za-z0-9._~]+", fullmatch=True)
NAMES = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1)


@given(
    st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.none() | st.floats(allow_nan=False, allow_infinity=False))
)
def test_records_are_json(fields: dict[str, str | int | float | None]) -> None:
    assert json.loads(to_json(fields)) == json.loads(json.dumps(fields))


@given(
    st.builds(
        Launch,
        NO_NUL,
        st.integers(min_value=0),
        NO_NUL,
        st.dictionaries(NAMES, NO_NUL),
        keep=st.booleans(),
        ports=st.dictionaries(LABELS, st.lists(st.integers(1, 65535), min_size=1).map(tuple)),
        directories=st.lists(NO_NUL).map(tuple),
    )
)
def test_a_launch_file_gives_back_what_was_put_in(launch: Launch) -> None:
    assert vars(decode(encode(launch))) == vars(launch)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(min_size=1, max_size=40))),
    st.integers(min_value=1, max_value=60),
    st.integers(min_value=-200, max_value=1500),
)
def test_any_offset_reads_a_suffix_of_all_output(writes: list[tuple[str, bytes]], limit: int, offset: int) -> None:
    """Exactly the bytes from the offset on, or from the oldest kept byte, of which at least ``limit`` are kept."""
    everything = b"".join(data for _, data in writes)
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(folder, limit)
        for stream, data in writes:
            capture.add(stream, data)
        capture.close()
        reader = LogReader("all", offset)
        read = b"".join(iter(lambda: reader.read(Path(folder)), b""))
    wished = everything[offset:] if offset >= 0 else everything[max(0, len(everything) + offset) :]
    assert wished.endswith(read)
    assert len(read) >= min(len(wished), limit)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stdout", "stderr"]),
            st.binary(min_size=1, max_size=20),
            st.integers(min_value=-5000, max_value=5000),
        )
    ),
    st.integers(min_value=1, max_value=60),
    st.integers(min_value=0, max_value=300),
    st.integers(min_value=0, max_value=300),
)
def test_any_part_of_a_log_tells_within_a_second_when_each_byte_came(
    writes: list[tuple[str, bytes, int]], limit: int, start: int, size: int
) -> None:
    """Also through rotations, and when the clock is set back."""
    now = 1_700_000_000_000
    came: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(folder, limit, lambda: now)
        for stream, data, pause in writes:
            now += pause
            capture.add(stream, data)
            came += [now] * len(data)
        capture.close()
        kept = segments(Path(folder), "all")
        found = times(Path(folder), "all", start, start + size)
    wanted = range(max(start, kept[0].base), min(start + size, len(came))) if kept else range(0)
    assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
    assert [offset for offset, _ in found[:1]] == list(wanted[:1])
    for byte in wanted:
        told = [at for offset, at in found if offset <= byte][-1]
        assert 0 <= came[byte] - told < 1000
