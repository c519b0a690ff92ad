"""The driver's library: absent, present, and refusing; it is a fake one here."""

import os
import sys
from types import SimpleNamespace

import pytest

from gpulab.observe import Gpu, Observer, end_everything
from gpulab.observe import observer as observer_module

GIB = 1 << 30


class NVMLError(Exception):
    pass


class NotFoundError(NVMLError):
    pass


class FakeDriver(SimpleNamespace):
    """Answers as NVML does; what is set to an exception is refused."""

    NVMLError = NVMLError
    NVMLError_NotFound = NotFoundError
    answers = {  # noqa: RUF012 - replaced, never changed
        "nvmlInit": None,
        "nvmlSystemGetDriverVersion": "580.1",
        "nvmlSystemGetCudaDriverVersion": 13000,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlDeviceGetName": "Card",
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * GIB),
        "nvmlDeviceGetMigMode": NVMLError("not supported"),
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetProcessUtilization": [],
    }

    def __getattr__(self, name):
        def answer(*_arguments):
            value = self.answers[name]
            if isinstance(value, Exception):
                raise value
            return value

        return answer


@pytest.fixture
def driver(monkeypatch):
    def install(**answers):
        fake = FakeDriver(answers=FakeDriver.answers | answers)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return Gpu()

    return install


def test_without_the_package_absence_is_a_value(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    gpu = Gpu()
    assert "not installed" in gpu.absent
    assert (gpu.devices, gpu.driver, gpu.cuda) == ((), None, None)
    assert gpu.memory() is None
    assert gpu.busy([1]) is None


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"nvmlInit": NVMLError("Driver Not Loaded")}, "Driver Not Loaded"),
        ({"nvmlDeviceGetCount": 0}, "no GPU"),
    ],
)
def test_without_a_gpu_absence_is_a_value(driver, answers, words):
    gpu = driver(**answers)
    assert words in gpu.absent
    assert gpu.memory() is None


def test_names_and_versions(driver):
    gpu = driver()
    assert (gpu.absent, gpu.driver, gpu.cuda) == (None, "580.1", "13.0")
    (device,) = gpu.devices
    assert (device.name, device.memory, device.mig) == ("Card", 80 * GIB, False)
    assert driver(nvmlDeviceGetMigMode=[1, 1]).devices[0].mig


def processes(*pairs):
    return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in pairs]


def test_memory_by_process(driver):
    gpu = driver(nvmlDeviceGetComputeRunningProcesses=processes((1, 5), (2, None), (1, 7)))
    assert gpu.memory() == {1: 12, 2: None}
    refused = NVMLError("no permission")
    assert driver(nvmlDeviceGetComputeRunningProcesses=refused).memory() is None


def test_utilisation_by_process(driver):
    samples = [SimpleNamespace(pid=4, smUtil=30, timeStamp=9)]
    gpu = driver(nvmlDeviceGetProcessUtilization=samples)
    assert gpu.busy([4]) is True
    assert gpu.busy([5]) is False
    assert driver(nvmlDeviceGetProcessUtilization=NotFoundError()).busy([4]) is False
    assert driver(nvmlDeviceGetProcessUtilization=NVMLError("MIG")).busy([4]) is None


@pytest.fixture
def observed(watcher, driver):
    """What an observer with a fake driver saw of a running script."""

    def observe(**answers):
        watched = watcher.start("family.py", "program")
        watched.look_until("READY")
        answers = {name: make(watched.process.pid) for name, make in answers.items()}
        observer = Observer(watched.process.pid, watcher.folder, gpu=driver(**answers))
        observer.look(0)
        evidence = observer.evidence()
        end_everything(watched.observer)
        return evidence

    return observe


def test_memory_of_the_tree(observed):
    evidence = observed(
        nvmlDeviceGetComputeRunningProcesses=lambda pid: processes((pid, GIB), (os.getpid(), 5))
    )
    assert evidence.memory[-1].gpu == GIB
    assert evidence.missing == ()


def test_memory_that_the_driver_keeps_to_itself_is_missing_and_never_zero(observed, monkeypatch):
    evidence = observed(
        nvmlDeviceGetComputeRunningProcesses=lambda pid: processes((pid, None)),
        nvmlDeviceGetProcessUtilization=lambda _: NVMLError("not supported"),
    )
    assert evidence.memory[-1].gpu is None
    assert evidence.missing == (
        "GPU utilisation by process: the driver does not tell it here",
        "GPU memory by process: the driver does not tell it here",
    )
    # In a container the driver lists other process ids, or none.
    monkeypatch.setattr(observer_module, "uses_gpu", lambda _: True)
    assert observed().memory[-1].gpu is None


def test_a_tree_without_gpu_work_uses_no_gpu_memory(observed):
    assert observed().memory[-1].gpu == 0


def test_an_absent_gpu_is_named(watcher, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    observer = Observer(os.getpid(), watcher.folder, gpu=Gpu())
    assert observer.evidence().missing == ("GPU: the Python package nvidia-ml-py is not installed",)
