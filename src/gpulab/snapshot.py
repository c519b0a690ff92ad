"""Copies of a work folder that nothing can change while they are judged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpulab.model import LabError

MAX_BYTES = 64 << 20
MAX_ENTRIES = 2_000  # files and folders
MAX_DEPTH = 20
SKIPPED = {"__pycache__", ".git", ".ipynb_checkpoints", ".venv"}

# Never through a link, and never waiting: between the look at a file and its opening, a link or a
# pipe may have taken its place.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True)
class Snapshot:
    """A copy of a work folder and the SHA-256 of its names and bytes."""

    folder: Path
    sha256: str


def take_snapshot(source: Path, target: Path) -> Snapshot:
    """Copy the regular files of `source` to `target`, which is made.

    Links are refused: a copy must hold nothing from outside the folder. At most MAX_ENTRIES
    files and folders of MAX_BYTES together, MAX_DEPTH folders deep.

    Raises:
        LabError: a link, a special file, too much, or a folder that cannot be read or written.
    """
    digest = hashlib.sha256()
    try:
        target.mkdir(parents=True)
        for name, data in _contents(source):
            digest.update(os.fsencode(f"{name}\0{len(data)}\0") + data)
            _write(target / name, data)
    except OSError as error:
        code = 4 if _below(target, error.filename) else 1
        raise LabError(
            f"{error.filename}: {error.strerror}; mend that and try again.", code=code
        ) from None
    return Snapshot(target, digest.hexdigest())


def read_files(source: Path) -> list[tuple[str, bytes]]:
    """The names and bytes of what a snapshot of `source` would hold.

    Raises:
        LabError: as `take_snapshot` does.
    """
    try:
        return [(str(name), data) for name, data in _contents(source)]
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}; mend that and try again.") from None


def _contents(source: Path) -> Iterator[tuple[Path, bytes]]:
    left = MAX_BYTES
    for name, fd in _files(source):
        data = _read(source / name, fd, left)
        left -= len(data)
        yield name, data


def _below(folder: Path, name: object) -> bool:
    return isinstance(name, str) and Path(name).is_relative_to(folder)


def _files(source: Path) -> Iterator[tuple[Path, int]]:
    """Every regular file, its name relative to `source` and its descriptor, in a fixed order."""
    if source.is_symlink():
        raise LabError(f"{source} is a link; put the folder itself there.")
    for number, (path, fd) in enumerate(_walk(source, Path(), os.O_DIRECTORY, dir_fd=None)):
        if number > MAX_ENTRIES:
            raise LabError(
                f"{source} holds more than {MAX_ENTRIES} files and folders; move some of them away."
            )
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield path, fd


def _walk(
    source: Path, path: Path, flags: int, *, dir_fd: int | None
) -> Iterator[tuple[Path, int]]:
    """The file or folder and all that is in it, each opened from its folder's descriptor.

    A descriptor, unlike a path, cannot be led out of the folder by a rename behind our back.
    """
    whole = source / path
    try:
        fd = os.open(whole if dir_fd is None else path.name, _OPEN | flags, dir_fd=dir_fd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(whole)) from None
    with _closing(fd):
        yield path, fd
        if not flags:
            return
        if len(path.parts) >= MAX_DEPTH:
            raise LabError(f"{whole} is more than {MAX_DEPTH} folders deep; move it away.")
        for name in sorted(os.listdir(fd)):  # noqa: PTH208 - pathlib lists no descriptor
            try:
                mode = os.lstat(name, dir_fd=fd).st_mode
            except FileNotFoundError:
                continue  # an editor's own file, gone again
            if not (stat.S_ISDIR(mode) and name in SKIPPED):
                yield from _walk(source, path / name, _flags(whole / name, mode), dir_fd=fd)


def _flags(path: Path, mode: int) -> int:
    if stat.S_ISLNK(mode):
        raise LabError(f"{path} is a link; put the file itself there.")
    if stat.S_ISDIR(mode):
        return os.O_DIRECTORY
    if not stat.S_ISREG(mode):
        raise LabError(f"{path} is no ordinary file; move it away.")
    return 0


@contextlib.contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)


def _read(path: Path, fd: int, left: int) -> bytes:
    if os.fstat(fd).st_size > left:
        raise LabError(
            f"{path} makes the work folder larger than {MAX_BYTES >> 20} MiB; move it away."
        )
    with os.fdopen(fd, "rb", closefd=False) as file:
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
