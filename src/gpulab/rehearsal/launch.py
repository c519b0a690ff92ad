"""The rehearsal device from the grader's side: can it be used, and how. Never imports torch."""

import fcntl
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpulab.rehearsal.site.gpulab_rehearsal import settings

SITE = Path(__file__).parent / "site"
"""Goes first on an attempt's PYTHONPATH. The attempt must be able to read it, and the stub."""

_STUB_SOURCES = Path(__file__).parent / "stub"
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1")
_SELF_TEST_CAPACITY = 64 << 20
_SELF_TEST_SECONDS = 120

# What must be known of an attempt's Python, without importing its torch.
_FACTS = """
import importlib.util, json, pathlib, runpy
spec = importlib.util.find_spec("torch")
facts = {}
if spec and spec.origin:
    version = runpy.run_path(str(pathlib.Path(spec.origin).parent / "version.py"))
    facts = {"version": str(version["__version__"]), "cuda": version.get("cuda")}
print(json.dumps(facts))
"""


class RehearsalError(RuntimeError):
    """The rehearsal device cannot be used; the text says why and what to do."""


def environment(capacity_bytes: int) -> dict[str, str]:
    """Return the variables that give an attempt the device; SITE is put on PYTHONPATH besides.

    Args:
        capacity_bytes: The device's memory.

    Raises:
        RehearsalError: The runtime stub is not compiled yet, and cannot be.
    """
    return {settings.STUB: str(compiled_stub()), settings.CAPACITY: str(capacity_bytes)}


def availability(python: Path) -> str | None:
    """Return None if that Python can use the device, else a sentence: why not, what to do."""
    try:
        _ensure_available(python)
    except RehearsalError as error:
        return str(error)
    return None


def cache_folder() -> Path:
    """Return the folder of the compiled stubs and of the self-tests that passed."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpulab" / "rehearsal"


def compiled_stub() -> Path:
    """Return the runtime stub, compiled at the first use. Several processes may ask at once.

    Raises:
        RehearsalError: There is no compiler, it failed, or the cache cannot be written.
    """
    stub = cache_folder() / f"stub-{_source_hash()}.so"
    if not stub.exists():
        try:
            _compile(stub)
        except OSError as error:
            raise RehearsalError(
                f"rehearsal device: cannot write {stub.parent} ({error.strerror}); "
                "set XDG_CACHE_HOME to a folder that can be written"
            ) from error
    return stub


def _ensure_available(python: Path) -> None:
    complaint = settings.driver_complaint()
    if complaint is not None:
        raise RehearsalError(f"{settings.PREFIX} {complaint}")
    version, cuda = _torch_of(python)
    complaint = settings.torch_complaint(version, cuda)
    if complaint is not None:
        raise RehearsalError(f"{settings.PREFIX} {complaint}")
    _ensure_self_test(python, version)


def _torch_of(python: Path) -> tuple[str, str | None]:
    """Return torch's version and CUDA version, read from the files of that Python."""
    try:
        found = subprocess.run(
            [python, "-c", _FACTS], capture_output=True, text=True, timeout=60, check=True
        )
        facts = json.loads(found.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RehearsalError(
            f"{settings.PREFIX} {python} does not run; name a Python that has torch"
        ) from error
    if "version" not in facts:
        raise RehearsalError(
            f"{settings.PREFIX} {python} has no torch; install torch 2.11 to 2.14, a CUDA build"
        )
    return facts["version"], facts["cuda"]


def _ensure_self_test(python: Path, version: str) -> None:
    """Run the self-test once for every torch and stub; a pass is remembered."""
    stub = compiled_stub()
    passed = stub.with_name(f"{stub.stem}-torch-{version}.passed")
    if passed.exists():
        return
    variables = environment(_SELF_TEST_CAPACITY)
    paths = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    inherited = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    try:
        run = subprocess.run(
            [python, "-m", "gpulab_rehearsal.self_test"],
            env=inherited | variables,
            capture_output=True,
            text=True,
            timeout=_SELF_TEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        failure = f"no answer within {_SELF_TEST_SECONDS} s"
    else:
        lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
        failure = lines[-1] if run.returncode else ""
    if failure:
        raise RehearsalError(
            f"{settings.PREFIX} its self-test fails on torch {version} ({failure}); "
            "use another torch from 2.11 to 2.14, or a GPU"
        )
    with suppress(OSError):  # a cache that is read-only remembers nothing
        passed.touch()


@functools.cache
def _source_hash() -> str:
    """Return a hash of all that a passed self-test vouches for: stub, bridge, flags, machine."""
    digest = hashlib.sha256(" ".join([*_FLAGS, platform.machine()]).encode())
    bridge = SITE / "gpulab_rehearsal"
    for source in sorted([*_STUB_SOURCES.glob("*.[ch]"), *bridge.glob("*.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(stub: Path) -> None:
    """Compile into a file of its own, then move it into place: nobody sees half a library."""
    stub.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(stub.parent):
        if stub.exists():
            return
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise RehearsalError(
                f"{settings.PREFIX} no C compiler to build its runtime with; install gcc or clang"
            )
        with tempfile.TemporaryDirectory(dir=stub.parent) as folder:
            half = Path(folder) / stub.name
            sources = sorted(_STUB_SOURCES.glob("*.c"))
            command: list[str | Path] = [
                compiler,
                *_FLAGS,
                *sources,
                "-o",
                half,
                "-ldl",
                "-lpthread",
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                first = (done.stderr.strip().splitlines() or ["no message"])[0]
                raise RehearsalError(
                    f"{settings.PREFIX} {compiler} cannot build its runtime ({first}); "
                    "install a C compiler with its headers"
                )
            half.replace(stub)


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time compile; the lock goes with the process."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
