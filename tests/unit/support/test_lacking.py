"""What a machine lacks leaves a test out, but nothing that CI should have does so unseen."""

from __future__ import annotations

import pytest

from tests.support.lacking import needs, needs_device


def test_a_missing_program_is_a_failure_in_ci_and_leaves_out_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("sh")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not installed: no-such-program; tools/system-packages"):
        needs("sh", "no-such-program")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no-such-program"):
        needs("no-such-program")


def test_a_missing_device_leaves_out_with_a_warning() -> None:
    needs_device("/dev/null", "anything")
    with pytest.raises(pytest.skip.Exception), pytest.warns(pytest.PytestWarning, match="anything is not shown here"):
        needs_device("/dev/no-such-device", "anything")
