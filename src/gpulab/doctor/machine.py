"""Where the facts come from: programs and files of a machine, this one or a recorded one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_SECONDS = 120  # the first import of torch from a cold disk is slow


class Machine(Protocol):
    """A machine that can be looked at."""

    def run(self, name: str, command: list[str]) -> str | None:
        """What a program prints, errors included; None where there is no such program.

        `name` is the short name under which a recording keeps it.
        """

    def read(self, path: str) -> str | None:
        """A file's text, None where it cannot be read."""

    def variable(self, name: str) -> str:
        """An environment variable, "" where it is not set."""


@dataclass(frozen=True)
class Live:
    """This machine."""

    def run(self, name: str, command: list[str]) -> str | None:  # noqa: ARG002 - for recordings
        """What a program prints, errors included; None where there is no such program."""
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            return None
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]}: {error}"
        return done.stdout

    def read(self, path: str) -> str | None:
        """A file's text, None where it cannot be read."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def variable(self, name: str) -> str:
        """An environment variable, "" where it is not set."""
        return os.environ.get(name, "")
