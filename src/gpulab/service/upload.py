"""A request for a check on its way to the service: one JSON line, then the files' bytes.

The line is {"exercise": "exercise-4", "device": null, "files": [["train.py", 1234], ...]}. Unlike
an archive, it cannot say link, device, owner or mode (docs/decisions/0003-upload.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from gpulab.snapshot import MAX_BYTES, MAX_DEPTH, MAX_ENTRIES

MAX_HEAD = 1 << 20
MAX_NAME = 255
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class UploadError(Exception):
    """What was sent is no request for a check; the sentence says why."""


@dataclass(frozen=True)
class Head:
    """What is to be judged."""

    exercise: str
    device: str | None
    files: tuple[tuple[str, int], ...]


def pack(exercise: str, device: str | None, files: Iterable[tuple[str, bytes]]) -> bytes:
    """The request as bytes."""
    kept = list(files)
    head = {"exercise": exercise, "device": device, "files": [[n, len(d)] for n, d in kept]}
    return b"".join([json.dumps(head).encode(), b"\n", *(data for _, data in kept)])


def unpack(body: BinaryIO, target: Path) -> Head:
    """Write the files of a request below `target`, which is made.

    Raises:
        UploadError: it is no such request, or it breaks a bound.
        OSError: the files cannot be written.
    """
    head = read_head(body.readline(MAX_HEAD))
    target.mkdir(mode=0o700)
    for name, size in head.files:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, _NEW_FILE, 0o600), "wb") as file:
            _copy(body, file, size)
    if body.read(1):
        raise UploadError("The request goes on after its last file.")
    return head


def _copy(body: BinaryIO, file: BinaryIO, size: int) -> None:
    while size:
        data = body.read(min(size, 1 << 16))
        if not data:
            raise UploadError("The request ends within a file.")
        file.write(data)
        size -= len(data)


def read_head(line: bytes) -> Head:
    """The first line of a request.

    Raises:
        UploadError: it is none, or it breaks a bound.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise UploadError("The request does not begin with a line of JSON.") from None
    if not isinstance(data, dict) or data.keys() != {"exercise", "device", "files"}:
        raise UploadError("The request's first line must hold exercise, device and files.")
    exercise, device, files = data["exercise"], data["device"], data["files"]
    if not isinstance(exercise, str) or not isinstance(device, str | None):
        raise UploadError("The request's exercise and device must be text.")
    if not isinstance(files, list):
        raise UploadError("The request's files must be a list.")
    head = Head(exercise, device, tuple(_entry(entry) for entry in files))
    _bound(head.files)
    return head


def _entry(entry: Any) -> tuple[str, int]:
    match entry:
        case [str(name), int(size)] if type(size) is int and size >= 0:
            return _safe_name(name), size
    raise UploadError("Each of the request's files must be a name and a size.")


def _safe_name(name: str) -> str:
    parts = name.split("/")
    try:
        long = any(len(os.fsencode(part)) > MAX_NAME for part in parts)
    except UnicodeEncodeError:
        raise UploadError("A file's name cannot be written.") from None
    if long or len(parts) > MAX_DEPTH or "\0" in name or {"", ".", ".."} & set(parts):
        raise UploadError("A file's name is not one within the work folder, or too long.")
    return name


def _bound(files: tuple[tuple[str, int], ...]) -> None:
    names = {name for name, _ in files}
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    if len(names) != len(files) or names & folders:
        raise UploadError("Two of the request's files have one name.")
    if len(names | folders) > MAX_ENTRIES:
        raise UploadError(f"More than {MAX_ENTRIES} files and folders; move some of them away.")
    if sum(size for _, size in files) > MAX_BYTES:
        raise UploadError(f"More than {MAX_BYTES >> 20} MiB of files; move some of them away.")
