import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpulab.rehearsal import launch
from gpulab.rehearsal.site.gpulab_rehearsal import settings

PYTHON = Path(sys.executable)
NO_DRIVER = settings.driver_complaint() is None
without_driver = pytest.mark.skipif(not NO_DRIVER, reason="this machine has a driver")


def fake_python(folder: Path, version: str, cuda: str | None) -> Path:
    """Return a Python whose torch consists of its version file."""
    torch = folder / "packages" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("raise SystemExit('imported')\n")
    (torch / "version.py").write_text(f"__version__ = {version!r}\ncuda = {cuda!r}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={torch.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@without_driver
@pytest.mark.parametrize(
    ("version", "cuda", "expected"),
    [
        ("2.14.1+cpu", None, "torch 2.14.1+cpu is no CUDA build; install torch 2.11 to 2.14"),
        ("2.10.0+cu128", "12.8", "torch 2.10.0+cu128 is not supported; install torch 2.11 to 2.14"),
        ("2.15.0+cu130", "13.0", "torch 2.15.0+cu130 is not supported"),
        ("3.0.0+cu130", "13.0", "torch 3.0.0+cu130 is not supported"),
    ],
)
def test_unsupported_torch_is_told_what_to_do(tmp_path, version, cuda, expected):
    complaint = launch.availability(fake_python(tmp_path, version, cuda))
    assert complaint is not None
    assert complaint.startswith(f"rehearsal device: {expected}")
    assert "\n" not in complaint


@without_driver
def test_python_that_does_not_run(tmp_path):
    complaint = launch.availability(tmp_path / "missing")
    assert complaint is not None
    assert complaint.endswith("does not run; name a Python that has torch")


def test_a_driver_comes_first(monkeypatch):
    monkeypatch.setattr(settings, "driver_complaint", lambda: "this machine has an NVIDIA GPU; x")
    assert launch.availability(PYTHON) == "rehearsal device: this machine has an NVIDIA GPU; x"


def test_driver_is_found_by_its_library(tmp_path):
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    program = (
        "from gpulab.rehearsal.site.gpulab_rehearsal.settings import driver_complaint;"
        "print(driver_complaint())"
    )
    environment = dict(os.environ, LD_LIBRARY_PATH=str(tmp_path))
    found = subprocess.run(
        [PYTHON, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert "has an NVIDIA" in found.stdout


@pytest.mark.usefixtures("empty_cache")
def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.RehearsalError, match=r"no C compiler .*; install gcc or clang"):
        launch.compiled_stub()


@pytest.mark.usefixtures("empty_cache")
def test_compiler_that_fails(monkeypatch, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'stdio.h: no such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(launch.RehearsalError, match=r"\(stdio.h: no such file\); install"):
        launch.compiled_stub()


@pytest.mark.usefixtures("empty_cache")
def test_no_compiler_is_needed_twice(monkeypatch, tmp_path):
    stub = launch.compiled_stub()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.compiled_stub() == stub


def test_cache_that_cannot_be_made(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocker))
    with pytest.raises(launch.RehearsalError, match="set XDG_CACHE_HOME to a folder"):
        launch.compiled_stub()


@pytest.mark.usefixtures("empty_cache")
def test_several_compile_at_once():
    program = "from gpulab.rehearsal import launch; print(launch.compiled_stub())"

    def start(_number):
        return subprocess.run(
            [PYTHON, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()

    with ThreadPoolExecutor(6) as pool:
        stubs = set(pool.map(start, range(6)))
    assert len(stubs) == 1
    assert sorted(p.suffix for p in Path(stubs.pop()).parent.iterdir()) == ["", ".so"]


def test_stub_compiles_without_a_warning(tmp_path):
    sources = sorted((Path(launch.__file__).parent / "stub").glob("*.c"))
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-z,defs"]
    subprocess.run(["cc", *flags, *sources, "-o", tmp_path / "stub.so", "-ldl"], check=True)


@pytest.mark.usefixtures("device", "empty_cache")
def test_self_test_runs_once(monkeypatch):
    assert launch.availability(PYTHON) is None
    monkeypatch.setattr(launch, "_SELF_TEST_SECONDS", 0)  # a second one would be out of time
    assert launch.availability(PYTHON) is None


@pytest.mark.usefixtures("device", "empty_cache")
def test_self_test_that_fails_is_named_and_not_remembered(monkeypatch):
    monkeypatch.setattr(launch, "_SELF_TEST_CAPACITY", 1 << 20)  # less than one block of torch's
    for _ in range(2):
        complaint = launch.availability(PYTHON)
        assert complaint is not None
        assert complaint.startswith("rehearsal device: its self-test fails on torch 2.")
        assert complaint.endswith("use another torch from 2.11 to 2.14, or a GPU")


@pytest.mark.usefixtures("device")
def test_grader_side_does_not_import_torch():
    program = (
        "import sys; from pathlib import Path; from gpulab.rehearsal import launch;"
        "launch.availability(Path(sys.executable)); launch.environment(1 << 20);"
        "print('torch' in sys.modules)"
    )
    found = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.usefixtures("device")
def test_all_variables_have_the_prefix():
    variables = launch.environment(1 << 30)
    assert all(name.startswith("GPULAB_REHEARSAL_") for name in variables)
    assert Path(variables[settings.STUB]).is_file()
    assert variables[settings.CAPACITY] == str(1 << 30)


def test_attempt_side_compiles_on_python_3_9():
    for source in launch.SITE.rglob("*.py"):
        ast.parse(source.read_text(), feature_version=(3, 9))
