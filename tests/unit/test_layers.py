"""Who may import whom, and that torch stays on the attempt's side."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_contracts_of_pyproject() -> None:
    tool = shutil.which("lint-imports", path=Path(sys.executable).parent)
    if tool is None:
        pytest.skip("import-linter is not installed; install the extra `dev`")
    done = subprocess.run(
        [tool, "--no-cache"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", ["gpulab.grading.judge", "gpulab.evidence", "gpulab.tasks"])
def test_no_torch_on_the_graders_side(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_attempt_side_stands_alone(tmp_path: Path) -> None:
    """Copied elsewhere, away from everything of ours, it still loads."""
    shutil.copyfile(CHECKOUT / "src/gpulab/attempts/child.py", tmp_path / "child.py")
    code = "import sys, child; sys.exit(any(n.startswith('gpulab') for n in sys.modules))"
    subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, check=True)
