"""What a machine's facts mean for a stack. Each rule says one thing, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from gpulab.doctor.facts import Facts, GpuFacts, TorchFacts
from gpulab.stack import Driver, Stack, Stacks

SHM = "/dev/shm"  # noqa: S108 - shared memory is what is meant
SHM_WANTED = 1 << 30  # workers hand batches over through it; a container starts with 64 MiB
FREE_SHARE_WANTED = 0.5


class State(StrEnum):
    """What a rule concludes."""

    FINE = "fine"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `remedy` says what to do where it is wrong or unknown."""

    key: str
    state: State
    seen: str
    remedy: str = ""


def examine(stacks: Stacks, name: str, facts: Facts, *, compatible: bool) -> list[Finding]:
    """Compare a machine with a stack.

    Args:
        stacks: all stacks; a remedy may point to another one.
        name: the stack.
        facts: the machine.
        compatible: accept a driver that is newer than the pinned one.

    Raises:
        LabError: no such stack.
    """
    stack = stacks.find(name)
    findings: list[Finding] = []
    if stack.driver is not None:
        findings += _driver(stack.driver, facts, compatible=compatible)
        findings += _libraries_match(facts)
        findings += _driver_serves_torch(stack, facts)
    findings += _torch(name, stack, facts)
    if stack.driver is not None and facts.torch is not None:
        findings += _architectures(stacks, facts.gpus, facts.torch)
        findings += _library_paths(facts, facts.torch)
    if stack.driver is not None:
        findings += _containers(stacks.shared.container_toolkit, facts)
        findings += _free_memory(facts.gpus)
    return [*findings, *_shared_memory(facts)]


def _driver(pinned: Driver, facts: Facts, *, compatible: bool) -> Iterator[Finding]:
    install = f"install exactly {pinned.version} ({pinned.package or 'the pinned installer'})"
    if facts.module is None:
        seen = facts.smi_error or "no NVIDIA driver is loaded"
        yield Finding("driver", State.WRONG, seen, f"{install}, then reboot")
    elif facts.module == pinned.version:
        yield Finding("driver", State.FINE, facts.module)
    elif _version(facts.module) < _version(pinned.version):
        seen = f"{facts.module} is older than the stack's {pinned.version}"
        yield Finding("driver-old", State.WRONG, seen, f"{install}, then reboot")
    elif compatible:
        seen = f"{facts.module}, newer than the stack's {pinned.version} and compatible with it"
        yield Finding("driver", State.FINE, seen)
    else:
        seen = f"{facts.module} is newer than the stack's {pinned.version}"
        yield Finding("driver-new", State.WRONG, seen, f"{install}, or accept it: --compatible")


def _libraries_match(facts: Facts) -> Iterator[Finding]:
    """Two causes look alike; whether a container ships the libraries itself tells them apart."""
    mismatch = "version mismatch" in (facts.smi_error or "")
    known = facts.module is not None and facts.library is not None
    if not mismatch and (not known or facts.module == facts.library):
        return
    seen = (
        f"the module is {facts.module}, the libraries are {facts.library or 'of another version'}"
    )
    if facts.container and facts.driver_packages:
        packages = ", ".join(package.partition(" ")[0] for package in facts.driver_packages)
        yield Finding(
            "driver-in-image",
            State.WRONG,
            f"{seen}: the image ships driver libraries of its own ({packages})",
            f"build the image without {packages}; the container toolkit mounts the host's",
        )
    else:
        yield Finding(
            "driver-half-upgraded",
            State.WRONG,
            f"{seen}: they were upgraded while the module was in use",
            "reboot this machine, then hold the driver's packages (`apt-mark hold`) and take them "
            "out of unattended upgrades",
        )


def _driver_serves_torch(stack: Stack, facts: Facts) -> Iterator[Finding]:
    """A driver serves every CUDA release of its own generation and of those before."""
    torch = facts.torch
    number = re.search(r"found version (\d+)", torch.error or "") if torch else None
    offered = facts.driver_cuda
    if number:
        offered = f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}"
    needed = (torch.cuda if torch else None) or stack.cuda or ""
    if offered is None:
        return
    if _version(offered)[0] >= _version(needed)[0]:
        yield Finding("cuda", State.FINE, f"the driver serves CUDA {offered}, torch needs {needed}")
        return
    yield Finding(
        "driver-too-old-for-torch",
        State.WRONG,
        f"the driver serves CUDA up to {offered}, this torch is built for {needed}",
        f"upgrade the driver to {stack.driver.version if stack.driver else needed}, or install a "
        f"torch built for CUDA {offered.split('.')[0]}; a CUDA toolkit changes nothing here",
    )


def _torch(name: str, stack: Stack, facts: Facts) -> Iterator[Finding]:
    again = f"install the stack's wheels with --require-hashes (images/locks/{name})"
    torch = facts.torch
    if torch is None or torch.torch is None:
        seen = "no torch can be imported" + (f": {torch.error}" if torch and torch.error else "")
        yield Finding("torch-missing", State.WRONG, seen, f"{again}, or correct GPULAB_PYTHON")
        return
    if stack.cuda is not None and torch.cuda is None:
        yield Finding(
            "torch-cpu-build",
            State.WRONG,
            f"torch {torch.torch} is a CPU build",
            f"{again}; the version alone does not tell the builds apart, torch.version.cuda does",
        )
    elif (torch.cuda or "none") != (stack.cuda or "none"):
        seen = f"torch {torch.torch} is built for CUDA {torch.cuda}, not {stack.cuda or 'none'}"
        yield Finding("torch-other-cuda", State.WRONG, seen, again)
    elif torch.torch.partition("+")[0] != stack.torch:
        seen = f"torch is {torch.torch}, not {stack.torch}"
        yield Finding("torch-other-version", State.WRONG, seen, again)
    else:
        yield Finding("torch", State.FINE, f"{torch.torch}, CUDA {torch.cuda or 'none'}")


