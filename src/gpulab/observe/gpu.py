"""The machine's NVIDIA GPUs, as the driver's own library (NVML) reports them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DEVICE_FILES = "/dev/nvidia"


@dataclass(frozen=True)
class Device:
    """One GPU; `memory` in bytes, None where the driver does not say; `mig`: it is partitioned."""

    index: int
    name: str
    uuid: str
    memory: int | None
    mig: bool


class Gpu:
    """All GPUs of the machine. Without any, `absent` says why and every answer is None or empty."""

    def __init__(self) -> None:
        self.absent: str | None = None
        self.devices: tuple[Device, ...] = ()
        self.driver: str | None = None
        self.cuda: str | None = None
        self._seen = 0  # time stamp of the last utilisation sample, microseconds
        self._handles: list[Any] = []
        try:
            import pynvml  # noqa: PLC0415 - optional, and of no use on most machines

            self._nvml = pynvml
            pynvml.nvmlInit()
        except ImportError:
            self.absent = "the Python package nvidia-ml-py is not installed"
            return
        except pynvml.NVMLError as error:
            self.absent = f"the NVIDIA driver does not answer ({error})"
            return
        self._list_devices()

    def memory(self, visible: str | None = None) -> dict[int, int | None] | None:
        """Bytes of GPU memory by process id, None for a process of which the driver does not tell.

        The whole answer is None without a GPU, or where the driver lists no processes. `visible`,
        in the words of CUDA_VISIBLE_DEVICES, leaves the other GPUs out.
        """
        if not self._handles:
            return None
        used: dict[int, int | None] = {}
        for handle in self._handles_of(visible):
            processes = self._ask("nvmlDeviceGetComputeRunningProcesses", handle)
            if processes is None:
                return None
            for process in processes:
                before = used.get(process.pid, 0)
                known = before is not None and process.usedGpuMemory is not None
                used[process.pid] = before + process.usedGpuMemory if known else None
        return used

    def _handles_of(self, visible: str | None) -> list[Any]:
        names = [name for name in (visible or "").split(",") if name]
        chosen = [
            handle
            for device, handle in zip(self.devices, self._handles, strict=True)
            if any(name == str(device.index) or device.uuid.startswith(name) for name in names)
        ]
        return chosen or self._handles  # a partition's name, for example: it may be any of them

    def busy(self, pids: Iterable[int]) -> bool | None:
        """Whether one of the processes made a GPU compute since the last call, None if unknown."""
        wanted, answers, newest = set(pids), [], self._seen
        for handle in self._handles:
            samples = self._utilisation(handle)
            answers.append(samples is not None)
            for sample in samples or ():
                newest = max(newest, sample.timeStamp)
                if sample.pid in wanted and sample.smUtil > 0:
                    self._seen = newest
                    return True
        self._seen = newest
        return False if answers and all(answers) else None

    def _utilisation(self, handle: Any) -> list[Any] | None:
        try:
            return list(self._nvml.nvmlDeviceGetProcessUtilization(handle, self._seen))
        except self._nvml.NVMLError_NotFound:  # no sample since
            return []
        except self._nvml.NVMLError:
            return None

    def _list_devices(self) -> None:
        self.driver = self._ask("nvmlSystemGetDriverVersion")
        version = self._ask("nvmlSystemGetCudaDriverVersion")
        self.cuda = f"{version // 1000}.{version % 1000 // 10}" if version else None
        devices = []
        for index in range(self._ask("nvmlDeviceGetCount") or 0):
            handle = self._ask("nvmlDeviceGetHandleByIndex", index)
            if handle is None:
                continue
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
            mode = self._ask("nvmlDeviceGetMigMode", handle)
            devices.append(
                Device(
                    index,
                    self._ask("nvmlDeviceGetName", handle) or "unknown",
                    self._ask("nvmlDeviceGetUUID", handle) or "unknown",
                    memory.total if memory else None,
                    mig=bool(mode and mode[0]),
                )
            )
            self._handles.append(handle)
        self.devices = tuple(devices)
        if not devices:
            self.absent = "the NVIDIA driver lists no GPU"

    def _ask(self, function: str, *arguments: Any) -> Any:
        """The library's answer, None where it refuses or does not know the question."""
        try:
            return getattr(self._nvml, function)(*arguments)
        except self._nvml.NVMLError:
            return None


def uses_gpu(pid: int) -> bool:
    """Whether a process has one of NVIDIA's device files open."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            files = [entry.path for entry in entries]
    except OSError:
        return False
    return any(_target(file).startswith(DEVICE_FILES) for file in files)


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - the targets of /proc's links are often no paths
    except OSError:
        return ""
