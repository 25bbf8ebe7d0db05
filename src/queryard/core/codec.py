"""The JSON form of the model, of events and of commands.

A record is an object, with the field names as keys; fields at their default are left out, so
that old logs stay readable when a field is added. Decoding checks names and types and says
where in the data it stumbled.

>>> from .events import TaskFinished
>>> encode_named(TaskFinished(2.5, 7, "n1"))
{'type': 'TaskFinished', 'time_s': 2.5, 'launch': 7, 'place': 'n1'}
>>> decode_event({'type': 'TaskFinished', 'time_s': 2.5, 'launch': 7, 'place': 'n1'})
TaskFinished(time_s=2.5, launch=7, place='n1', output_bytes=0.0, rider_bytes=None)
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .commands import Command
from .errors import InvalidModel, InvalidRecord, unknown_name
from .events import Event

T = TypeVar("T")
_MISSING = object()

EVENTS: dict[str, Any] = {cls.__name__: cls for cls in get_args(Event)}
COMMANDS: dict[str, Any] = {cls.__name__: cls for cls in get_args(Command)}


@cache
def _fields(cls: Hashable) -> dict[str, tuple[Any, Any]]:
    """Name -> (type, default) of a dataclass or a named tuple."""
    record: Any = cls
    hints = get_type_hints(record)
    if dataclasses.is_dataclass(record):
        return {
            f.name: (hints[f.name], _MISSING if f.default is dataclasses.MISSING else f.default)
            for f in dataclasses.fields(record)
        }
    defaults = record._field_defaults
    return {name: (hints[name], defaults.get(name, _MISSING)) for name in record._fields}


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) or hasattr(value, "_fields")


def encode(value: Any) -> Any:
    """A model object, event or command as plain JSON data."""
    if _is_record(value):
        plain = {}
        for name, (_, default) in _fields(cast(Hashable, type(value))).items():
            item = getattr(value, name)
            if default is _MISSING or item != default:
                plain[name] = encode(item)
        return plain
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def encode_named(value: Event | Command) -> dict[str, Any]:
    """An event or command with its type's name, so that it can be read back."""
    return {"type": type(value).__name__, **encode(value)}


def decode(cls: type[T], data: Any, where: str = "") -> T:
    """Build `cls` from plain data; errors name the place, the field and the value."""
    where = where or cls.__name__
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"{where}: expected a table of fields, got {data!r}")
    fields = _fields(cast(Hashable, cls))
    for name in data:
        if name not in fields:
            raise InvalidRecord(f"{where}: {unknown_name('field', name, fields)}")
    values = {}
    for name, (hint, default) in fields.items():
        if name in data:
            values[name] = _convert(hint, data[name], f"{where}.{name}")
        elif default is _MISSING:
            raise InvalidRecord(f"{where}: the field {name!r} is missing")
    try:
        return cls(**values)
    except InvalidModel as error:
        raise InvalidRecord(f"{where}: {error}") from error


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin is Union or origin is types.UnionType:
        options = get_args(hint)
        if value is None and type(None) in options:
            return None
        return _convert(next(o for o in options if o is not type(None)), value, where)
    if origin is Literal:
        if value not in get_args(hint):
            raise InvalidRecord(f"{where}: {unknown_name('value', value, get_args(hint))}")
        return value
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InvalidRecord(f"{where}: expected a list, got {value!r}")
        item = get_args(hint)[0]
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise InvalidRecord(f"{where}: expected a table, got {value!r}")
        return dict(value)
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        if isinstance(value, list) and hasattr(hint, "_fields"):
            value = dict(zip(hint._fields, value, strict=False))
        return decode(cast(type[Any], hint), value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise InvalidRecord(f"{where}: the number is too large") from None
    if hint is Any or (isinstance(value, hint) and (hint is bool or not isinstance(value, bool))):
        return value
    raise InvalidRecord(f"{where}: expected {hint.__name__}, got {value!r}")


def _decode_named(known: Mapping[str, Any], what: str, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping) or "type" not in data:
        raise InvalidRecord(f"{where or what}: expected a table with a 'type', got {data!r}")
    name = data["type"]
    if not isinstance(name, str) or name not in known:
        raise InvalidRecord(f"{where or what}: {unknown_name(what, name, known)}")
    fields = {key: value for key, value in data.items() if key != "type"}
    return decode(known[name], fields, where or name)


def decode_event(data: Any, where: str = "") -> Event:
    return cast(Event, _decode_named(EVENTS, "event", data, where))


def decode_command(data: Any, where: str = "") -> Command:
    return cast(Command, _decode_named(COMMANDS, "command", data, where))
