"""What tests of the core share: the golden catalogue, attempts, commands, awkward disks."""

import os
import resource
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpulab import attempts
from gpulab.attempts import Attempt, Job

CHECKOUT = Path(__file__).resolve().parents[2]
GOLDEN = CHECKOUT / "tests" / "golden"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy of the golden catalogue to tamper with."""
    root = tmp_path / "golden"
    shutil.copytree(GOLDEN, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@dataclass
class Commands:
    """Runs `invoke` commands as a shell would, against a golden catalogue."""

    root: Path
    work: Path
    scratch: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.work / "exercise-1"

    @property
    def script(self) -> Path:
        return self.folder / "train.py"

    def use(self, variant: str) -> None:
        """Make the work folder that of a solution or a wrong fix."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (source,) = self.root.glob(f"checks/exercise-1/*/{variant}/train.py")
        shutil.copyfile(source, self.script)

    def environ(self, **changes: str) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name[:6] != "GPULAB"}
        return ours | {
            "GPULAB_ROOT": str(self.root),
            "GPULAB_WORK": str(self.work),
            "GPULAB_LANG": "en",
            "TMPDIR": str(self.scratch),
            **self.environment,
            **changes,
        }

    def start(self, *words: str, cwd: Path = CHECKOUT, env=None, **options) -> subprocess.Popen:
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "invoke", *words],
            cwd=cwd,
            env=self.environ(**(env or {})),
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            **options,
        )

    def run(self, *words: str, expect: int | None = None, **options) -> subprocess.CompletedProcess:
        """Run to the end; whatever happens, no traceback is shown and nothing is left behind."""
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in (out or "") + (err or "")
        assert not list(self.scratch.glob("gpulab-bug-*"))
        if expect is not None:
            assert process.returncode == expect, (words, process.returncode, out, err)
        return subprocess.CompletedProcess(words, process.returncode, out or "", err or "")

    def refused(self, *words: str, code: int = 1, **options) -> str:
        """Run what must be refused with one sentence, which is returned."""
        done = self.run(*words, expect=code, **options)
        lines = done.stderr.strip().splitlines()
        assert len(lines) == 1, done.stderr
        return lines[0]


@pytest.fixture
def scratch(tmp_path_factory) -> Path:
    """A folder for temporary files with a short name: a socket's may have 108 characters."""
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def commands(golden: Path, tmp_path: Path, scratch: Path) -> Commands:
    return Commands(golden, tmp_path / "work", scratch)


@pytest.fixture
def attempt(tmp_path: Path, scratch: Path):
    """Make an attempt of a script given as text."""

    def make(script: str, *arguments: str, listener=None, stop=None, **options) -> Attempt:
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(textwrap.dedent(script), encoding="utf-8")
        job = Job(folder, "train.py", scratch, arguments, **options)
        return attempts.run(job, listener, stop)

    return make


class Disks:
    """Folders on a disk that is full or read-only: small mounts where we may mount."""

    def __init__(self) -> None:
        self._mounted: list[Path] = []

    def full(self, folder: Path, leave: int = 0) -> dict:
        """Options of Popen under which no more than `leave` bytes can be written to `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._mount(folder, "size=64k"):
            (folder / "ballast").write_bytes(bytes(self._free(folder) - leave))
            return {}
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (leave, leave))}

    def read_only(self, folder: Path) -> None:
        """Make `folder`, as it is now, read-only."""
        if os.getuid():
            folder.chmod(0o500)
        elif not (self._bind(folder) and self._mount(folder, "remount,ro,bind")):
            pytest.skip("root without the right to mount: nothing is read-only for it")

    def _free(self, folder: Path) -> int:
        status = os.statvfs(folder)
        return status.f_bavail * status.f_frsize

    def _bind(self, folder: Path) -> bool:
        if subprocess.run(["mount", "--bind", folder, folder], check=False).returncode:
            return False
        self._mounted.append(folder)
        return True

    def _mount(self, folder: Path, options: str) -> bool:
        if os.getuid() or shutil.which("mount") is None:
            return False
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
        if "remount" in options:
            command = ["mount", "-o", options, folder]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        if "remount" not in options:
            self._mounted.append(folder)
        return True

    def close(self) -> None:
        for folder in reversed(self._mounted):
            subprocess.run(["umount", folder], check=True)


@pytest.fixture
def disks():
    found = Disks()
    yield found
    found.close()
