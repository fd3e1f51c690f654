"""Drivers' errors as sentences for users."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from pai_backend.model.errors import InvalidParameters, Unavailable
from pai_backend.store.faults import _POSTGRES, _SQLITE, reported, translate


class Driver(Exception):
    """Stands for asyncpg's errors, which carry their SQLSTATE."""

    def __init__(self, state: str) -> None:
        super().__init__("DETAIL: Key (private_pem)=(the secret)")
        self.sqlstate = state


def from_sqlite(code: int) -> OperationalError:
    error = sqlite3.OperationalError("some text")
    error.sqlite_errorcode = code
    return OperationalError("UPDATE x", {"value": "the secret"}, error, hide_parameters=True)


@pytest.mark.parametrize("code", _SQLITE)
@pytest.mark.parametrize("extension", [0, 1, 10])  # SQLITE_IOERR_WRITE and its like
def test_every_sqlite_fault_is_a_sentence_with_a_remedy(code: int, extension: int) -> None:
    found = translate(from_sqlite(code | extension << 8), "The database file /x/pai.sqlite")

    assert isinstance(found, Unavailable)
    assert found.message.startswith("The database file /x/pai.sqlite ")
    assert found.hint
    assert "secret" not in found.message


@pytest.mark.parametrize("state", [*(f"{known:0<5}" for known in _POSTGRES), "53100", "57P01", "08006", "28P01"])
def test_every_postgresql_fault_is_a_sentence_with_a_remedy(state: str) -> None:
    error = DBAPIError("INSERT", None, Driver(state), hide_parameters=True)

    found = translate(error, "The PostgreSQL server h:5432, database d,")

    assert isinstance(found, Unavailable)
    assert found.hint
    assert "secret" not in found.message


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "no"), TimeoutError(), PoolTimeout()])
def test_a_network_that_fails_is_unavailable(error: Exception) -> None:
    with pytest.raises(Unavailable) as refusal, reported("The server"):
        raise error
    assert refusal.value.__cause__ is error


@pytest.mark.parametrize("error", [Driver("22021"), Driver("22003"), OverflowError("too large")])
def test_a_value_that_does_not_fit_is_the_callers_fault(error: Exception) -> None:
    assert isinstance(translate(error, "The server"), InvalidParameters)


@pytest.mark.parametrize("error", [Driver("42601"), from_sqlite(1), from_sqlite(19), KeyError("x")])
def test_a_defect_of_ours_passes_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, reported("The server"):
        raise error
    assert raised.value is error
