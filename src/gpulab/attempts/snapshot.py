"""Copies of a work folder that nothing can change while they are judged."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpulab.model import LabError

MAX_BYTES = 64 << 20
MAX_FILES = 2_000
SKIPPED = {"__pycache__", ".git", ".ipynb_checkpoints", ".venv"}


@dataclass(frozen=True)
class Snapshot:
    """A copy of a work folder and the SHA-256 of its names and bytes."""

    folder: Path
    sha256: str


def take_snapshot(source: Path, target: Path) -> Snapshot:
    """Copy the regular files of `source` to `target`, which is made.

    Links are refused: a copy must hold nothing from outside the folder. At most MAX_FILES
    files of MAX_BYTES together.

    Raises:
        LabError: a link, a special file, too much, or a folder that cannot be read or written.
    """
    digest = hashlib.sha256()
    left = MAX_BYTES
    try:
        target.mkdir(parents=True)
        for number, path in enumerate(_files(source)):
            if number >= MAX_FILES:
                raise LabError(
                    f"{source} holds more than {MAX_FILES} files; move some of them away."
                )
            data = _read(path, left)
            left -= len(data)
            name = path.relative_to(source)
            digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
            _write(target / name, data)
    except OSError as error:
        code = 4 if _below(target, error.filename) else 1
        raise LabError(
            f"{error.filename}: {error.strerror}; mend that and try again.", code=code
        ) from None
    return Snapshot(target, digest.hexdigest())


def _below(folder: Path, name: object) -> bool:
    return isinstance(name, str) and Path(name).is_relative_to(folder)


def _files(source: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(source, onerror=_raise):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted((*files, *folders)):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise LabError(f"{path} is a link; put the file itself there.")
            if stat.S_ISREG(mode):
                yield path
            elif not stat.S_ISDIR(mode):
                raise LabError(f"{path} is no ordinary file; move it away.")


def _raise(error: OSError) -> None:
    raise error


def _read(path: Path, left: int) -> bytes:
    # O_NOFOLLOW and O_NONBLOCK: between the look and the opening a link or a pipe may have come.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        if os.fstat(fd).st_size > left:
            raise LabError(
                f"{path} makes the work folder larger than {MAX_BYTES >> 20} MiB; move it away."
            )
        data = file.read(left + 1)
    if len(data) > left:
        raise LabError(f"{path} grows while it is read; stop what writes to it and try again.")
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
