"""`tour`: the five primitives in four minutes, in the terminal or as a notebook."""

from __future__ import annotations

import json
from pathlib import Path

from invoke import Context
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.syntax import Syntax
from rich.text import Text

from gpulab.claims import Claim, load_all
from gpulab.grading import machine
from gpulab.model import LabError
from gpulab.tasks.command import Bench, command, console, say
from gpulab.tasks.render import markdown, plain
from gpulab.tour import Live, Scene, Step, corrections, load, make_notebook
from gpulab.tour.pace import Keys, Pace, Quit


@command
def tour(_: Context, fast: bool = False, notebook: str = "") -> int:
    """See the five primitives at work in four minutes; every statement is run live.

    Space pauses, n goes on, q ends. --fast does not wait; --notebook FILE.ipynb writes it to run
    by hand.
    """
    scenes, claims = load(Bench.here().language), load_all()
    if notebook:
        _write(Path(notebook), scenes, claims)
        return 0
    with Live(machine.attempt_python()) as live, Keys() as keys:
        show = Show(live, claims)
        if fast:
            show.fast(scenes)
            return 0
        say(f"Four minutes, at most {sum(scene.seconds for scene in scenes)} s. {_keys(keys)}")
        try:
            show.paced(scenes, Pace(keys.wait))
        except Quit:
            say("Until next time.")
    return 0


def _keys(keys: Keys) -> str:
    return "Space pauses, n goes on, q ends." if keys.there else "Ctrl-C ends it."


def _write(path: Path, scenes: list[Scene], claims: dict[int, Claim]) -> None:
    if path.suffix != ".ipynb":
        raise LabError(f"{path} must end in .ipynb.")
    text = json.dumps(make_notebook(scenes, claims), indent=1, ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise LabError(f"{path} exists already; name another file.") from None
    except OSError as error:
        raise LabError(f"{path} cannot be written ({error.strerror}).") from None
    say(str(path))


class Show:
    """Plays the scenes on the terminal."""

    def __init__(self, live: Live, claims: dict[int, Claim]) -> None:
        self._live, self._claims = live, claims

    def fast(self, scenes: list[Scene]) -> None:
        """All of it, without waiting."""
        for scene in scenes:
            _head(scene)
            for step in scene.steps:
                self._play(step)

    def paced(self, scenes: list[Scene], pace: Pace) -> None:
        """In its rhythm, with a bar for the scene and one for the whole.

        Raises:
            Quit: the reader ended it.
        """
        columns = (TextColumn("{task.description}"), BarColumn(40), TextColumn("{task.fields[at]}"))
        with Progress(*columns, console=console, transient=True) as progress:
            whole = Bar(progress, "the tour", sum(scene.seconds for scene in scenes), pace)
            for scene in scenes:
                _head(scene)
                own = Bar(progress, scene.title, scene.seconds, pace)

                def move(bars: tuple[Bar, Bar] = (whole, own)) -> None:
                    for bar in bars:
                        bar.move()

                for step in scene.steps:
                    self._play(step)
                    pace.stay(step.seconds, move)
                own.close()

    def _play(self, step: Step) -> None:
        console.print(Text(step.title, style="bold"))
        console.print(markdown(step.said))
        for said in corrections(step, self._claims):
            console.print(Text(said, style="dim"))
        code = Syntax(step.code.rstrip(), "python", background_color="default", word_wrap=True)
        console.print(Padding(code, (1, 4)))
        lines = self._live.run(step.code).splitlines()
        shown = Text("\n".join(map(plain, lines)), style="green")
        console.print(Padding(shown, (0, 4, 1, 4)))


def _head(scene: Scene) -> None:
    console.rule(f"[bold]{scene.title}[/bold] · {scene.seconds} s", align="left")


class Bar:
    """How far a part of the tour is."""

    def __init__(self, progress: Progress, title: str, seconds: int, pace: Pace) -> None:
        self._progress, self._pace = progress, pace
        self._seconds, self._began = seconds, pace.elapsed
        self._task = progress.add_task(f"{title:<20}", total=seconds, at="")

    def move(self) -> None:
        """Follow the clock."""
        gone = min(self._seconds, self._pace.elapsed - self._began)
        at = "paused" if self._pace.paused else f"{gone:.0f}/{self._seconds} s"
        self._progress.update(self._task, completed=gone, at=at)

    def close(self) -> None:
        """Take it away."""
        self._progress.remove_task(self._task)
