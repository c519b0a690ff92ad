"""`images.*`: what trainers run to lock, build, prove and move the seats' images."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from invoke import Context
from rich.table import Table
from rich.text import Text

from gpulab import stack as pins
from gpulab.catalogue import find_root
from gpulab.images import build as building
from gpulab.images import engine, locking, locks, store
from gpulab.images import fetch as fetching
from gpulab.images import verify as verifying
from gpulab.images.context import Supplies
from gpulab.images.verify import Finding
from gpulab.model import LabError
from gpulab.tasks.command import command, console, print_json
from gpulab.tasks.render import STYLES, plain

SIGNS = {True: ("✓", "passed"), False: ("✗", "failed"), None: ("?", "not-run")}


def _chosen(stacks: pins.Stacks, stack: str) -> list[str]:
    if stack:
        stacks.find(stack)
    return [stack] if stack else list(stacks.stacks)


@command
def lock(_: Context, stack: str = "", wheels: str = "") -> int:
    """Make the locks anew from stacks.yml: of one --stack, of `lab`, or of all. Needs a network.

    --wheels FOLDER: look into this folder of wheels too.
    """
    root = find_root()
    stacks = pins.load(root)
    names = [locks.LAB] if stack == locks.LAB else _chosen(stacks, stack)
    for name in names if stack else [locks.LAB, *names]:
        with console.status(f"locking {name}"):
            locking.lock(root, stacks, name, Path(wheels) if wheels else None)
        console.print(f"{locks.folder(root, name)}", soft_wrap=True, markup=False)
    return 0


@command
def fetch(_: Context, stack: str, to: str) -> int:
    """Fetch all that a build of --stack needs into the folder --to, for rooms without a network."""
    root = find_root()
    with console.status(f"fetching {stack}") as status:
        supplies = fetching.fetch(root, pins.load(root), stack, Path(to), status.update)
    console.print(
        f"--wheels {supplies.wheels} --conda-packages {supplies.conda_packages}",
        soft_wrap=True,
        markup=False,
    )
    return 0


@command
def build(
    _: Context,
    stack: str = "",
    wheels: str = "",
    conda_packages: str = "",
    pip_config: str = "",
    local_bases: bool = False,
    fresh: bool = False,
) -> int:
    """Build the seat of one --stack, or of all.

    --wheels and --conda-packages: folders made by `images.fetch`, instead of a network.
    --pip-config FILE: a pip.conf for your own package index. --local-bases: take the base images
    as they lie here, digests unchecked. --fresh: use no cache.
    """
    root = find_root()
    stacks = pins.load(root)
    options = building.Options(
        supplies=Supplies(_path(wheels), _path(conda_packages)),
        pip_config=_path(pip_config),
        local_bases=local_bases,
        fresh=fresh,
    )
    for name in _chosen(stacks, stack):
        begun = time.monotonic()
        with console.status(f"building {name}") as status:
            image = building.build(root, stacks, name, options, _shown(status.update))
        spent = time.monotonic() - begun
        console.print(f"{engine.tag(name)} {image} in {spent:.0f} s", soft_wrap=True)
    return 0


def _path(given: str) -> Path | None:
    return Path(given).absolute() if given else None


def _shown(update: Callable[[Text], None]) -> Callable[[str], None]:
    return lambda line: update(Text(plain(line)[:100]))


@command
def verify(_: Context, stack: str = "", json: bool = False) -> int:
    """Start the image of one --stack, or of all, and compare it with its locks."""
    root = find_root()
    stacks = pins.load(root)
    seen: dict[str, list[Finding]] = {}
    for name in _chosen(stacks, stack):
        seen[name] = []
        verifying.verify(root, stacks, name, _teller(name, seen[name], quiet=json))
    if json:
        print_json({name: [asdict(finding) for finding in found] for name, found in seen.items()})
    wrong = any(finding.right is False for found in seen.values() for finding in found)
    return 2 if wrong else 0


def _teller(name: str, seen: list[Finding], *, quiet: bool) -> Callable[[Finding], None]:
    def tell(finding: Finding) -> None:
        seen.append(finding)
        if not quiet:
            sign, style = SIGNS[finding.right]
            text = f"{sign} {name}: {finding.what}: {plain(finding.seen)}"
            console.print(Text(text, style=STYLES[style]), soft_wrap=True)

    return tell


@command
def save(_: Context, stack: str, to: str = "") -> int:
    """Write the image of --stack to a file (--to), with its sha256 beside it."""
    target = Path(to or f"gpulab-seat-{stack}.tar")
    with _moving("saving") as tell:
        digest = store.save(stack, target, tell)
    console.print(f"{target} sha256 {digest}", soft_wrap=True, markup=False)
    return 0


@command
def load(_: Context, file: str) -> int:
    """Load an image that `images.save` wrote, if its sha256 is right."""
    with _moving("reading") as tell:
        tags = store.load(Path(file), tell)
    console.print(", ".join(tags), markup=False)
    return 0


@command
def unpack(_: Context, stack: str, to: str) -> int:
    """Write the root file system of --stack's image into a new folder, for isolated attempts."""
    with _moving("unpacking") as tell:
        store.unpack(stack, Path(to), tell)
    console.print(to, soft_wrap=True, markup=False)
    return 0


@command
def push(_: Context, stack: str, to: str) -> int:
    """Push the image of --stack to the repository --to (host/name), tagged with the stack."""
    with console.status(f"pushing {stack}"):
        digest = store.push(stack, to)
    console.print(f"{to}:{stack}@{digest}", soft_wrap=True, markup=False)
    return 0


@command
def list_(_: Context, json: bool = False) -> int:
    """Show the seat images on this machine, with their sizes."""
    found = store.images()
    if json:
        print_json([asdict(image) for image in found])
        return 0
    if not found:
        raise LabError("There are no seat images here; make one with `invoke images.build`.")
    table = Table(box=None, pad_edge=False)
    for heading in ("image", "id", "size", "built", "base"):
        table.add_column(heading, no_wrap=heading != "base")
    for image in found:
        size, short = f"{image.size / 1e9:.2f} GB", image.id.removeprefix("sha256:")[:12]
        table.add_row(image.tag, short, size, image.created[:19], image.base)
    console.print(table)
    return 0


@contextmanager
def _moving(what: str) -> Iterator[Callable[[int], None]]:
    with console.status(what) as status:
        yield lambda moved: status.update(f"{what}, {moved >> 20} MiB")
