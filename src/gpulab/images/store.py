"""The ways of an image to a lab machine: files, a registry, and its root file system."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gpulab.images import engine
from gpulab.model import LabError

Listener = Callable[[int], None]
"""Told how many bytes have been moved so far."""

ORIGIN = "etc/gpulab-image"
"""In an unpacked root file system: the id of the image that it came from."""


@dataclass(frozen=True)
class SeatImage:
    """A seat image on this machine; `size` in bytes, `created` as ISO 8601."""

    tag: str
    id: str
    stack: str
    base: str
    size: int
    created: str


def images() -> list[SeatImage]:
    """Every seat image here.

    Raises:
        LabError: no engine answers.
    """
    with engine.connect() as client:
        found = client.images.list(filters={"label": "gpulab.stack"})
        return sorted(
            (_describe(image, tag) for image in found for tag in image.tags),
            key=lambda image: image.tag,
        )


def _describe(image: Any, tag: str) -> SeatImage:
    labels, facts = image.labels, image.attrs
    return SeatImage(
        tag=tag,
        id=image.id,
        stack=labels["gpulab.stack"],
        base=labels.get("gpulab.base", "unknown"),
        size=facts["Size"],
        created=facts["Created"],
    )


def save(stack: str, target: Path, tell: Listener) -> str:
    """Write a stack's image to a file, and its sha256 beside it; returns the sha256.

    Raises:
        LabError: no such image, or the file cannot be written.
    """
    with engine.connect() as client:
        image = engine.find_image(client, engine.tag(stack))
        with _written(target) as file:
            digest = _copy(image.save(named=engine.tag(stack)), file, tell)
        note = target.with_name(target.name + ".sha256")
        note.write_text(f"{digest}  {target.name}\n", encoding="utf-8")
    return digest


def load(source: Path, tell: Listener) -> list[str]:
    """Load an image that `save` wrote, if its sha256 is right; returns its tags.

    Raises:
        LabError: the file or its sha256 is missing, they differ, or the file holds no image.
    """
    expected = _expected_sha256(source)
    with engine.connect() as client, source.open("rb") as file:
        if _copy(_chunks(file), None, tell) != expected:
            raise LabError(f"{source} differs from its sha256; copy both files anew.")
        file.seek(0)
        return [tag for image in client.images.load(file) for tag in image.tags]


def _expected_sha256(source: Path) -> str:
    if not source.is_file():
        raise LabError(f"{source} is missing; write it with `invoke images.save`.")
    note = source.with_name(source.name + ".sha256")
    try:
        return note.read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        raise LabError(f"{note} is missing or empty; copy it along with the image.") from None


def unpack(stack: str, target: Path, tell: Listener) -> None:
    """Write an image's root file system into a new folder, owners and rights included.

    Raises:
        LabError: not root, no such image, the folder exists, or it cannot be written.
    """
    if os.geteuid() != 0:
        raise LabError("Only root can write files of several owners; use sudo.")
    if target.exists():
        raise LabError(f"{target} exists already; remove it or name another folder with --to.")
    partial = target.with_name(target.name + ".part")
    with engine.connect() as client:
        image = engine.find_image(client, engine.tag(stack))
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            with exported(client, image) as stream:
                _extract(stream, partial, tell)
            (partial / ORIGIN).write_text(f"{image.id}\n", encoding="utf-8")
            partial.rename(target)
        except OSError as error:
            raise LabError(f"{target} cannot be written ({error.strerror}).") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def exported(client: Any, image: Any) -> Iterator[Iterable[bytes]]:
    """An image's file system as a tar stream, by way of a container that never starts."""
    container = client.containers.create(image.id, network_disabled=True)
    try:
        yield container.export()
    finally:
        container.remove(force=True)


def _extract(stream: Iterable[bytes], folder: Path, tell: Listener) -> None:
    command = ["tar", "--extract", "--same-owner", "--same-permissions", "--numeric-owner"]
    with subprocess.Popen(
        [*command, "--directory", str(folder)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as tar:
        if tar.stdin is None or tar.stderr is None:
            raise AssertionError
        with contextlib.suppress(BrokenPipeError):  # tar says why below
            _copy(stream, tar.stdin, tell)
        with contextlib.suppress(BrokenPipeError):
            tar.stdin.close()
        said = " ".join(tar.stderr.read().decode(errors="replace").split())
    if tar.returncode:
        raise LabError(f"{folder} cannot be written: {said}")


def push(stack: str, repository: str) -> str:
    """Push a stack's image as REPOSITORY:STACK; returns its digest there.

    Raises:
        LabError: no such image, or the registry cannot be reached or refuses.
    """
    with engine.connect() as client:
        image = engine.find_image(client, engine.tag(stack))
        if not image.tag(repository, stack):
            raise LabError(f"{repository!r} is no name of a repository; write host/name.")
        try:
            digest = ""
            for event in client.images.push(repository, stack, stream=True, decode=True):
                if "error" in event:
                    raise LabError(
                        f"{repository} refused: {event['error']}; log in with `docker login`, or "
                        "correct --to."
                    )
                digest = event.get("aux", {}).get("Digest", digest)
            return digest
        finally:
            client.images.remove(f"{repository}:{stack}", noprune=True)


@contextlib.contextmanager
def _written(target: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is whole."""
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as file:
            yield file
        partial.rename(target)
    except OSError as error:
        raise LabError(f"{target} cannot be written ({error.strerror}).") from None
    finally:
        partial.unlink(missing_ok=True)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk


def _copy(source: Iterable[bytes], target: Any, tell: Listener) -> str:
    """Copy a stream (to nowhere for None) and return its sha256."""
    digest, moved = hashlib.sha256(), 0
    for chunk in source:
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
        moved += len(chunk)
        tell(moved)
    return digest.hexdigest()
