"""The one base class of all models, so that they are frozen and closed everywhere, and small.

This is the only module that uses where pydantic keeps which fields a value was given. ``SHARES_NAMES`` says whether the
installed release keeps them there; where it does not, each value has a set of its own (ADR 0032).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import AliasGenerator, BaseModel, ConfigDict, create_model
from pydantic.alias_generators import to_camel

MOST_SHARED: Final = 4096
"""Sets of field names that are kept to be shared; those that come later are one value's each, as pydantic has it."""
_NAMES: Final = "__pydantic_fields_set__"
_write = object.__setattr__  # values are frozen


class _SharedNames:
    """Keeps the names of the fields that a value was given: one set for all that are alike. It must not be changed.

    Pydantic makes a set for each value, of 216 to 2,200 bytes: more than half of what a job takes in memory.
    """

    def __init__(self) -> None:
        self._kept = BaseModel.__dict__[_NAMES]  # the slot of each value
        self._whole: dict[type[BaseModel], set[str]] = {}  # of values that were given all their fields
        self._parts: dict[frozenset[str], set[str]] = {}

    def __get__(self, value: BaseModel | None, owner: type[BaseModel]) -> Any:
        return self if value is None else self._kept.__get__(value, owner)

    def __set__(self, value: BaseModel, names: set[str]) -> None:
        kind = type(value)
        if len(names) == len(kind.__pydantic_fields__):
            shared = self._whole.setdefault(kind, names)
        elif (found := self._parts.get(key := frozenset(names))) is not None:
            shared = found
        else:
            shared = names
            if len(self._parts) < MOST_SHARED:
                self._parts[key] = names
        self._kept.__set__(value, shared)


class Model(BaseModel):
    """An immutable value; an unknown field is an error, not a shrug.

    Its JSON has the fields' own names where it is stored, and their camelCase (``by_alias=True``) where it is sent.
    """

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        json_schema_serialization_defaults_required=True,  # all fields are sent, those with a default, too
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, which would write the names in ``update`` into a set that others have, too."""
        if not SHARES_NAMES:
            return super().model_copy(update=update, deep=deep)
        copied = super().model_copy(deep=True) if deep else type(self).__new__(type(self))
        values = (copied if deep else self).__dict__
        names = self.model_fields_set
        _write(copied, "__dict__", {**values, **(update or {})})
        _write(copied, _NAMES, names if not update or update.keys() <= names else names | update.keys())
        if not deep:
            _write(copied, "__pydantic_extra__", self.__pydantic_extra__)
            _write(copied, "__pydantic_private__", self.__pydantic_private__)
        return copied


def _shares_names(base: type[BaseModel]) -> bool:
    """Whether two values of a new class that is derived from ``base`` share their names, and nothing else is changed.

    Any fault means no: what is tried here is what no release promises.
    """
    try:
        kind = create_model("Probe", __base__=base, a=(int, 0), b=(int, 0))
        setattr(kind, _NAMES, _SharedNames())
        made = kind(a=1), kind.model_validate({"a": 1}), kind.model_validate_json('{"a": 1}'), kind.model_construct(a=1)
        copied = base.__new__(kind)
        for name in ("__dict__", _NAMES, "__pydantic_extra__", "__pydantic_private__"):
            _write(copied, name, getattr(made[0], name))
        names = {id(value.model_fields_set) for value in (*made, copied)}
        dumped = {value.model_dump_json(exclude_unset=True) for value in (*made, copied)}
        return (len(names), dumped) == (1, {'{"a":1}'}) and kind().model_fields_set == set()
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


SHARES_NAMES: Final = _shares_names(BaseModel)
if SHARES_NAMES:
    setattr(Model, _NAMES, _SharedNames())
