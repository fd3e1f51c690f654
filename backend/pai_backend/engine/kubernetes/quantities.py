"""Amounts of resources as the API writes them. Source: Kubernetes documentation, "Quantity"."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?", re.ASCII)
_SCALES: Final = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate("num", start=-3)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def quantity(value: object) -> Decimal:
    """A quantity as the API writes it, such as ``3920m``, ``8145084Ki`` or ``1e3``. Raises ValueError."""
    text = value if isinstance(value, str) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[1].count(".") > 1 or not any(char.isdigit() for char in match[1]):
        raise ValueError(f"{text[:40]!r} is not a quantity")
    number, unit, exponent = match.groups()
    return Decimal(number) * (_SCALES[unit] if unit else Decimal(10) ** int(exponent or 0))


def amount_of(resource: str, value: Decimal) -> str:
    """So much of a resource in words: memory and disk in MiB."""
    if resource in ("memory", "ephemeral-storage"):
        return f"{value / _SCALES['Mi']:.0f} MiB"
    return f"{value.normalize():f}"