def _architectures(
    stacks: Stacks, gpus: tuple[GpuFacts, ...], torch: TorchFacts
) -> Iterator[Finding]:
    if not torch.archs:
        return
    for gpu in gpus:
        if gpu.capability is None:
            continue
        if _serves(torch.archs, gpu.capability):
            yield Finding(
                "gpu", State.FINE, f"{gpu.name} ({gpu.capability}) is served by this torch"
            )
            continue
        other = [key for key, pins in stacks.stacks.items() if gpu.capability in pins.gpus]
        remedy = f"use the stack {other[0]}" if other else "no stack serves it"
        yield Finding(
            "gpu-not-served",
            State.WRONG,
            f"{gpu.name} has the architecture {gpu.capability}; this torch is built for "
            f"{', '.join(torch.archs)}",
            f"{remedy}, or build torch and every extension for {gpu.capability}; another driver or "
            "toolkit does not help",
        )


def _serves(archs: tuple[str, ...], capability: str) -> bool:
    """Machine code serves its generation from its own minor number on, PTX all that is newer."""
    gpu = _version(capability)
    for arch in archs:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", arch)
        if match is None:
            continue
        built = (int(match[2]), int(match[3]))
        if (match[1] == "compute" or built[0] == gpu[0]) and built <= gpu:
            return True
    return False


def _library_paths(facts: Facts, torch: TorchFacts) -> Iterator[Finding]:
    strays = [path for path in torch.libraries if not _within(path, torch.prefix)]
    incompatible = re.search(
        r"cuDNN version incompatibility: .*?compiled against \(?([\d, ]+)\)?.*?"
        r"found runtime version \(?([\d, ]+)\)?",
        torch.error or "",
        re.IGNORECASE,
    )
    if not strays and not incompatible:
        return
    folders = sorted({str(PurePath(path).parent) for path in strays})
    guilty = [path for path in facts.library_path if path.rstrip("/") in folders]
    guilty = guilty or folders or list(facts.library_path)
    seen = f"cuDNN or NCCL is taken from {', '.join(guilty) or 'outside torch'}"
    if incompatible:
        seen += f" (built for {incompatible[1].strip()}, found {incompatible[2].strip()})"
    yield Finding(
        "library-from-elsewhere",
        State.WRONG,
        seen,
        f"start without it: take {', '.join(guilty) or 'that folder'} out of LD_LIBRARY_PATH for "
        "this process; install or delete nothing",
    )


def _within(path: str, folder: str) -> bool:
    return PurePath(path).is_relative_to(folder)


def _containers(pinned: str, facts: Facts) -> Iterator[Finding]:
    if facts.container or not facts.docker:
        return
    if facts.toolkit is None:
        yield Finding(
            "toolkit-missing",
            State.WRONG,
            "the NVIDIA container toolkit is not installed",
            f"install its four packages, {pinned}",
        )
    elif facts.toolkit != pinned.partition("-")[0]:
        seen = f"the container toolkit is {facts.toolkit}, not {pinned}"
        yield Finding("toolkit-other-version", State.WRONG, seen, f"install {pinned}")
    else:
        yield Finding("toolkit", State.FINE, facts.toolkit)
    if not facts.cdi:
        remedy = "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
        yield Finding("cdi-missing", State.WRONG, "no CDI specification lists the GPUs", remedy)


def _free_memory(gpus: tuple[GpuFacts, ...]) -> Iterator[Finding]:
    for gpu in gpus:
        if gpu.total is None or gpu.free is None:
            remedy = "ask nvidia-smi on the host"
            yield Finding("gpu-memory", State.UNKNOWN, f"{gpu.name} does not say", remedy)
        elif gpu.free < FREE_SHARE_WANTED * gpu.total:
            seen = f"{gpu.name} has {gpu.free} of {gpu.total} MiB free"
            remedy = "end the processes that nvidia-smi lists, or wait for them"
            yield Finding("gpu-memory-taken", State.WRONG, seen, remedy)
        else:
            seen = f"{gpu.name}: {gpu.free} of {gpu.total} MiB free"
            yield Finding("gpu-memory", State.FINE, seen)


def _shared_memory(facts: Facts) -> Iterator[Finding]:
    if facts.shm_bytes is None:
        yield Finding("shm", State.UNKNOWN, f"{SHM} cannot be measured", "mount a tmpfs there")
    elif facts.shm_bytes < SHM_WANTED:
        seen = f"{SHM} holds {facts.shm_bytes >> 20} MiB; loader workers need more"
        remedy = (
            "start the container with --shm-size=8g" if facts.container else "enlarge the tmpfs"
        )
        yield Finding("shm-small", State.WRONG, seen, remedy)
    else:
        yield Finding("shm", State.FINE, f"{SHM} holds {facts.shm_bytes >> 20} MiB")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
