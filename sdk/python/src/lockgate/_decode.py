"""JSON as values of a program, checked against type hints. A reader is made once for a type, when a handler is registered."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Literal, Union
from uuid import UUID

from lockgate.errors import SetupError

Reader = Callable[[Any, str], Any]


class Misfit(Exception):
    """A value does not fit its type."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"field `{path}`: {problem}" if path else problem)
        self.path = path


def reader(hint: Any, *, ignore_unknown: bool = False) -> Reader:
    """A function from a JSON value and its path to a value of the type. Raises `SetupError` for a type that JSON cannot hold."""
    return _Readers(ignore_unknown).of(hint)


class _Readers:
    def __init__(self, ignore_unknown: bool) -> None:
        self.ignore_unknown = ignore_unknown
        self.made: dict[Any, Reader] = {}

    def of(self, hint: Any) -> Reader:
        if hint is Any or hint is object or hint is dataclasses.MISSING:
            return _anything
        if hint is None or hint is type(None):
            return _null
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        if isinstance(hint, type) and hint in _PLAIN:
            return _PLAIN[hint]
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is not None:
            return self.of_generic(hint, origin, args)
        if isinstance(hint, type):
            return self.of_class(hint)
        raise _unsupported(hint)

    def of_generic(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Reader:
        if origin is typing.Annotated:
            return self.of(args[0])
        if origin is Literal:
            return _literal(args)
        if origin in (Union, types.UnionType):
            return _union([self.of(arg) for arg in args], " or ".join(_name(arg) for arg in args))
        if origin in (list, Sequence):
            return _list(self.of(args[0]))
        if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
            item = _list(self.of(args[0]))
            return lambda value, path: tuple(item(value, path))
        if origin in (dict, Mapping) and args[0] is str:
            return _dict(self.of(args[1]))
        raise _unsupported(hint)

    def of_class(self, hint: type) -> Reader:
        if hint in self.made:
            return self.made[hint]
        if hint in (list, Sequence):
            return _list(_anything)
        if hint in (dict, Mapping):
            return _dict(_anything)
        if issubclass(hint, Enum):
            return _enum(hint)
        if hasattr(hint, "model_validate"):
            return _pydantic(hint)
        if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
            # A type may hold itself: the reader is known before its fields are looked at.
            fields: dict[str, tuple[Reader, bool]] = {}
            self.made[hint] = made = _record(hint, fields, self.ignore_unknown)
            fields.update(self.fields_of(hint))
            return made
        raise _unsupported(hint)

    def fields_of(self, hint: type) -> dict[str, tuple[Reader, bool]]:
        """Name → reader, and whether the field must be there."""
        try:
            hints = typing.get_type_hints(hint)
        except NameError as error:
            step = "define the types at the top of the module"
            raise SetupError(
                f"the fields of {hint.__name__} cannot be read: {error}", code="setup", next_step=step
            ) from error
        if not dataclasses.is_dataclass(hint):
            required = getattr(hint, "__required_keys__", frozenset(hints))
            return {name: (self.of(of_field), name in required) for name, of_field in hints.items()}
        missing = dataclasses.MISSING
        return {
            field.name: (self.of(hints[field.name]), field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(hint)
            if field.init
        }


def _anything(value: Any, path: str) -> Any:
    return value


def _null(value: Any, path: str) -> None:
    if value is not None:
        raise _not("null", value, path)


def _bool(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _not("a bool", value, path)
    return value


def _int(value: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not("an int", value, path)
    return value


def _float(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _not("a number", value, path)
    return float(value)


def _str(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _not("a str", value, path)
    return value


def _parsed(parse: Callable[[str], Any], what: str) -> Reader:
    def read(value: Any, path: str) -> Any:
        try:
            return parse(_str(value, path))
        except (ValueError, InvalidOperation):
            raise Misfit(path, f"must be {what}, not {value!r}") from None

    return read


def _utc_suffix(text: str) -> str:
    """`fromisoformat` of Python 3.10 knows no Z."""
    return f"{text[:-1]}+00:00" if text.endswith("Z") else text


_PLAIN: dict[type, Reader] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    datetime: _parsed(lambda text: datetime.fromisoformat(_utc_suffix(text)), "a time such as 2030-01-31T08:00:00Z"),
    date: _parsed(date.fromisoformat, "a date such as 2030-01-31"),
    time: _parsed(time.fromisoformat, "a time of day such as 08:00:00"),
    UUID: _parsed(UUID, "a UUID"),
    Decimal: _parsed(Decimal, "a decimal number in quotes"),
}


def _literal(allowed: tuple[Any, ...]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not any(value == one and type(value) is type(one) for one in allowed):
            raise Misfit(path, f"must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        return value

    return read


def _enum(kind: type[Enum]) -> Reader:
    def read(value: Any, path: str) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise Misfit(path, f"must be one of {', '.join(repr(one.value) for one in kind)}, not {value!r}") from None

    return read


def _union(readers: list[Reader], names: str) -> Reader:
    def read(value: Any, path: str) -> Any:
        misfits = []
        for one in readers:
            try:
                return one(value, path)
            except Misfit as misfit:
                misfits.append(misfit)
        # One that failed deep inside came closest, and says the most.
        deepest = max(misfits, key=lambda misfit: len(misfit.path))
        raise deepest if len(deepest.path) > len(path) else _not(names, value, path)

    return read


def _list(item: Reader) -> Reader:
    def read(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise _not("a list", value, path)
        return [item(one, f"{path}[{at}]") for at, one in enumerate(value)]

    return read


def _dict(item: Reader) -> Reader:
    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _not("an object", value, path)
        return {name: item(one, _below(path, name)) for name, one in value.items()}

    return read


def _record(kind: type, fields: Mapping[str, tuple[Reader, bool]], ignore_unknown: bool) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise _not(f"an object ({kind.__name__})", value, path)
        for name in () if ignore_unknown else value:
            if name not in fields:
                raise Misfit(_below(path, name), f"is not known; {kind.__name__} has {', '.join(fields) or 'no fields'}")
        found = {}
        for name, (read_field, required) in fields.items():
            if name in value:
                found[name] = read_field(value[name], _below(path, name))
            elif required:
                raise Misfit(_below(path, name), "is missing")
        return kind(**found)

    return read


def _pydantic(model: Any) -> Reader:
    def read(value: Any, path: str) -> Any:
        try:
            return model.model_validate(value)
        except ValueError as error:
            errors = getattr(error, "errors", None)
            first: dict[str, Any] = errors()[0] if callable(errors) else {"loc": (), "msg": str(error)}
            for part in first["loc"]:
                path = f"{path}[{part}]" if isinstance(part, int) else _below(path, part)
            raise Misfit(path, first["msg"]) from None

    return read


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _not(wanted: str, value: Any, path: str) -> Misfit:
    return Misfit(path, f"must be {wanted}, not {_json_kind(value)}")


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a bool", int: "an int", float: "a float", str: "a str", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def _name(hint: Any) -> str:
    return "null" if hint in (None, type(None)) else getattr(hint, "__name__", str(hint))


def _unsupported(hint: Any) -> SetupError:
    return SetupError(
        f"{hint!r} is no type that JSON can be read as",
        code="setup",
        next_step="use plain data, list, dict with str keys, Literal, Enum, a dataclass, a TypedDict or a pydantic model",
    )
