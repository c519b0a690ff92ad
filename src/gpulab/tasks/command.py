"""What every command has in common: one clear sentence and the right exit code."""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from invoke import Argument, Exit, Task
from rich.console import Console
from rich.text import Text

from gpulab.catalogue import Catalogue, Exercise, find_root, texts
from gpulab.model import Device, LabError
from gpulab.tasks import grader
from gpulab.tasks.grader import Grader
from gpulab.tasks.render import plain
from gpulab.work import Work

# A terminal or a pipe that cannot show a character gets an escape in its place, not an error.
for _stream in (sys.stdout, sys.stderr):
    if isinstance(_stream, io.TextIOWrapper):
        _stream.reconfigure(errors="backslashreplace")


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to `command`; rich would end the process with exit code 1."""
        raise BrokenPipeError


console = _Console(highlight=False)
INTERRUPTED = 130


def command(body: Callable[..., int | None]) -> Task[Callable[..., None]]:
    """An invoke task whose result is its exit code, and whose errors are one sentence each.

    A parameter named `exercise` is given by its place; `--all`, where there is one, replaces it.
    """

    @functools.wraps(body)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            _refuse_help(kwargs.get("exercise"))
            code = body(*args, **kwargs) or 0
        except LabError as error:
            complain(str(error))
            code = error.code
        except KeyboardInterrupt:
            complain("Stopped; everything that was started has been ended.")
            code = INTERRUPTED
        except BrokenPipeError:
            _drop_output()  # its reader has gone; nobody to tell
            code = 0
        except Exception as error:  # noqa: BLE001 - the last resort
            _drop_output()
            complain(_what_failed(error))
            code = 4
        if code:
            raise Exit(code=code)

    return _Task(guarded)


def _refuse_help(exercise: str | None) -> None:
    if exercise in {"--help", "-h"}:  # invoke takes it for the exercise
        raise LabError("Write `invoke --help COMMAND`: the command comes last.")


class _Task(Task[Callable[..., None]]):
    """A task whose place for an exercise may stay empty where `--all` is given."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        by_name = {argument.name: argument for argument in arguments}
        if not by_name.keys() >= {"exercise", "all"}:
            return arguments
        rest = [argument for argument in arguments if argument.name != "exercise"]
        return [_UnlessAll(by_name["all"]), *rest]


class _UnlessAll(Argument):
    """The exercise; the parser asks for it unless `--all` was given."""

    def __init__(self, everything: Argument) -> None:
        super().__init__(names=("exercise",), kind=str, positional=True)
        self._everything = everything

    @property
    def value(self) -> Any:
        """What was given, "" in its stead with `--all`, None while it is missing."""
        given = super().value
        return "" if given is None and self._everything.value else given

    @value.setter
    def value(self, given: str) -> None:
        self.set_value(given)


def _what_failed(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{error.filename or 'The output'}: {error.strerror}; free some space and try again."
    details = keep("".join(traceback.format_exception(error)), "gpulab-bug-")
    return f"The lab itself failed; this is a bug. Details: {details}"


def _drop_output() -> None:
    """Send what is still unwritten nowhere; else the interpreter complains when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def say(sentence: str) -> None:
    """Print as it is: no markup, no emoji codes, no wrapping inside a path."""
    console.print(Text(plain(sentence)), soft_wrap=True)


def complain(text: str) -> None:
    """Say what is wrong, on standard error."""
    err = Console(stderr=True, highlight=False)
    for line in text.splitlines():
        err.print(Text(plain(line), style="bold red"), soft_wrap=True)


def keep(text: str, prefix: str) -> str:
    """Keep what is too long for a sentence in a temporary file; returns where, in words."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix=prefix, suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(text)
            return file.name
    except OSError as error:
        return f"none, no file could be written ({error.strerror})."


def print_json(value: Any) -> None:
    """The answer for a program: ASCII, whatever the locale."""
    print(json.dumps(value, indent=2))


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
    def grader(self) -> Grader:
        """Who judges the attendee's work, and keeps the record."""
        return grader.choose(self.root, self.work.records)

    @cached_property
    def language(self) -> str:
        """GPULAB_LANG, or the locale's."""
        return texts.chosen_language()

    def exercise(self, name: str) -> Exercise:
        """The exercise that `name` means."""
        return self.catalogue.find(name)
