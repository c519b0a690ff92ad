"""Docker Engine: the connection, and its errors in words."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from gpulab.model import LabError

REPOSITORY = "gpulab-seat"


def tag(stack: str) -> str:
    """The name of a stack's seat image."""
    return f"{REPOSITORY}:{stack}"


@contextlib.contextmanager
def connect() -> Iterator[Any]:
    """A client of the engine that DOCKER_HOST names, else of this machine's.

    Raises:
        LabError: the SDK is missing, no engine answers, or it refused what was asked of it.
    """
    try:
        docker: Any = importlib.import_module("docker")  # not on a seat
        errors: Any = importlib.import_module("docker.errors")
    except ImportError:
        raise LabError("Images need Docker's SDK; install gpulab with its images extra.") from None
    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except (errors.DockerException, OSError):
        raise LabError(
            "Docker does not answer; start it (`systemctl start docker`), join the group docker, "
            "or set DOCKER_HOST."
        ) from None
    try:
        yield client
    except (errors.APIError, errors.DockerException) as error:
        raise LabError(in_words(str(error))) from None
    finally:
        client.close()


def in_words(said: str) -> str:
    """What an engine's complaint means, and what to do."""
    if "no space left on device" in said:
        return "Docker's disk is full; make room with `docker system prune`, then try again."
    if "could not select device driver" in said:
        return (
            "Docker cannot hand out the GPU; install nvidia-container-toolkit and restart Docker."
        )
    return f"Docker refused: {' '.join(said.split())}"


def find_image(client: Any, name: str) -> Any:
    """An image by its name.

    Raises:
        LabError: it is not on this machine.
    """
    errors: Any = importlib.import_module("docker.errors")
    try:
        return client.images.get(name)
    except errors.ImageNotFound:
        stack = name.partition(":")[2]
        raise LabError(
            f"There is no image {name} here; make it with `invoke images.build --stack {stack}`, "
            "or bring it with `invoke images.load`."
        ) from None
