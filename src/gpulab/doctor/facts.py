"""What is to be known of a machine, read out of what its programs say."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from gpulab.doctor.machine import Machine

_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_QUERY = "name,compute_cap,memory.total,memory.free"

# Runs on the stack's Python (3.9 and later). What torch says on the way is part of the answer.
_PROBE = r"""
import json, sys, warnings
found = {"prefix": sys.prefix, "error": None}
try:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import torch
        found["torch"], found["cuda"] = torch.__version__, torch.version.cuda
        found["archs"] = torch.cuda.get_arch_list()
        if torch.cuda.is_available():
            torch.zeros(1, device="cuda")
        if torch.version.cuda:
            torch.backends.cudnn.version()
    found["error"] = "; ".join(str(w.message) for w in said) or None
except Exception as error:
    found["error"] = "%s: %s" % (type(error).__name__, error)
maps = open("/proc/self/maps").read().split("\n")
paths = {line.split(None, 5)[5] for line in maps if line.count("/")}
found["libraries"] = sorted(p for p in paths if "libcudnn" in p or "libnccl" in p)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class GpuFacts:
    """One GPU; memory in MiB, `capability` like "9.0", None where the driver does not say."""

    name: str
    capability: str | None
    total: int | None
    free: int | None


@dataclass(frozen=True)
class TorchFacts:
    """The torch of the stack's Python; `error` is what it complained about when first used."""

    torch: str | None
    cuda: str | None
    archs: tuple[str, ...]
    prefix: str
    libraries: tuple[str, ...]
    error: str | None


@dataclass(frozen=True)
class Facts:
    """A machine. `module` is the driver in the kernel, `library` the one in user space."""

    module: str | None
    library: str | None
    driver_packages: tuple[str, ...]
    driver_cuda: str | None
    smi_error: str | None
    gpus: tuple[GpuFacts, ...]
    torch: TorchFacts | None
    container: bool
    docker: bool
    toolkit: str | None
    cdi: tuple[str, ...]
    shm_bytes: int | None
    library_path: tuple[str, ...]


def look(machine: Machine, python: Path) -> Facts:
    """Look at a machine; `python` is the one that attempts run on."""
    smi = machine.run("nvidia-smi", ["nvidia-smi"]) or ""
    packages = _driver_packages(machine)
    version = machine.read("/proc/driver/nvidia/version") or ""
    return Facts(
        module=_first(r"Kernel Module.*?\s(\d{3}\.\d+(?:\.\d+)?)\s", version),
        library=_library(smi, packages),
        driver_packages=packages,
        driver_cuda=_first(r"CUDA Version:\s*(\d+\.\d+)", smi),
        smi_error=_first(r"(Failed to initialize NVML: .*|NVIDIA-SMI has failed.*)", smi),
        gpus=_gpus(machine),
        torch=_torch(machine.run("torch", [str(python), "-c", _PROBE])),
        container=any(machine.read(path) is not None for path in _CONTAINER_MARKS),
        docker=machine.run("docker", ["docker", "--version"]) is not None,
        toolkit=_first(r"version (\S+)", machine.run("nvidia-ctk", ["nvidia-ctk", "--version"])),
        cdi=_yaml_files(machine),
        shm_bytes=_shm(machine),
        library_path=tuple(filter(None, machine.variable("LD_LIBRARY_PATH").split(":"))),
    )


def _first(pattern: str, text: str | None) -> str | None:
    match = re.search(pattern, text or "")
    return match and match[1].strip()


def _driver_packages(machine: Machine) -> tuple[str, ...]:
    """Debian packages that bring the driver's user-space libraries: "name version"."""
    command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\\n"]
    said = machine.run("dpkg", [*command, "libnvidia-compute-*"]) or ""
    return tuple(re.findall(r"^libnvidia-compute-\S+ \S+", said, re.MULTILINE))


def _library(smi: str, packages: tuple[str, ...]) -> str | None:
    """The driver's libraries: as nvidia-smi says, else as their package says."""
    said = _first(r"NVML library version:\s*(\d+\.\d+(?:\.\d+)?)", smi)
    said = said or _first(r"Driver Version:\s*(\d+\.\d+(?:\.\d+)?)", smi)
    return said or _first(r" (\d+\.\d+(?:\.\d+)?)", packages[0] if packages else None)


def _gpus(machine: Machine) -> tuple[GpuFacts, ...]:
    query = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    gpus = []
    for line in (machine.run("gpus", query) or "").splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == len(_QUERY.split(",")):
            name, capability, total, free = fields
            known = re.fullmatch(r"\d+\.\d+", capability)
            gpus.append(GpuFacts(name, known and known[0], _number(total), _number(free)))
    return tuple(gpus)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _torch(said: str | None) -> TorchFacts | None:
    """The probe's last line; None where that Python does not work at all."""
    with contextlib.suppress(ValueError, IndexError):
        found = json.loads((said or "").strip().splitlines()[-1])
        return TorchFacts(
            torch=found.get("torch"),
            cuda=found.get("cuda"),
            archs=tuple(found.get("archs", ())),
            prefix=found["prefix"],
            libraries=tuple(found["libraries"]),
            error=found["error"],
        )
    return None


def _yaml_files(machine: Machine) -> tuple[str, ...]:
    said = machine.run("cdi", ["find", "/etc/cdi", "/var/run/cdi", "-type", "f"]) or ""
    return tuple(re.findall(r"^/.*\.(?:yaml|json)$", said, re.MULTILINE))


def _shm(machine: Machine) -> int | None:
    said = machine.run("shm", ["df", "--block-size=1", "--output=size", "/dev/shm"])  # noqa: S108
    return _number(_first(r"(\d+)\s*$", said) or "")
