"""The plain client: its calls look like those of the asynchronous one."""

from __future__ import annotations

import inspect

import pytest

from jupyter_pai.client import AsyncClient
from jupyter_pai.sync import Client


@pytest.mark.parametrize("call", ["submit", "jobs", "follow_log"])
def test_help_shows_the_parameters_and_the_words_of_the_asynchronous_call(call: str) -> None:
    plain, asynchronous = getattr(Client, call), getattr(AsyncClient, call)
    assert inspect.signature(plain) == inspect.signature(asynchronous)
    assert plain.__doc__ == asynchronous.__doc__
