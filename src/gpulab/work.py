"""The attendee's files: work folders, their archive, and what they take home."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gpulab.catalogue import Exercise
from gpulab.catalogue.variants import lay_out
from gpulab.model import LabError

T = TypeVar("T")


class Work:
    """All of one attendee's work below a root folder."""

    def __init__(self, root: Path) -> None:
        configured = os.environ.get("GPULAB_WORK")
        self.home = Path(configured).expanduser().resolve() if configured else root / "work"

    @property
    def records(self) -> Path:
        """The record of verdicts."""
        return self.home / ".lab" / "records.sqlite"

    def folder(self, exercise: Exercise) -> Path:
        """The work folder, made from the shipped files when it is not there.

        Raises:
            LabError: it cannot be made.
        """
        folder = self.home / exercise.name
        if not os.path.lexists(folder):
            _or_explain(lambda: _lay_out_whole(exercise, folder))
        if folder.is_symlink() or not folder.is_dir():
            raise LabError(f"{folder} is no folder; move it away and try again.")
        return folder

    def reset(self, exercise: Exercise) -> Path | None:
        """Bring the shipped files back; returns where the attendee's were archived.

        Raises:
            LabError: the files cannot be moved; nothing was changed.
        """
        folder = self.home / exercise.name
        if not os.path.lexists(folder):
            self.folder(exercise)
            return None
        archived = _or_explain(lambda: self._archive(folder))
        try:
            self.folder(exercise)
        except LabError:
            archived.rename(folder)
            archived.parent.rmdir()
            raise
        return archived

    def _archive(self, folder: Path) -> Path:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        home = self.home / "archive"
        home.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1000):
            target = home / f"{folder.name}-{stamp}{'' if attempt == 1 else f'-{attempt}'}"
            try:
                target.mkdir()  # takes the name; two resets in one second get two
            except FileExistsError:
                continue
            try:
                folder.rename(target / folder.name)
            except OSError:
                target.rmdir()
                raise
            return target / folder.name
        raise LabError(f"{home} holds too many archives of this second; try again.")

    def pack(self, grades: list[dict[str, Any]], target: Path) -> Path:
        """Write all work and the verdicts to a .tar.gz; never over an existing file.

        Raises:
            LabError: there is no work, or the file cannot be written.
        """
        if not self.home.is_dir():
            raise LabError(f"There is no work in {self.home} to pack.")
        _or_explain(lambda: self._write_pack(grades, target))
        return target

    def _write_pack(self, grades: list[dict[str, Any]], target: Path) -> None:
        try:
            file = target.open("xb")
        except FileExistsError:
            raise LabError(f"{target} exists already; name another file with --to.") from None
        try:
            with file, tarfile.open(target, "w:gz", fileobj=file) as tar:
                self._add_all(tar, json.dumps(grades, indent=2).encode())
        except BaseException:
            target.unlink()
            raise

    def _add_all(self, tar: tarfile.TarFile, verdicts: bytes) -> None:
        for path in sorted(self.home.iterdir()):
            if path.name != ".lab":
                tar.add(path, f"gpulab-work/{path.name}", filter=_ordinary)
        entry = tarfile.TarInfo("gpulab-work/verdicts.json")
        entry.size, entry.mtime = len(verdicts), time.time()
        tar.addfile(entry, io.BytesIO(verdicts))


def _ordinary(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return member if member.isfile() or member.isdir() or member.issym() else None


def _lay_out_whole(exercise: Exercise, folder: Path) -> None:
    """Lay the shipped files out beside the folder first: it is there whole, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        lay_out(exercise, partial / folder.name).rename(folder)
    except OSError:
        if not folder.is_dir():  # else another command was quicker
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _or_explain(action: Callable[[], T]) -> T:
    try:
        return action()
    except OSError as error:
        where = error.filename or "the work folder"
        raise LabError(f"{where}: {error.strerror}; mend that and try again.") from None
