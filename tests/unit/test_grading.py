"""From a work folder to a verdict: hidden checks in a process of their own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from gpulab import grading
from gpulab.catalogue import Catalogue, load_checks
from gpulab.catalogue.variants import lay_out
from gpulab.grading import Request
from gpulab.grading.verify import cases, check_strictly, prove
from gpulab.model import Device, Grade, LabError, Outcome, Verdict

HEAD = """
import os, signal, subprocess, sys, time
import pytest
from gpulab.evidence import Lab, fail, note, remark, require_answer, require_finished
"""
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = cases(load_checks(GOLDEN, Catalogue(GOLDEN).find("1")))


@pytest.fixture
def judge(golden: Path, tmp_path: Path):
    """Judge a solution by checks given as text."""

    def run(checks: str | None = None, variant: str = "multiply", listener=lambda _: None) -> Grade:
        home = golden / "checks" / "exercise-1"
        if checks is not None:
            (home / "test_fix.py").write_text(HEAD + checks)
            text = (home / "check.toml").read_text()
            for name in ("test_doubles", "test_script_ends", "test_empty"):
                text = text.replace(name, "test_it")
            (home / "check.toml").write_text(text)
        exercise = Catalogue(golden).find("1")
        work = tmp_path / "work"
        if not work.exists():
            (found,) = home.glob(f"*/{variant}")
            lay_out(exercise, work, found)
        return grading.check(Request(golden, exercise, work, seed=1), listener)

    return run


def wait_until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def alive_with(token: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if token in " ".join(process.info["cmdline"] or [])
    ]


def gone(process: psutil.Process) -> bool:
    with contextlib.suppress(ChildProcessError):  # this process may have adopted it
        os.waitpid(process.pid, os.WNOHANG)
    return not process.is_running()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_every_golden_case(case) -> None:
    assert prove(GOLDEN, case).problem is None


def test_a_verdict_says_what_it_was_reached_on(judge) -> None:
    grade = judge()
    assert grade.verdict is Verdict.FIXED
    assert (grade.seed, grade.level, len(grade.submission)) == (1, "local", 64)
    assert grade.hardware.device in {Device.CPU, Device.CUDA}
    outcomes = {result.name: result.outcome for result in grade.checks}
    assert outcomes["test_doubles"] is Outcome.PASSED
    evidence = next(r for r in grade.checks if r.name == "test_doubles").evidence
    assert isinstance(evidence["first"], int)
    assert evidence["attempts"][0]["ended"] == "exit"


def test_inputs_are_fresh_unless_a_seed_is_given(golden: Path, tmp_path: Path) -> None:
    exercise = Catalogue(golden).find("1")
    work = lay_out(exercise, tmp_path / "work")
    seeds = [grading.check(Request(golden, exercise, work)).seed for _ in range(2)]
    assert seeds[0] != seeds[1]


@pytest.mark.parametrize(
    "body",
    [
        "assert 1 == 2",
        "raise RuntimeError('hidden detail')",
        "fail('no_such_key')",
        "fail('wrong_values', got=1)",
        "remark('no_such_key')",
        "pytest.skip('not today')",
        "pytest.xfail('known')",
        "pytest.fail('no')",
        "sys.exit(0)",
        "note(value=object())",
        "note(value=lab.rng)",
    ],
)
def test_a_check_that_goes_wrong_is_undecided(judge, body: str) -> None:
    events: list[dict] = []
    grade = judge(f"def test_it(lab: Lab):\n    'Title'\n    {body}\n", listener=events.append)
    assert grade.verdict is Verdict.UNDECIDED
    (result,) = grade.checks
    assert (result.outcome, result.rationale.key) == (Outcome.UNDECIDED, "crashed")
    (crash,) = [event for event in events if event["event"] == "crash"]
    assert crash["text"].strip()


EARLY_ENDS = [
    "os._exit(0)",
    "os.kill(os.getpid(), 9)",
    "pytest.exit('')",
    "raise KeyboardInterrupt",
]


@pytest.mark.parametrize("body", EARLY_ENDS)
def test_a_grading_process_that_ends_early_is_undecided(judge, body: str) -> None:
    grade = judge(f"def test_it(lab: Lab):\n    'Title'\n    {body}\n")
    assert grade.verdict is Verdict.UNDECIDED
    assert grade.reason.key == "judge_died"


def test_checks_that_cannot_be_imported(judge) -> None:
    events: list[dict] = []
    grade = judge("import no_such_module\ndef test_it():\n    'Title'\n", listener=events.append)
    assert (grade.verdict, grade.reason.key) == (Verdict.UNDECIDED, "judge_died")
    assert any("no_such_module" in event.get("text", "") for event in events)


def test_a_check_that_fails_beside_one_that_crashes_is_not_fixed(judge) -> None:
    grade = judge(
        "def test_it(lab: Lab):\n    'A'\n    fail('not_empty')\n"
        "def test_b(lab: Lab):\n    'B'\n    assert False\n"
    )
    assert grade.verdict is Verdict.NOT_FIXED


def test_after(judge) -> None:
    grade = judge(
        "def test_it(lab: Lab):\n    'A title'\n    fail('not_empty')\n"
        "@pytest.mark.after('test_it')\ndef test_b(lab: Lab):\n    'B'\n    os._exit(1)\n"
        "@pytest.mark.after('test_b')\ndef test_c(lab: Lab):\n    'C'\n    os._exit(1)\n"
    )
    assert [result.outcome for result in grade.checks] == ["failed", "not-run", "not-run"]
    assert grade.checks[1].rationale.texts["en"] == "Not judged until this passes: A title."


def test_after_several(judge) -> None:
    grade = judge(
        "def test_it(lab: Lab):\n    'A'\ndef test_b(lab: Lab):\n    'B'\n    fail('not_empty')\n"
        "@pytest.mark.after('test_it', 'test_b')\ndef test_c(lab: Lab):\n    'C'\n    os._exit(1)\n"
    )
    assert [result.outcome for result in grade.checks] == ["passed", "failed", "not-run"]


def test_a_verdict_needs_a_check_that_passed(judge) -> None:
    grade = judge("@pytest.mark.gpu\ndef test_it(lab: Lab):\n    'Title'\n")
    if grade.hardware.device is not Device.CUDA:
        assert grade.verdict is Verdict.UNDECIDED
        assert grade.checks[0].rationale.key == "gpu_only"


def test_a_fixture_that_fails_decides_each_of_its_checks(judge) -> None:
    grade = judge(
        "@pytest.fixture(scope='module')\ndef made(lab: Lab):\n    fail('not_empty')\n"
        "def test_it(made):\n    'A'\ndef test_b(made):\n    'B'\n"
    )
    assert [result.rationale.key for result in grade.checks] == ["not_empty", "not_empty"]


def test_a_remark_of_a_check_that_fails_is_dropped(judge) -> None:
    grade = judge("def test_it(lab: Lab):\n    'A'\n    remark('slow')\n    fail('not_empty')\n")
    assert grade.checks[0].remarks == ()


def test_both_sides_get_the_same_inputs(judge, golden: Path) -> None:
    probe = golden / "checks" / "exercise-1" / "probe.py"
    probe.write_text("def ask(script, values):\n    return [values, script.double(values)]\n")
    grade = judge(
        "def test_it(lab: Lab):\n    'A'\n"
        "    mine, trusted = lab.both('ask', [1, 2])\n"
        "    assert trusted.answer == [[1, 2], [2, 4]]\n"
        "    if require_answer(mine) != trusted.answer:\n        fail('not_empty')\n"
    )
    assert grade.verdict is Verdict.FIXED


def test_the_answer_of_a_reference_that_fails_is_nobodys_fault(judge, golden: Path) -> None:
    probe = golden / "checks" / "exercise-1" / "probe.py"
    probe.write_text("def ask(script):\n    raise ValueError('of the probe')\n")
    grade = judge("def test_it(lab: Lab):\n    'A'\n    lab.both('ask')\n")
    assert grade.checks[0].rationale.key == "crashed"


def test_neither_grader_nor_check_imports_torch_or_the_attendees_code(judge) -> None:
    grade = judge(
        "def test_it(lab: Lab):\n    'A'\n"
        "    require_answer(lab.call('double', [1]))\n"
        "    note(found=sorted({'torch', 'train'} & sys.modules.keys()), path=sys.path)\n"
    )
    assert grade.checks[0].evidence["found"] == []
    assert "" not in grade.checks[0].evidence["path"]


@pytest.mark.parametrize("name", ["numpy.py", "sitecustomize.py", "conftest.py", "pytest.ini"])
def test_files_of_the_attendee_do_not_reach_the_grader(
    judge, tmp_path: Path, monkeypatch, name: str
) -> None:
    work = tmp_path / "mine"
    work.mkdir()
    (work / name).write_text("raise SystemExit('owned')\n")
    monkeypatch.chdir(work)
    assert judge().verdict is Verdict.FIXED


def test_the_environment_does_not_reach_pytest(judge, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assert judge().verdict is Verdict.FIXED


def test_nothing_is_left_in_the_checks_or_the_work(judge, golden: Path, tmp_path: Path) -> None:
    before = sorted(golden.rglob("*"))
    judge()
    assert sorted(golden.rglob("*")) == before
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["README.md", "train.py"]


def test_an_attempt_that_locks_its_folders_away_is_removed(judge, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    lock = "import os; os.makedirs('a/b'); os.chmod('a', 0); os.chmod('.', 0o500)\n"
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(lock + "def double(values):\n    return values\n")
    judge()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_check_run_side_by_side_with_another(golden: Path) -> None:
    """Two at once in one process: the end of one does not end the other."""
    todo = [case for case in CASES if case.name in {"multiply", "raises", "hangs", "dies"}]
    found = []
    threads = [
        threading.Thread(target=lambda case=case: found.append(prove(golden, case)))
        for case in todo
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [proof.problem for proof in found] == [None] * len(todo)


def test_verify_needs_enough_cases(golden: Path) -> None:
    home = golden / "checks" / "exercise-1"
    text = (home / "check.toml").read_text()
    begin, end = text.index("[solutions.add_slowly]"), text.index("[wrong_fixes.dies]")
    (home / "check.toml").write_text(text[:begin] + text[end:])
    for name in ("add_slowly", "leaves_a_process"):
        shutil.rmtree(home / "solutions" / name)
    with pytest.raises(LabError, match="needs at least 2 that differ in approach"):
        check_strictly(load_checks(golden, Catalogue(golden).find("1")))


def test_verify_tells_a_wrong_fix_that_cures(golden: Path) -> None:
    home = golden / "checks" / "exercise-1"
    shutil.copyfile(home / "solutions/multiply/train.py", home / "wrong_fixes/raises/train.py")
    checks = load_checks(golden, Catalogue(golden).find("1"))
    (case,) = [case for case in cases(checks) if case.name == "raises"]
    assert prove(golden, case).problem == "fixed, expected not-fixed: all checks passed"


def test_verify_tells_a_wrong_reason(golden: Path) -> None:
    home = golden / "checks" / "exercise-1"
    shutil.copyfile(home / "wrong_fixes/dies/train.py", home / "wrong_fixes/raises/train.py")
    checks = load_checks(golden, Catalogue(golden).find("1"))
    (case,) = [case for case in cases(checks) if case.name == "raises"]
    assert (
        "not by test_doubles for exception: test_doubles failed: [silent]"
        in prove(golden, case).problem
    )


WAIT = """
import subprocess, sys, time
def double(values):
    return [2 * value for value in values]
