"""An attempt whose /dev/shm has a size of its own, or cannot have one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpulab.attempts import Job, LocalLauncher, NotPossibleHereError, own_shm
from gpulab.attempts.job import Setting
from gpulab.attempts.sandbox.config import SandboxConfig
from gpulab.attempts.sandbox.view import View
from gpulab.catalogue import Catalogue, load_checks
from gpulab.evidence.lab import Lab, Order
from gpulab.evidence.report import CannotDecide
from gpulab.model import Device

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
MIB = 1 << 20
SHM = own_shm.PLACE.decode()
SHOW = """
import json, os, subprocess
state = os.statvfs("/dev/shm")
open("/dev/shm/seen-inside", "w").close()
child = subprocess.run(["ls", "/dev/shm"], capture_output=True, text=True, check=True)
print(json.dumps([state.f_blocks * state.f_frsize, child.stdout.split(), os.getuid(), os.getgid()]))
"""


def shown(attempt, **options):
    try:
        made = attempt(SHOW, **options)
    except NotPossibleHereError as error:
        pytest.skip(str(error))
    assert made.exit_code == 0, made.output()
    return json.loads(made.output("stdout"))


def test_it_has_the_size_and_nobody_else_sees_it(attempt) -> None:
    size, listed, user, group = shown(attempt, shm_bytes=8 * MIB)
    assert (size, user, group) == (8 * MIB, os.getuid(), os.getgid())
    assert listed == ["seen-inside"]
    assert not Path(SHM, "seen-inside").exists()


def test_without_a_size_it_is_the_machines_own(attempt) -> None:
    state = os.statvfs(SHM)
    made = attempt("import os; print(os.statvfs('/dev/shm').f_fsid)")
    assert int(made.output("stdout")) == state.f_fsid


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_no_rights_are_needed(tmp_path: Path) -> None:
    """As the user nobody, who keeps its number and gets no capability."""
    program = shutil.copy(own_shm.PROGRAM, tmp_path / "own_shm.py")
    tmp_path.chmod(0o755)
    python = shutil.which("python3", path="/usr/bin") or pytest.skip("no Python for everybody")
    script = tmp_path / "show.sh"
    script.write_text("id -u; id -g; grep CapEff /proc/self/status; df --output=size /dev/shm")
    for folder in tmp_path.parents[:3]:  # pytest's own, which only their owner may enter
        folder.chmod(0o755)
    command = [python, str(program), str(4 * MIB), "/bin/sh", str(script)]
    done = as_nobody(command)
    if done.returncode:
        pytest.skip(f"no user namespaces here: {done.stderr}")
    assert done.stdout.split() == ["65534", "65534", "CapEff:", "0" * 16, "1K-blocks", "4096"]


def as_nobody(command: list[str]) -> subprocess.CompletedProcess:
    who = {"user": 65534, "group": 65534, "extra_groups": []}
    return subprocess.run(command, capture_output=True, text=True, check=False, **who)


@pytest.fixture
def forbidden(tmp_path: Path, monkeypatch) -> None:
    """A machine on which nobody may make a namespace."""
    program = tmp_path / "forbidden.py"
    program.write_text("import sys; sys.exit('Operation not permitted')")
    monkeypatch.setattr(own_shm, "PROGRAM", program)


@pytest.mark.usefixtures("forbidden")
def test_where_it_is_not_possible_the_machine_is_named(attempt) -> None:
    with pytest.raises(NotPossibleHereError, match="Operation not permitted") as refused:
        attempt("print(1)", shm_bytes=MIB)
    assert refused.value.code == 3
    setting = Setting(Path("/usr/bin/python3"), Device.CPU, shm_bytes=MIB)
    with pytest.raises(NotPossibleHereError):
        LocalLauncher().prepare(setting)


class Nowhere:
    """A launcher on such a machine."""

    level = "local"

    def launch(self, _: Job):
        raise NotPossibleHereError("not here")


def test_a_check_is_then_undecided(tmp_path: Path) -> None:
    checks = load_checks(GOLDEN, Catalogue(GOLDEN).find("1"))
    python = Path("/usr/bin/python3")
    order = Order(checks, tmp_path, tmp_path, tmp_path, python, Device.CPU, MIB, seed=1)
    with pytest.raises(CannotDecide) as undecided:
        Lab(order, lambda *_: None, Nowhere()).run()
    assert undecided.value.said.values == {"why": "not here"}


def test_in_a_sandbox_it_is_mounted_with_that_size() -> None:
    python = Path("/opt/stack/bin/python")
    config = SandboxConfig(python=str(python))

    def words(**options: int) -> str:
        view = View(config, None, Setting(python, Device.CPU, **options), 61000)
        return " ".join(view.arguments({}))

    assert f"--size {1024 * MIB} --tmpfs /dev/shm" in words()
    assert f"--size {64 * MIB} --tmpfs /dev/shm" in words(shm_bytes=64 * MIB)
    assert f"--size {1024 * MIB} --tmpfs /tmp" in words(shm_bytes=64 * MIB)
