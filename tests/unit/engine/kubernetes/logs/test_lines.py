"""Output is taken from a kubelet's answers byte for byte, and gone on with where it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.engine.kubernetes.logs.lines import MARGIN, Lines, Position
from tests.support.kubelet_answers import Written, answer, lines

NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
START = Position()
BYTES = [
    b"\x00\xff\xfe\n",
    b"part " * 9,
    b"of a line\n",
    b"2026-11-21T12:00:00.000000000Z like a time\n",
    b"\n",
    b"end",
]


def read(said: bytes, after: Position = START, size: int = 7, **how: bool) -> tuple[bytes, Lines]:
    """What comes of an answer that arrives in pieces."""
    found = Lines(after, **how)
    data = b"".join(found.feed(said[at : at + size]) for at in range(0, len(said), size))
    found.finish()
    return data, found


@pytest.mark.parametrize("size", [1, 2, 31, 36, 1000])
def test_what_was_written_comes_out_byte_for_byte(size: int) -> None:
    data, found = read(answer(lines(*BYTES, begin=NOON)), size=size)
    assert data == b"".join(BYTES)
    assert (found.words, found.position.end) == (b"", len(data))


@pytest.mark.parametrize("read_first", range(len(b"".join(BYTES)) + 1))
def test_reading_goes_on_after_any_byte(read_first: int) -> None:
    """What was read in part is found again in an answer from a little before it."""
    said, whole = answer(lines(*BYTES, begin=NOON)), b"".join(BYTES)
    begun, data = Lines(Position()), b""
    for number in range(len(said)):
        if len(data) == read_first:
            break
        data += begun.feed(said[number : number + 1])
    rest, again = read(said, begun.position)
    assert data + rest == whole
    assert not again.searching or not read_first


def test_an_answer_from_a_time_on_may_begin_inside_a_line() -> None:
    """The line began before that time, and goes on after it."""
    early = [Written(NOON, 0, b"a very long "), Written(NOON + timedelta(minutes=5), 1, b"line\n")]
    late = lines(b"second\n", b"third\n", begin=NOON + timedelta(minutes=5, seconds=1))
    _, before = read(answer(early + late[:1]))
    said = answer(early + late, before.position.since)
    assert said.startswith(b"line\n")
    rest, found = read(said, before.position, cut=True)
    assert (rest, found.searching) == (b"third\n", False)


def test_lines_of_one_moment_are_told_apart() -> None:
    same = [Written(NOON, 5, b"%d\n" % number) for number in range(5)]
    for count in range(1, 5):
        _, before = read(answer(same[:count]))
        rest, _ = read(answer(same), before.position)
        assert rest == b"".join(each.text for each in same[count:])


def test_an_answer_without_the_last_line_is_seen_to_lack_it() -> None:
    """It was rotated away: nothing is taken, so that all of it can be read anew."""
    _, before = read(answer(lines(b"old\n", begin=NOON)))
    rest, found = read(answer(lines(b"new\n", begin=NOON + timedelta(seconds=1))), before.position)
    assert (rest, found.searching) == (b"", True)


def test_words_of_a_kubelet_are_no_output() -> None:
    said = b"failed to create fsnotify watcher: too many open files"
    data, found = read(answer(lines(b"one\n", begin=NOON)) + said, growing=True)
    assert (data, found.words) == (b"one\n", said)
    data, found = read(b"unable to retrieve container logs for containerd://0123")
    assert (data, found.words[:6]) == (b"", b"unable")


def test_words_of_a_kubelet_inside_a_line_are_held_back_and_given_when_more_comes() -> None:
    """A task may print the same: what follows, or a reading at the end, tells."""
    said = b"rpc error: code = NotFound desc = no such container"
    begun = answer(lines(b"> ", begin=NOON))
    growing = Lines(Position(), growing=True)
    assert growing.feed(begun + said) == b"> "
    assert growing.feed(b", it says\n") == said + b", it says\n"
    data, found = read(begun + said, growing=True, size=1000)
    assert (data, found.words, found.position.end) == (b"> ", said, 2)
    data, found = read(begun + said)
    assert (data, found.words) == (b"> " + said, b"")


def test_a_kubelet_is_asked_from_whole_seconds_before_the_last_line() -> None:
    _, found = read(answer(lines(b"one\n", begin=NOON)))
    assert datetime.fromisoformat(found.position.since) == NOON.replace(microsecond=0) - MARGIN
    zoned = Position(4, b"2026-11-21T20:00:00.123456789+08:00", 1, 4)
    assert zoned.since == "2026-11-21T19:59:50+08:00"
