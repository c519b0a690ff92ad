"""One engine, one tree and one build of the cpu stack's seat for all tests of the images."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import stand_in_docker

TIER_SECONDS = 1200  # the whole tier, from nothing


def pytest_collection_modifyitems(items):
    """The first test pays for the build: give every one the tier's time."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(TIER_SECONDS))


@dataclass
class Workshop:
    """Where the tests build: a folder, a tree in it, and what replaces the network."""

    folder: Path

    @property
    def tree(self):
        return self.folder / "tree"

    @property
    def wheels(self):
        return self.folder / "supplies" / "wheels"

    @property
    def conda_packages(self):
        return self.folder / "supplies" / "conda-packages"

    def invoke(self, *arguments, root=None, **variables):
        """Run a command of the lab on the tree; returns the finished process."""
        return subprocess.run(
            [sys.executable, "-m", "invoke", *map(str, arguments)],
            cwd=stand_in_docker.CHECKOUT,
            env={**os.environ, "GPULAB_ROOT": str(root or self.tree), **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def build(self, *options, root=None):
        """Build the cpu stack's seat without a network."""
        supplies = ["--wheels", self.wheels, "--conda-packages", self.conda_packages]
        return self.invoke(
            "images.build", "--stack", "cpu", *supplies, "--local-bases", *options, root=root
        )


@dataclass
class Built:
    """The seat, built from nothing: its image's id, and how long it took in seconds."""

    id: str
    seconds: float


@pytest.fixture(scope="session")
def workshop():
    """An engine with stand-ins for the base images, and all that a build needs."""
    if (why := stand_in_docker.obstacle()) is not None:
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="gpulab-images-"))
    workshop = Workshop(folder)
    try:
        with stand_in_docker.engine(folder):
            stand_in_docker.make_tree(folder)
            stand_in_docker.import_bases(folder, workshop.tree)
            done = workshop.invoke("images.fetch", "--stack", "cpu", "--to", folder / "supplies")
            assert done.returncode == 0, done.stderr
            yield workshop
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # several gigabytes


@pytest.fixture(scope="session")
def built(workshop):
    """The cpu stack's seat."""
    begun = time.monotonic()
    done = workshop.build()
    assert done.returncode == 0, done.stderr
    (image,) = json.loads(workshop.invoke("images.list", "--json").stdout)
    return Built(image["id"], time.monotonic() - begun)


@pytest.fixture(scope="session")
def unpacked(workshop, built):  # noqa: ARG001 - it must be built
    """The seat's root file system."""
    target = workshop.folder / "unpacked"
    done = workshop.invoke("images.unpack", "--stack", "cpu", "--to", target)
    assert done.returncode == 0, done.stderr
    return target


def docker(*arguments):
    """What the docker command prints."""
    command = ["docker", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def engine_command():
    """The docker command of the tests' engine."""
    return docker
