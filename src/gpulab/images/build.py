"""Build a stack's seat image with BuildKit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpulab.images import context, engine
from gpulab.model import LabError
from gpulab.stack import PinnedImage, Stacks

Listener = Callable[[str], None]
"""Told what the build is doing, a line at a time."""

_TAIL = 30  # lines in which the cause of a failed build is looked for


@dataclass(frozen=True)
class Options:
    """How to build.

    Attributes:
        supplies: what replaces a network; with both kinds the build gets none.
        pip_config: a pip.conf for the build alone, for a package index of one's own.
        local_bases: take the base images by name as they lie on this machine, their digests
            unchecked (an image that came by `docker load` has none). The label gpulab.base says so.
        fresh: use no cache.
    """

    supplies: context.Supplies = field(default_factory=context.Supplies)
    pip_config: Path | None = None
    local_bases: bool = False
    fresh: bool = False


def build(root: Path, stacks: Stacks, name: str, options: Options, tell: Listener) -> str:
    """Build, tag, and return the image's id.

    Raises:
        LabError: no engine, a lock that is missing, a base image that cannot be reached, a hash
            that differs, a full disk.
    """
    stack = stacks.find(name)
    docker = shutil.which("docker")
    if docker is None:
        raise LabError("There is no docker command; install Docker Engine and its client.")
    with engine.connect() as client, tempfile.TemporaryDirectory(prefix="gpulab-build-") as folder:
        place = Path(folder, "context")
        _or_explain(lambda: context.lay_out(root, stacks, name, options.supplies, place))
        bases = (stack.base, stacks.shared.micromamba)
        base, micromamba = (
            _local(client, image) if options.local_bases else image.reference for image in bases
        )
        origin = base
        if options.local_bases:
            origin = f"{base} as found here, {client.images.get(base).id}"
        arguments = {
            "BASE": base,
            "MICROMAMBA": micromamba,
            "SOURCE_DATE_EPOCH": str(stacks.shared.epoch),
            "STACK": name,
            "ORIGIN": origin,
            "TORCH": f"{stack.torch}+{stack.build}",
            "CUDA": stack.cuda or "none",
        }
        command = [docker, "build", *_flags(options), "--tag", engine.tag(name)]
        command += ["--file", str(place / "seat" / "Dockerfile")]
        for key, value in arguments.items():
            command += ["--build-arg", f"{key}={value}"]
        _run([*command, str(place)], tell)
        return str(client.images.get(engine.tag(name)).id)


def _local(client: object, image: PinnedImage) -> str:
    engine.find_image(client, image.name)
    return image.name


def _flags(options: Options) -> list[str]:
    flags = ["--progress", "plain"]
    offline = options.supplies.wheels and options.supplies.conda_packages
    flags += ["--network", "none" if offline else "default"]
    if options.fresh:
        flags.append("--no-cache")
    if options.pip_config is not None:
        if not options.pip_config.is_file():
            raise LabError(f"{options.pip_config} is missing; correct --pip-config.")
        flags += ["--secret", f"id=pip,src={options.pip_config}"]
    return flags


def _or_explain(action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        raise LabError(
            f"The build cannot be prepared: {error.filename}: {error.strerror}; mend that."
        ) from None


def _run(command: list[str], tell: Listener) -> None:
    """Run a build; where it fails, all that it printed is kept in a file."""
    printed: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
    ) as process:
        try:
            for line in process.stdout or ():
                if line.strip():
                    printed.append(line.rstrip())
                    tell(line.rstrip())
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gpulab-build-", suffix=".log", delete=False
        ) as log:
            log.writelines(f"{line}\n" for line in printed)
        raise LabError(f"{why_it_failed(printed[-_TAIL:])} All of it: {log.name}")


_NO_BASE = re.compile(
    r"(failed to resolve source metadata for|failed to do request|pull access denied for|"
    r"failed to load cache key|manifest unknown|no such host|Temporary failure in name resolution)"
)
_HASH = re.compile(
    r"(DO NOT MATCH THE HASHES|hash mismatch|(?:sha256|md5|checksum)\S* .*(?:mismatch|differs|"
    r"doesn't match|does not match|invalid)|(?:mismatch|invalid) .*(?:sha256|md5|checksum))",
    re.IGNORECASE,
)
_SAID = re.compile(r"#\d+ [\d.]+ ")  # what a step's own program printed
_UNAVAILABLE = re.compile(r"(No matching distribution found for .*|Could not find a version .*)")


def why_it_failed(lines: list[str]) -> str:
    """The end of a failed build's output, as one sentence with the remedy."""
    text = "\n".join(lines)
    if "no space left on device" in text or "No space left on device" in text:
        return engine.in_words("no space left on device")
    if "buildx component is missing" in text:
        return "Docker's client cannot build with BuildKit; install docker-buildx."
    if (line := _first(_HASH, lines)) is not None:
        return (
            f"What was fetched is not what was locked: {line}. Do not use it; find out which of "
            "the two is right before `invoke images.lock` makes the lock anew."
        )
    if (line := _first(_UNAVAILABLE, lines)) is not None:
        return (
            f"A locked wheel cannot be had: {line}. Check the network and --pip-config, or hand in "
            "--wheels made by `invoke images.fetch`."
        )
    if (line := _first(_NO_BASE, lines)) is not None:
        return (
            f"A base image cannot be fetched: {line}. Check the network, or load the images first "
            "and say --local-bases."
        )
    said = [line for line in lines if _SAID.match(line)] or lines
    return f"The build failed: {' / '.join(_plain(line) for line in said[-2:])}."


def _first(pattern: re.Pattern[str], lines: list[str]) -> str | None:
    return next((_plain(line) for line in lines if pattern.search(line)), None)


def _plain(line: str) -> str:
    """A line of BuildKit's plain output without its step number and time."""
    return re.sub(r"^(#\d+ )?([\d.]+ )?\s*(ERROR: )?", "", line).strip().rstrip(".")
