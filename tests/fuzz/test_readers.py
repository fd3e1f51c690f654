"""Whatever the input, reading, masking and converting answer with a document or a DocumentError, soon.

``make test`` tries the same inputs each time, and every one that was ever found (``corpus/``). ``make fuzz`` draws new
ones for PAI_FUZZ_S seconds in all and writes what fails, shrunk, into ``corpus/``.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pai_backend.protocol import Document
from tests.fuzz.checks import CHECKS, bounded, check_reading
from tests.fuzz.inputs import DOCUMENTS, SOURCES
from tests.support.repeatable import is_random

CORPUS = Path(__file__).parent / "corpus"
FOUND = sorted(CORPUS.glob("*.case"))
EXAMPLES = 500
FUZZ_S = float(os.environ.get("PAI_FUZZ_S", "60"))


class Found:
    """The input that failed last; Hypothesis ends with the smallest."""

    source: bytes | None = None

    def keep(self, folder: Path) -> Path:
        """Write it into ``folder`` under the hash of its bytes."""
        assert self.source is not None
        path = folder / case_name(self.source)
        path.write_bytes(self.source)
        return path


def case_name(source: bytes) -> str:
    return f"{hashlib.sha256(source).hexdigest()[:16]}.case"


def one_round(name: str, found: Found, examples: int = EXAMPLES) -> None:
    """Check inputs until one fails or all have been tried."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
    @given(SOURCES)
    def each(source: bytes) -> None:
        try:
            bounded(name, source)
        except BaseException:
            found.source = source
            raise

    each()


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.timeout(FUZZ_S + 300)
def test_any_input_is_answered(name: str) -> None:
    found = Found()
    if not is_random():
        one_round(name, found)
        return
    end = time.monotonic() + FUZZ_S / len(CHECKS)
    while time.monotonic() < end:
        try:
            one_round(name, found)
        except BaseException as failure:
            if found.source is not None:
                failure.add_note(f"The input is kept in {found.keep(CORPUS)}.")
            raise


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_stays_answered(path: Path, name: str) -> None:
    source = path.read_bytes()
    assert path.name == case_name(source), "the bytes of a case must not change"
    bounded(name, source)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_documents_it_starts_from_are_answered(path: Path, name: str) -> None:
    bounded(name, path.read_bytes())


def test_the_checks_find_what_they_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(source: bytes) -> Document:
        raise ValueError("not a DocumentError")

    monkeypatch.setattr("tests.fuzz.checks.read_document", wrong)
    with pytest.raises(ValueError, match="not a DocumentError"):
        check_reading(b"")


def test_what_fails_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(source: bytes) -> None:
        assert b"a" not in source

    monkeypatch.setitem(CHECKS, "reading", wrong)
    found = Found()
    with pytest.raises(AssertionError):
        one_round("reading", found)
    kept = found.keep(tmp_path).read_bytes()
    assert b"a" in kept
    assert [path.name for path in tmp_path.iterdir()] == [case_name(kept)]