if __name__ == "__main__":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)  # TOKEN"],
                     start_new_session=True)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        pass
"""


@pytest.fixture
def waiting(commands):
    """A script that keeps an attempt busy, and a word by which its processes are found."""
    token = f"waiting-{os.getpid()}-{time.monotonic_ns()}"
    commands.folder.mkdir(parents=True)
    commands.script.write_text(WAIT.replace("TOKEN", token))
    facts = commands.root / "exercises" / "exercise-1" / "exercise.toml"
    facts.write_text(facts.read_text().replace("seconds = 6", "seconds = 200"))
    return token


def judges_of(process: subprocess.Popen) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "gpulab.grading.judge" in " ".join(child.cmdline())]


def test_a_judge_that_is_killed(commands, waiting: str) -> None:
    process = commands.start("check", "1", "--json")
    wait_until(lambda: alive_with(waiting))
    (judge,) = judges_of(process)
    judge.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert json.loads(out)["reason"]["key"] == "judge_died"
    assert "Traceback" not in err
    wait_until(lambda: not alive_with(waiting))


@pytest.mark.parametrize("ignored", [False, True], ids=["plain", "in the background"])
def test_a_client_that_is_killed(commands, waiting: str, ignored: bool) -> None:
    """In the background a shell has SIGINT ignored, which the grading process would inherit."""
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    process = commands.start("check", "1", **(ignore if ignored else {}))
    wait_until(lambda: alive_with(waiting))
    judges = judges_of(process)
    process.kill()
    process.communicate()
    wait_until(lambda: not alive_with(waiting))
    wait_until(lambda: all(gone(judge) for judge in judges))


@pytest.mark.parametrize("words", [("check", "1"), ("run", "1"), ("check", "1", "--watch")])
def test_ctrl_c(commands, waiting: str, words: tuple[str, ...]) -> None:
    process = commands.start(*words, start_new_session=True)
    wait_until(lambda: alive_with(waiting))
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "Stopped; everything that was started has been ended."
    assert not alive_with(waiting)
    assert not list(commands.scratch.iterdir())


def test_a_judge_ends_when_nobody_asked() -> None:
    """Its standard input is a life line."""
    read_fd, write_fd = os.pipe()
    command = [sys.executable, "-P", "-m", "gpulab.grading.judge", "--events", str(write_fd)]
    judge = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[write_fd]
    )
    judge.stdin.close()
    judge.wait(30)
    os.close(read_fd)
    os.close(write_fd)
