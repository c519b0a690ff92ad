"""Read TOML files into dataclasses, strictly: every mistake names the file, the key and the remedy.

A hand-written reader, because the grading side must run where only torch, pytest, rich, psutil,
safetensors, numpy and nvidia-ml-py are installed (docs/decisions/0001-strict-toml.md).
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from gpulab.model import LabError

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


def read(path: Path, kind: type[T]) -> T:
    """Read `path` as a `kind`.

    Raises:
        LabError: the file is missing, is no TOML, or does not fit `kind`.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(
            f"{path} is missing; restore it or write it after docs/authoring.md."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(
            f"{path} cannot be read ({error}); mend it after docs/authoring.md."
        ) from None
    return from_table(table, kind, f"{path}")


def from_table(table: Any, kind: type[T], where: str) -> T:
    """Make a `kind` of a table that was read already; `where` begins every message.

    Raises:
        LabError: it does not fit.
    """
    if not isinstance(table, dict):
        raise LabError(f"{where} must be a table.")
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise LabError(f"{where}: unknown key `{key}`{_nearest(key, fields)}; remove it.")
    values = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _value(table[name], hints[name], f"{where}: `{name}`")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise LabError(f"{where}: `{name}` is missing; add it.")
    return kind(**values)


def _nearest(key: str, known: typing.Iterable[str]) -> str:
    close = difflib.get_close_matches(key, list(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _value(value: Any, kind: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (kind,) = (a for a in arguments if a is not type(None))
        return _value(value, kind, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise LabError(f"{where} must be a table.")
        return {key: _value(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if origin is tuple:
        if not isinstance(value, list):
            raise LabError(f"{where} must be a list.")
        return tuple(_value(item, arguments[0], where) for item in value)
    if dataclasses.is_dataclass(kind):
        return from_table(value, typing.cast("type", kind), where)
    if issubclass(kind, Enum):
        return _choice(value, kind, where)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise LabError(f"{where} must be {_NAMES.get(kind, kind)}, not {value!r}.")
    return value


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _choice(value: Any, kind: type[Enum], where: str) -> Enum:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(item.value) for item in kind)
        raise LabError(f"{where} must be one of {choices}, not {value!r}.") from None
