"""What this machine offers an attempt: a Python with torch, and something behind `cuda`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from gpulab import attempts, stack
from gpulab.attempts import Job, Launcher, Limits
from gpulab.catalogue import Exercise
from gpulab.catalogue.exercises import DeviceNeed
from gpulab.evidence.report import CannotDecide, Said
from gpulab.model import Device, Hardware, LabError
from gpulab.observe import Gpu
from gpulab.rehearsal import launch as rehearsal

# Read without importing torch, which takes seconds. Also the judge of syntax: the script's
# Python is not the lab's.
_LOOK = r"""
import importlib.util, json, platform, re, sys
found = {"python": platform.python_version(), "torch": None, "cuda": None}
spec = importlib.util.find_spec("torch")
if spec is not None and spec.origin:
    text = open(spec.origin.replace("__init__.py", "version.py")).read()
    for key, name in (("torch", "__version__"), ("cuda", "cuda")):
        match = re.search(r"^%s\b[^=]*= *'([^']*)'" % name, text, re.M)
        found[key] = match and match.group(1)
print(json.dumps(found), flush=True)
syntax = None
try:
    compile(open(sys.argv[1], "rb").read(), sys.argv[2], "exec", dont_inherit=True)
except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
    where = "line %s: " % error.lineno if getattr(error, "lineno", None) else ""
    syntax = where + (getattr(error, "msg", None) or str(error) or type(error).__name__)
print(json.dumps({"syntax": syntax}))
"""
LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class PythonFacts:
    """A Python, the torch it would import, and what it says of a script's syntax."""

    python: str
    torch: str | None
    cuda: str | None
    syntax: str | None


def attempt_python() -> Path:
    """The Python that attempts run on: GPULAB_PYTHON, a path or a name on PATH, else this one.

    Raises:
        LabError: there is no such program.
    """
    wanted = os.environ.get("GPULAB_PYTHON") or sys.executable
    found = shutil.which(wanted)
    if found is None:
        raise LabError(f"GPULAB_PYTHON is {wanted}, which cannot be run; correct it.")
    return Path(found).absolute()


def look_at_python(python: Path, script: Path, launcher: Launcher | None = None) -> PythonFacts:
    """Ask `python` for its version, its torch and the syntax of `script`.

    Args:
        python: a Python by its name where attempts run.
        script: a file.
        launcher: starts it, as an attempt: even to read hostile source is a risk.

    Raises:
        LabError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="gpulab-look-") as name:
        folder, scratch = Path(name, "look"), Path(name, "scratch")
        folder.mkdir()
        scratch.mkdir()
        (folder / "look.py").write_text(_LOOK, encoding="utf-8")
        shutil.copyfile(script, folder / "script")
        limits = Limits(seconds=LOOK_SECONDS)
        arguments = ("script", script.name)
        job = Job(folder, "look.py", scratch, arguments, python=python, cold=True, limits=limits)
        looked = attempts.run(job, launcher=launcher)
    said = looked.output("stdout").splitlines()
    try:
        facts = json.loads(said[0])
    except (IndexError, ValueError):
        why = looked.output("stderr").strip().splitlines()[-1:] or [f"exit {looked.exit_code}"]
        raise LabError(f"{python} is no usable Python ({why[0]}); correct GPULAB_PYTHON.") from None
    # Python itself may come to grief over a source, by its depth for example.
    syntax = json.loads(said[1])["syntax"] if len(said) > 1 else "Python fails while it reads it"
    return PythonFacts(**facts, syntax=syntax)


def choose_device(exercise: Exercise, wanted: Device | None, python: Path, gpu: Gpu) -> Device:
    """What stands behind `cuda` for this exercise on this machine.

    Raises:
        CannotDecide: nothing here can show the exercise.
    """
    need = exercise.facts.needs.device
    if wanted is Device.CUDA and gpu.absent:
        raise CannotDecide(Said("no_gpu"))
    if wanted is Device.CPU and need is not DeviceNeed.ANY:
        raise CannotDecide(Said("needs_cuda"))
    if need is DeviceNeed.GPU and (wanted is Device.REHEARSAL or gpu.absent):
        raise CannotDecide(Said("needs_gpu"))
    if wanted is None and not gpu.absent:
        wanted = Device.CUDA
    if wanted is None and need is DeviceNeed.ANY:
        wanted = Device.CPU
    if wanted in (None, Device.REHEARSAL):
        why = rehearsal.availability(python)
        if why is not None:
            raise CannotDecide(Said("no_rehearsal", {"why": why}))
    return wanted or Device.REHEARSAL


def check_torch(exercise: Exercise, python: Path, facts: PythonFacts) -> None:
    """Refuse a Python without torch, or with one that the exercise does not support.

    Raises:
        CannotDecide: it is such a Python.
    """
    if facts.torch is None:
        raise CannotDecide(Said("no_torch", {"python": python}))
    wanted = SpecifierSet(exercise.facts.needs.torch, prereleases=True)
    if facts.torch.partition("+")[0] not in wanted:
        values = {"wanted": wanted, "python": python, "found": facts.torch}
        raise CannotDecide(Said("torch_range", values))


def hardware(root: Path, device: Device, facts: PythonFacts, gpu: Gpu) -> Hardware:
    """What a verdict is reached on, compared with the machine's stack (GPULAB_STACK)."""
    with_gpu = device is Device.CUDA
    found = Hardware(
        device=device,
        python=facts.python,
        torch=facts.torch or "none",
        cuda=facts.cuda,
        gpu=gpu.devices[0].name if with_gpu else None,
        driver=gpu.driver if with_gpu else None,
    )
    name = os.environ.get("GPULAB_STACK", "current" if facts.cuda else "cpu")
    return Hardware(**{**found.__dict__, "stack": stack.compare(root, name, found)})
