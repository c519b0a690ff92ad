"""The tour's code, run on the Python that has torch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Self

from gpulab.attempts import Setting
from gpulab.model import Device, LabError

CHILD = Path(__file__).with_name("child.py")


class Live:
    """A process that runs one step's code after the other. A context manager.

    Args:
        python: a Python that has torch.
    """

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process = subprocess.Popen(
            [str(python), str(CHILD)],
            env=Setting(python, Device.CPU).environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, code: str) -> str:
        """What the code shows.

        Raises:
            LabError: it fails, with the exception's last line.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("started without pipes")
        try:
            self._process.stdin.write(json.dumps({"code": code}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise LabError(f"{self._python} ended in the middle of the tour; try again.", code=4)
        answer = json.loads(line)
        if answer["error"]:
            said = answer["error"].strip().splitlines()[-1]
            raise LabError(f"The tour does not run on {self._python}: {said}", code=4)
        shown: str = answer["shown"]
        return shown
