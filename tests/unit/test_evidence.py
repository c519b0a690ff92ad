"""Judgements and words that every exercise shares."""

import json
import string
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpulab import attempts
from gpulab.attempts import Attempt, Ended, Job
from gpulab.attempts.attempt import Failure, Line
from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.texts import LANGUAGES
from gpulab.evidence import Lab, note, require_answer, require_finished
from gpulab.evidence.lab import Order
from gpulab.evidence.report import CannotDecide, CheckFailed, Said, notebook
from gpulab.evidence.words import LONGEST, lab_texts, message
from gpulab.model import Device, LabError, in_language
from gpulab.observe import Evidence, Frame, Hang, MemorySample, ThreadStack, WaitingProcess
from gpulab.rehearsal import launch as rehearsal

SAMPLES = (MemorySample(0.1, 700 << 20, 0, None), MemorySample(0.2, 5 << 20, 0, None))
SEEN = Evidence(wall=1.26, cpu=0.5, memory=SAMPLES, processes=(), missing=())


def made(ended: Ended = Ended.EXIT, exit_code: int | None = 0, **facts) -> Attempt:
    lines = (
        Line(0.1, "stdout", "epoch 1"),
        Line(0.2, "stderr", facts.pop("last", "Killed")),
        Line(0.3, "stderr", "  "),
    )
    return Attempt(ended, exit_code, lines, SEEN, **facts)


def failure(attempt: Attempt) -> tuple[str, str]:
    """The key of the rationale, and its English text."""
    with pytest.raises(CheckFailed) as failed:
        require_answer(attempt)
    return failed.value.said.key, message(failed.value.said, {}).texts["en"]


def test_a_good_end() -> None:
    require_finished(made())
    assert require_answer(made(answered=True, answer=[1])) == [1]
    assert require_answer(made(answered=True, answer=None)) is None


@pytest.mark.parametrize(
    ("attempt", "key", "words"),
    [
        (made(Ended.TIME_OUT, None), "time_out", "still running after 1.3 s"),
        (made(Ended.TIME_OUT, None), "time_out", "Its last line: Killed"),
        (made(Ended.MEMORY, None), "memory", "reached 700 MiB"),
        (made(Ended.FLOOD, None), "flood", "more than the lab reads"),
        (made(exit_code=-9), "crash", "exit code -9. Its last line: Killed"),
        (made(error=Failure("ValueError", "no\nmore")), "exception", "ValueError: no (at -)"),
        (
            made(error=Failure("KeyError", "'x'", "train.py", 3, "d['x']")),
            "exception",
            "KeyError: 'x' (at train.py:3 `d['x']`)",
        ),
        (made(error=Failure("E", "x" * 999)), "exception", "x" * 297 + " (at -)"),
        (made(broken_answer="it answered 2 times"), "broken_answer", "it answered 2 times."),
        (made(), "silent", "without an answer"),
    ],
)
def test_a_bad_end_in_words(attempt: Attempt, key: str, words: str) -> None:
    found, text = failure(attempt)
    assert found == key
    assert words in text


@pytest.mark.parametrize(("kind", "key"), [("proof", "hang"), ("stillness", "stillness")])
def test_a_hang_names_its_line(kind: str, key: str) -> None:
    frame = Frame("train.py", 12, "read", "with lock:")
    waiting = WaitingProcess(7, "worker", (ThreadStack("MainThread", (frame,)),), "a lock")
    attempt = made(Ended.HANG, None, hang=Hang(kind, 8.0, 2.0, (waiting,)))
    found, text = failure(attempt)
    assert found == key
    assert "train.py:12" in text
    assert "6.0 s" in text


def test_what_the_rehearsal_refuses_is_nobodys_fault() -> None:
    refused = "RuntimeError: rehearsal device: no graphs; use a GPU"
    for attempt in (
        made(exit_code=1, last=refused),
        made(error=Failure("RuntimeError", refused)),
    ):
        with pytest.raises(CannotDecide) as undecided:
            require_finished(attempt)
        assert undecided.value.said.values["what"] == "rehearsal device: no graphs; use a GPU"
    require_finished(made(last=refused))  # it went on all the same


