"""The grader's half of the pipe to an attempt: JSON and safetensors, as numpy arrays."""

from __future__ import annotations

import json
import struct
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import safetensors.numpy

LENGTH = struct.Struct("<Q")
MAX_MESSAGES = 100_000
MAX_TEXT = 4 << 20  # bytes of JSON, all messages together: as objects they take many times that
MAX_HEADER = 1 << 20  # bytes of JSON in a safetensors file
_MAX_DEPTH = 100


class ProtocolError(Exception):
    """What came over the pipe is no message of ours; the text says what was wrong."""


def pack(value: dict[str, Any]) -> bytes:
    """One message: a JSON object in which arrays (numpy) and paths may stand.

    Raises:
        TypeError: something in it is neither JSON, array nor path.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    text = json.dumps(_encode(value, arrays)).encode()
    blob = safetensors.numpy.save(arrays) if arrays else b""
    return LENGTH.pack(len(text)) + text + LENGTH.pack(len(blob)) + blob


def _encode(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = np.asarray(value, order="C")
        return {"$tensor": name}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _encode(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item, arrays) for item in value]
    return value


def unpack_all(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Every message in `data` with the offset of its end, tensors as numpy arrays.

    Raises:
        ProtocolError: cut short, too long, no JSON, no safetensors, or nested too deeply.
    """
    messages: list[tuple[int, dict[str, Any]]] = []
    at, left = 0, MAX_TEXT
    while at < len(data):
        text, at = _part(data, at)
        blob, at = _part(data, at)
        left -= len(text)
        if left < 0 or len(messages) == MAX_MESSAGES:
            raise ProtocolError("it said too much")
        messages.append((at, _decode_message(text, blob)))
    return messages


def _part(data: bytes, at: int) -> tuple[bytes, int]:
    start = at + LENGTH.size
    if len(data) < start:
        raise ProtocolError("its answer was cut short")
    (size,) = LENGTH.unpack_from(data, at)
    if len(data) - start < size:
        raise ProtocolError("its answer was cut short")
    return data[start : start + size], start + size


def _decode_message(text: bytes, blob: bytes) -> dict[str, Any]:
    try:
        message = json.loads(text)
        arrays = _arrays(blob)
        decoded = _decode(message, arrays, 0)
    except (ValueError, KeyError, TypeError, RecursionError, safetensors.SafetensorError) as error:
        raise ProtocolError(f"its answer made no sense ({error})") from None
    if not isinstance(decoded, dict):
        raise ProtocolError("its answer made no sense (no object)")
    return decoded


def _arrays(blob: bytes) -> dict[str, np.ndarray[Any, Any]]:
    if not blob:
        return {}
    if len(blob) >= LENGTH.size and LENGTH.unpack_from(blob)[0] > MAX_HEADER:
        raise ValueError("too many tensors")
    arrays: dict[str, np.ndarray[Any, Any]] = safetensors.numpy.load(blob)
    return arrays


def _decode(value: Any, arrays: dict[str, np.ndarray[Any, Any]], depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ProtocolError("its answer was nested too deeply")
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, dict):
        if value.keys() == {"$tensor"}:
            return arrays[value["$tensor"]]
        if value.keys() == {"$path"}:
            return Path(value["$path"])
        return {_whole(key): _decode(item, arrays, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item, arrays, depth + 1) for item in value]
    return value


def _whole(text: str) -> str:
    """The text without half characters, which JSON can spell and nobody can write to a file."""
    return text.encode("utf-8", "replace").decode("utf-8")
