"""GPU memory that others hold, and that an attempt does not give back; the driver is a fake."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpulab import attempts
from gpulab.attempts import Attempt, Ended, Job, hygiene
from gpulab.attempts.attempt import Failure, Line
from gpulab.catalogue import Catalogue, load_checks
from gpulab.evidence import lab as lab_module
from gpulab.evidence.lab import Lab, Order
from gpulab.evidence.report import CannotDecide
from gpulab.evidence.words import message
from gpulab.model import Device
from gpulab.observe import Evidence, Gpu

GIB = 1 << 30
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


class Driver(SimpleNamespace):
    """NVML with two GPUs; `held` lists (index, pid, bytes)."""

    NVMLError = NVMLError_NotFound = RuntimeError
    held: list = []  # noqa: RUF012 - replaced, never changed

    def nvmlDeviceGetComputeRunningProcesses(self, handle):  # noqa: N802 - NVML's name
        return [SimpleNamespace(pid=p, usedGpuMemory=b) for i, p, b in self.held if i == handle]

    def __getattr__(self, name):
        answers = {
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetUUID": lambda index: f"GPU-{index}00",
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=80 * GIB),
            "nvmlDeviceGetProcessUtilization": lambda *_: [],
            "nvmlSystemGetCudaDriverVersion": lambda: 13000,
        }
        return answers.get(name, lambda *_: None)


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(hygiene, "BACK_WITHIN", 0.2)
    fake = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_others_are_those_of_the_gpus_in_question(driver, monkeypatch) -> None:
    driver.held = [(0, 10, 3 * GIB), (1, 11, 5 * GIB)]
    assert hygiene.GpuMemory(Gpu()).others == 8 * GIB
    for name, held in {"1": 5, "GPU-000": 3, "0,1": 8, "MIG-7": 8}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", name)
        assert hygiene.GpuMemory(Gpu()).others == held * GIB, name


def test_a_process_of_which_the_driver_does_not_tell_counts(driver) -> None:
    driver.held = [(0, 10, None)]
    assert hygiene.GpuMemory(Gpu()).others > 0


def test_what_is_not_given_back(driver) -> None:
    memory = hygiene.GpuMemory(Gpu())
    driver.held = [(0, 10, GIB), (0, 99, GIB)]
    assert memory.left_by({10, 11}) == GIB
    driver.held = [(0, 99, GIB)]
    assert memory.left_by({10, 11}) == 0


def test_the_evidence_says_so(driver, tmp_path: Path) -> None:
    driver.held = [(0, 10, 2 * GIB)]
    (tmp_path / "train.py").write_text("print(1)\n")
    made = attempts.run(Job(tmp_path, "train.py", tmp_path, device=Device.CUDA))
    assert (made.gpu_others, made.gpu_left) == (2 * GIB, 0)
    assert lab_module.summary(made)["gpu_others_bytes"] == 2 * GIB


WELL = Attempt(Ended.EXIT, 0, (), Evidence(1.0, 1.0, (), (), ()), answer=1, answered=True)
SHORT = replace(
    WELL,
    answered=False,
    error=Failure("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB"),
    gpu_others=0,
)
CROWDED = replace(SHORT, gpu_others=40 * GIB)
SHORT_RUN = replace(
    WELL,
    exit_code=1,
    gpu_others=GIB,
    lines=(Line(1.0, "stderr", "torch.OutOfMemoryError: CUDA out of memory."),),
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch):
    """A lab whose attempts end as they are told to."""

    def make(*endings: Attempt) -> Lab:
        coming = iter(endings)
        monkeypatch.setattr(attempts, "run", lambda *_: next(coming))
        checks = load_checks(GOLDEN, Catalogue(GOLDEN).find("1"))
        python = Path(sys.executable)
        scratch = Path(tempfile.mkdtemp(dir=tmp_path))
        order = Order(checks, tmp_path, tmp_path, scratch, python, Device.CUDA, 1, 1)
        return Lab(order, lambda *_: None)

    return make


def test_want_of_memory_on_a_free_gpu_is_its_own(lab) -> None:
    assert lab(SHORT).call("f").short_of_gpu_memory


@pytest.mark.parametrize("first", [CROWDED, SHORT_RUN])
def test_want_of_memory_on_a_crowded_gpu_is_tried_again(lab, first: Attempt) -> None:
    assert lab(first, WELL).call("f") is WELL
    assert lab(first, SHORT).call("f") is SHORT  # this time nobody else was there


def test_twice_on_a_crowded_gpu_decides_nothing(lab) -> None:
    with pytest.raises(CannotDecide) as undecided:
        lab(CROWDED, CROWDED).call("f")
    assert undecided.value.said.key == "gpu_taken"
    assert message(undecided.value.said, {}).texts["en"].count("40960 MiB") == 1


def test_a_call_that_fails_otherwise_is_not_repeated(lab) -> None:
    other = replace(CROWDED, error=Failure("ValueError", "no"))
    assert lab(other).call("f") is other
