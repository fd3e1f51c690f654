"""What a machine lacks for a test.

A program that is missing is a mistake where CI is set, whose machine has all that ``tools/system-packages test`` names;
elsewhere the test is left out. A device can be missing anywhere: nobody installs one.
"""

from __future__ import annotations

import os
import shutil
import warnings

import pytest


def needs(*programs: str) -> None:
    """Leave the calling test out where one of these programs is missing; with ``CI`` set it fails instead."""
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    why = f"not installed: {', '.join(missing)}; tools/system-packages test names the packages"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def needs_device(path: str, what: str) -> None:
    """Leave the calling test out where this device cannot be opened, and say among the warnings what was not shown."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        why = f"{what} is not shown here: {error}"
        warnings.warn(pytest.PytestWarning(why), stacklevel=2)
        pytest.skip(why)
