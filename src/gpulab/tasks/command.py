"""What every command has in common: one clear sentence and the right exit code."""

from __future__ import annotations

import functools
import inspect
import json
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from invoke import Exit, Task
from rich.console import Console
from rich.text import Text

from gpulab.catalogue import Catalogue, Exercise, find_root, texts
from gpulab.grading import Records
from gpulab.model import Device, LabError
from gpulab.work import Work

console = Console(highlight=False)
INTERRUPTED = 130


def command(body: Callable[..., int | None]) -> Task[Callable[..., None]]:
    """An invoke task whose result is its exit code, and whose errors are one sentence each.

    A parameter named `exercise` may be given by its place even where it may be left out.
    """

    @functools.wraps(body)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            code = body(*args, **kwargs) or 0
        except LabError as error:
            complain(str(error))
            code = error.code
        except KeyboardInterrupt:
            complain("Stopped; everything that was started has been ended.")
            code = INTERRUPTED
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; nobody to tell
            code = 0
        except Exception:  # noqa: BLE001 - the last resort: a sentence, and the details in a file
            complain(f"The lab itself failed; this is a bug. Details: {_keep_traceback()}")
            code = 4
        if code:
            raise Exit(code=code)

    names = inspect.signature(body).parameters
    return Task(guarded, positional=[name for name in names if name == "exercise"] or None)


def complain(sentence: str) -> None:
    """Say what is wrong, on standard error."""
    Console(stderr=True, highlight=False).print(Text(sentence, style="bold red"), soft_wrap=True)


def _keep_traceback() -> str:
    details = traceback.format_exc()
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gpulab-bug-", suffix=".txt", delete=False
        ) as file:
            file.write(details)
            return file.name
    except OSError:
        return details


def print_json(value: Any) -> None:
    """The answer for a program."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def chosen_device(name: str | None) -> Device | None:
    """`--device`.

    Raises:
        LabError: no such device.
    """
    if name is None:
        return None
    try:
        return Device(name)
    except ValueError:
        choices = ", ".join(device.value for device in Device)
        raise LabError(f"There is no device {name!r}; choose one of {choices}.") from None


@dataclass(frozen=True)
class Bench:
    """Where a command works: the checkout, the attendee's files, the language."""

    root: Path

    @classmethod
    def here(cls) -> Bench:
        """For the current folder."""
        return cls(find_root())

    @cached_property
    def catalogue(self) -> Catalogue:
        """The exercises."""
        return Catalogue(self.root)

    @cached_property
    def work(self) -> Work:
        """The attendee's files."""
        return Work(self.root)

    @cached_property
    def records(self) -> Records:
        """The attendee's verdicts."""
        return Records(self.work.records)

    @cached_property
    def language(self) -> str:
        """GPULAB_LANG, or the locale's."""
        return texts.chosen_language()

    def exercise(self, name: str) -> Exercise:
        """The exercise that `name` means."""
        return self.catalogue.find(name)
