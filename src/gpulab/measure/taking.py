"""Taking a measurement, case by case; what was measured stays when it is stopped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from gpulab import attempts
from gpulab.attempts import Attempt, Call, Job, Limits
from gpulab.grading import machine, scratch_folder
from gpulab.measure.measurement import Case, FailedError, Measurement, in_words
from gpulab.measure.results import Results
from gpulab.model import Device, LabError
from gpulab.observe import Gpu

SCRIPTS = Path(__file__).parent / "scripts"


class Taking:
    """One measurement on this machine.

    Args:
        measurement: which.
        runs: how often each case is measured.
        only: a word that the cases' names hold.
        device: `cpu` or `cuda`; None: `cuda` where there is a GPU.

    Raises:
        LabError: no such case, no torch, no such device, or the rehearsal device, on which
            nothing can be timed.
    """

    def __init__(
        self, measurement: Measurement, runs: int, only: str, device: Device | None
    ) -> None:
        self.cases = measurement.chosen(runs, only)
        gpu = Gpu()
        if device is Device.REHEARSAL:
            raise LabError("Nothing can be measured on the rehearsal device; choose cpu or cuda.")
        if device is Device.CUDA and gpu.absent:
            raise LabError(f"There is no GPU here: {gpu.absent}. Try --device cpu.")
        self._measurement = measurement
        self._python = machine.attempt_python()
        self._device = device or (Device.CPU if gpu.absent else Device.CUDA)
        facts = machine.look_at_python(self._python, SCRIPTS / measurement.script)
        if facts.torch is None:
            raise LabError(f"{self._python} has no torch; install it there or set GPULAB_PYTHON.")
        name = gpu.devices[0].name if self._device is Device.CUDA else None
        self.results = Results.begin(measurement, self._device, name, facts.torch)

    @property
    def price(self) -> str:
        """What it will take, in words."""
        count, mib = len(self.cases), self._measurement.mib
        seconds = count * self._measurement.seconds_a_case
        return (
            f"{self._measurement.title}: {count} runs on {self._device}, about {seconds:.0f} s on "
            f"two processors, up to {mib} MiB of memory, nothing on the disk."
        )

    def __iter__(self) -> Iterator[Case]:
        """Every case, before it is measured; its row is in `results` when the next one comes."""
        for case in self.cases:
            yield case
            try:
                self.results.add(self._measurement.row(case, self._attempt(case)))
            except FailedError as failed:
                self.results.failures.append(f"{in_words(case)}: {failed}")
        self.results.complete = True

    def _attempt(self, case: Case) -> Attempt:
        script = self._measurement.script
        with scratch_folder() as scratch:
            folder = scratch / "script"
            folder.mkdir()
            shutil.copyfile(SCRIPTS / script, folder / script)
            job = Job(
                folder=folder,
                script=script,
                scratch=scratch,
                call=Call("measure", kwargs=case),
                python=self._python,
                device=self._device,
                limits=Limits(seconds=self._measurement.limit),
            )
            return attempts.run(job)
