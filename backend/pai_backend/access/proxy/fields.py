"""The fields of a head: in their order and spelling, found by names in any case. Pure, and made for each request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import overload


class HeaderFields:
    """Fields as they came, or are to be sent."""

    __slots__ = ("_by_name", "triples")

    def __init__(self, fields: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        self.triples: list[tuple[str, str, str]] = []
        """Name in lower case, name, value."""
        self._by_name: dict[str, list[str]] = {}
        for name, value in fields.items() if isinstance(fields, Mapping) else fields:
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Add a field; one of the same name stays."""
        low = name.lower()
        self.triples.append((low, name, value))
        values = self._by_name.get(low)
        if values is None:
            self._by_name[low] = [value]
        else:
            values.append(value)

    def get_list(self, name: str) -> list[str]:
        """The values of all fields of a name."""
        return self._by_name.get(name.lower(), [])

    def get_all(self) -> list[tuple[str, str]]:
        """All fields."""
        return [(name, value) for _, name, value in self.triples]

    @overload
    def get(self, name: str) -> str | None: ...

    @overload
    def get(self, name: str, default: str) -> str: ...

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of a field; of several, all, as RFC 9110 §5.2 joins them."""
        values = self._by_name.get(name.lower())
        return default if values is None else values[0] if len(values) == 1 else ",".join(values)

    def drop(self, name: str) -> None:
        """Take all fields of a name away."""
        low = name.lower()
        if self._by_name.pop(low, None) is not None:
            self.triples = [triple for triple in self.triples if triple[0] != low]

    def copy(self) -> HeaderFields:
        """Another with the same fields."""
        return HeaderFields(self.get_all())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_name

    def __getitem__(self, name: str) -> str:
        return ",".join(self._by_name[name.lower()])

    def __setitem__(self, name: str, value: str) -> None:
        self.drop(name)
        self.add(name, value)
