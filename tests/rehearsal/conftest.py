"""Most of this needs a CUDA build of torch and no GPU; elsewhere it is skipped by name."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpulab.rehearsal import launch

PYTHON = Path(sys.executable)
CAPACITY = 256 << 20

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def device() -> None:
    """Skip, with its own sentence, where the device cannot be used."""
    complaint = launch.availability(PYTHON)
    if complaint is not None:
        pytest.skip(complaint)


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Script:
    """Run a script as the launcher does: by environment alone."""
    request.getfixturevalue("device")

    def run_script(
        source: str, *, capacity: int = CAPACITY, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "train.py"
        script.write_text(source)
        environment = dict(os.environ, **launch.environment(capacity))
        environment["PYTHONPATH"] = str(launch.SITE)
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        return subprocess.run(
            [PYTHON, script],
            env=environment | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run_script
