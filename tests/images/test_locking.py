"""`images.lock` on a channel of small packages: solved for real, written whole or not at all."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import stand_in_docker
import yaml
from stand_in_channel import Package, write_channel

from gpulab import stack
from gpulab.images import locks


@pytest.fixture
def tree(tmp_path):
    """A checkout whose channel is small and whose cpu stack wishes for one small wheel."""
    tree = stand_in_docker.make_tree(tmp_path)
    channel = tmp_path / "small"
    write_channel(
        channel,
        [
            Package("python", "3.11.2", files={"bin/python": b"#!/bin/sh\n"}, depends=("needed",)),
            Package("python", "3.12.1", files={"bin/python": b"#!/bin/sh\n"}),
            Package("pip", "26.0", files={"bin/pip": b"#!/bin/sh\n"}, depends=("python",)),
            Package("needed", "1.0", files={"share/needed": b"1\n"}),
            Package("unneeded", "1.0", files={"share/unneeded": b"1\n"}),
        ],
    )
    pins = yaml.safe_load((tree / stack.FILE).read_text(encoding="utf-8"))
    pins["shared"]["channel"] = channel.as_uri()
    cpu = pins["stacks"]["cpu"]
    cpu["wheels"] = []
    del cpu["wheel_index"]
    (tree / stack.FILE).write_text(yaml.safe_dump(pins), encoding="utf-8")
    return tree


def lock(tree, wheelhouse):
    """Lock the cpu stack without any network."""
    return subprocess.run(
        [sys.executable, "-m", "invoke", "images.lock", "--stack", "cpu", "--wheels", wheelhouse],
        cwd=stand_in_docker.CHECKOUT,
        env={**os.environ, "GPULAB_ROOT": str(tree), "UV_OFFLINE": "1", "UV_NO_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def wheelhouse(tmp_path):
    """A folder with a torch that is nothing but a name."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    facts = "torch-2.13.0+cpu.dist-info"
    with zipfile.ZipFile(folder / "torch-2.13.0+cpu-py3-none-any.whl", "w") as wheel:
        about = "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cpu\n"
        wheel.writestr(f"{facts}/METADATA", about)
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "")
    return folder


def test_locking_writes_what_is_wanted_and_what_that_needs(tree, wheelhouse):
    done = lock(tree, wheelhouse)
    assert done.returncode == 0, done.stderr
    home = locks.folder(tree, "cpu")
    packages = [package.label for package in locks.read_conda(home / locks.CONDA)]
    assert packages == ["needed-1.0-0", "python-3.11.2-0", "pip-26.0-0"]
    facts = locks.read_packages(home / locks.PACKAGES)
    assert [fact["name"] for fact in facts] == ["needed", "python", "pip"]
    (torch,) = locks.read_wheels(home / locks.WHEELS)
    assert (torch.name, torch.version) == ("torch", "2.13.0+cpu")
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    assert lock(tree, wheelhouse).returncode == 0
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


def test_wishes_that_cannot_be_met_leave_the_locks_alone(tree, wheelhouse):
    home = locks.folder(tree, "cpu")
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    path = tree / stack.FILE
    path.write_text(path.read_text(encoding="utf-8").replace("3.11", "3.14"), encoding="utf-8")
    done = lock(tree, wheelhouse)
    assert done.returncode == 1
    assert "cannot be resolved" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    (wheel,) = Path(wheelhouse).iterdir()
    wheel.unlink()
    path.write_text(path.read_text(encoding="utf-8").replace("3.14", "3.11"), encoding="utf-8")
    done = lock(tree, wheelhouse)
    assert done.returncode == 1
    assert "wheels of cpu cannot be resolved" in done.stderr
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
