"""A version is written in images/stacks.yml and nowhere else."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab import stack

ROOT = Path(__file__).resolve().parents[3]
PINS = stack.load(ROOT)
VERSION = re.compile(r"\d+\.\d+\.\d+[\d.]*|sha256:[0-9a-f]{16,}|\bcu1[0-9]{2}\b")
ADDRESS = re.compile(r"127\.0\.0\.1|0\.0\.0\.0")
SEAT = sorted(path for path in (ROOT / "images" / "seat").rglob("*") if path.is_file())


@pytest.mark.parametrize("path", SEAT, ids=lambda path: path.name)
def test_the_seat_names_no_version_of_its_own(path):
    found = VERSION.findall(path.read_text(encoding="utf-8"))
    assert [each for each in found if not ADDRESS.fullmatch(each)] == []


def _pinned():
    """The exact versions that stacks.yml alone may write."""
    for pins in PINS.stacks.values():
        yield pins.base.digest
        if pins.driver:
            yield pins.driver.version
    yield PINS.shared.container_toolkit
    yield PINS.shared.micromamba.digest


def test_docs_and_roles_name_no_pin_of_their_own():
    for folder in ("docs", "provisioning"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".md", ".yml", ".j2"}:
                text = path.read_text(encoding="utf-8")
                found = [pin for pin in _pinned() if pin in text]
                assert not found, f"{path} names {found}; point to images/stacks.yml instead"


def test_hadolint_has_nothing_to_say():
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent)
    assert hadolint, "hadolint is missing; install gpulab with its dev extra"
    command = [hadolint, "--no-color", ROOT / "images" / "seat" / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""