def test_every_message_of_the_lab_in_every_language() -> None:
    for key, texts in lab_texts().items():
        assert set(texts) == set(LANGUAGES), key
        names = {code: fields(text) for code, text in texts.items()}
        assert names["en"] == names["zh"], key


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_values_are_not_templates() -> None:
    said = message(Said("broken_answer", {"why": "{why} {0} {x.__class__}"}), {})
    assert "{why} {0} {x.__class__}" in said.texts["en"]


def test_an_exercises_own_words_come_first() -> None:
    said = message(Said("flood", {}), {"flood": {"en": "mine"}})
    assert said.texts == {"en": "mine"}
    assert in_language(said.texts, "zh") == "mine"


def test_a_note_is_json() -> None:
    notebook.clear()
    note(a=1, b=[None, "x"])
    with pytest.raises(TypeError):
        note(c=object())
    assert notebook.notes == {"a": 1, "b": [None, "x"]}


def test_what_an_attempt_said_is_noted_within_bounds() -> None:
    notebook.clear()
    note(loss=float("nan"), most=float("inf"))
    note(history=[0.5] * 100_000)
    json.loads(json.dumps(notebook.notes, allow_nan=False))
    assert notebook.notes["loss"] == "NaN"
    assert notebook.notes["history"] == "left out: too long"
    said = message(Said("exception", {"what": "x" * 1_000_000, "where": "-"}), {})
    assert all(len(text) <= LONGEST for text in said.texts.values())


def test_no_trusted_attempt_reads_what_the_submission_may_have_written(tmp_path: Path) -> None:
    order = Order(None, tmp_path, tmp_path, tmp_path, tmp_path, Device.CPU, 0, 0)
    lab = Lab(order, lambda *_: None)
    inputs, early = lab.path("a"), lab.path("b", comes_back=True)
    assert lab._folders("trusted") == ((inputs, early), (inputs, early))
    assert lab._folders("submission") == ((inputs, early), (early,))
    late = lab.path("c", comes_back=True)
    assert lab._folders("trusted") == ((inputs, late), (inputs, late))


@pytest.mark.parametrize("text", [None, "def other(script): ...\n"])
def test_a_probe_that_is_not_there_is_the_labs_fault(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "probe.py").write_text(text)
    checks = SimpleNamespace(folder=tmp_path)
    lab = Lab(Order(checks, tmp_path, tmp_path, tmp_path, tmp_path, Device.CPU, 0, 0), print)
    with pytest.raises(LabError, match=r"probe\.py has no function `weights`"):
        lab.probe("weights")


def test_the_environment_of_each_device(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(rehearsal, "environment", lambda size: {"CAPACITY": str(size)})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    def environment(device: Device) -> dict[str, str]:
        return Job(tmp_path, "train.py", tmp_path, device=device, device_bytes=5).environment()

    assert environment(Device.CUDA)["CUDA_VISIBLE_DEVICES"] == "3"
    assert environment(Device.CPU)["CUDA_VISIBLE_DEVICES"] == ""
    rehearsing = environment(Device.REHEARSAL)
    assert "CUDA_VISIBLE_DEVICES" not in rehearsing
    assert (rehearsing["CAPACITY"], rehearsing["PYTHONPATH"]) == ("5", str(rehearsal.SITE))


def test_elsewhere_there_is_none_of_their_files(golden: Path, tmp_path: Path, monkeypatch) -> None:
    checks = load_checks(golden, Catalogue(golden).find("1"))
    jobs: list[Job] = []
    monkeypatch.setattr(attempts, "run", lambda job, *_: jobs.append(job) or made())
    work = checks.exercise.folder
    order = Order(checks, work, work, tmp_path, Path(sys.executable), Device.CPU, 1, 1)
    lab = Lab(order, lambda *_: None)
    notebook.clear()
    for _ in range(2):
        lab.elsewhere("ask", "gauge.pt")
    assert jobs[0].folder != jobs[1].folder
    for job in jobs:
        assert [path.name for path in job.folder.iterdir()] == ["train.py"]
        assert (job.folder / "train.py").read_text() == ""
        assert job.call is not None
        assert job.call.probe == checks.folder / "probe.py"
    assert len(notebook.attempts) == 2
