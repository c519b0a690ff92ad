"""The commands as a shell runs them: one sentence, the right exit code, nothing lost."""

import json
import os
import pty
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gpulab.tasks import namespace

CHECKOUT = Path(__file__).resolve().parents[2]
ATTENDEE = [("show",), ("run",), ("check",), ("hint",), ("reset",)]
ESCAPES = re.compile(r"\x1b")


# --- every verdict and its exit code ---------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "code", "verdict"), [("multiply", 0, "fixed"), ("wrong_for_empty", 2, "not-fixed")]
)
def test_check(commands, variant: str, code: int, verdict: str) -> None:
    commands.use(variant)
    done = commands.run("check", "1", expect=code)
    assert f"exercise-1: {verdict}" in done.stdout
    assert ("Doubling is adding a value to itself." in done.stdout) is (code == 0)
    listed = json.loads(commands.run("list", "--json", expect=0).stdout)
    assert (listed[0]["state"], listed[0]["checks"]) == (verdict, 1)


def test_check_in_chinese(commands) -> None:
    done = commands.run("check", "1", expect=2, env={"GPULAB_LANG": "zh"})
    assert "脚本运行到结束" in done.stdout
    assert "应为" in done.stdout


def test_check_json(commands) -> None:
    done = commands.run("check", "1", "--json", expect=2)
    assert json.loads(done.stdout)["verdict"] == "not-fixed"
    assert done.stderr == ""


def test_undecided_without_what_it_needs(commands) -> None:
    done = commands.run("check", "1", "--json", expect=3, env={"GPULAB_STACK": "x"} | no_torch())
    assert json.loads(done.stdout)["reason"]["key"] == "no_torch"
    said = commands.refused("run", "1", code=3, env=no_torch())
    assert "has no torch; install the lab's Python packages there" in said


def no_torch() -> dict[str, str]:
    return {"GPULAB_PYTHON": "/usr/bin/python3"}


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the system's")
def test_a_python_by_its_name(commands) -> None:
    commands.refused("run", "1", code=3, env={"GPULAB_PYTHON": "python3", "PATH": "/usr/bin"})


def test_a_python_that_is_none(commands) -> None:
    for python in ("/nowhere/python", "/bin/cat", "/bin/true"):
        said = commands.refused("check", "1", env={"GPULAB_PYTHON": python})
        assert "GPULAB_PYTHON" in said
        assert "correct" in said


# --- what attendees do to their files --------------------------------------------------------


def test_check_without_the_script(commands) -> None:
    commands.run("show", "1", expect=0)
    commands.script.unlink()
    assert "train.py is not in your work folder" in commands.run("check", "1", expect=2).stdout
    assert "brings it back" in commands.refused("run", "1", code=2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "train.py is empty."),
        (b" \n\n", "train.py is empty."),
        (b"x = 1\ndef (\n", "train.py is no valid Python: line 2: "),
        (b"\x7fELF\x02\x01\x00\xff" * 50, "train.py is no valid Python: "),
        (b"x = '" + b"\0" + b"'", "train.py is no valid Python: "),
        (b"-" * 200_000 + b"1", "train.py is no valid Python: "),
    ],
    ids=["empty", "blank", "syntax", "binary", "null", "deep"],
)
def test_check_of_a_script_that_is_none(commands, content: bytes, said: str) -> None:
    commands.run("show", "1", expect=0)
    commands.script.write_bytes(content)
    done = commands.run("check", "1", expect=2)
    assert said in done.stdout
    assert done.stderr == ""
    assert commands.script.read_bytes() == content


def test_a_folder_in_the_scripts_place(commands) -> None:
    commands.script.mkdir(parents=True)
    assert "is not in your work folder" in commands.run("check", "1", expect=2).stdout


def test_a_link_outwards(commands) -> None:
    commands.use("multiply")
    (commands.folder / "data").symlink_to("/etc/passwd")
    assert "data is a link; put the file itself there." in commands.refused("check", "1")


def test_a_sparse_file(commands) -> None:
    commands.use("multiply")
    with (commands.folder / "model.pt").open("wb") as file:
        file.truncate(10 << 30)
    assert "larger than 64 MiB; move it away" in commands.refused("check", "1")


def test_a_name_that_could_repaint_the_terminal(commands) -> None:
    commands.use("multiply")
    (commands.folder / "a\x1b[2Jb\n").symlink_to("x")
    (commands.folder / os.fsdecode(b"c\xff")).write_text("")
    done = commands.run("check", "1", expect=1)
    assert "\x1b[2J" not in done.stderr
    assert "is a link" in done.stderr


def test_a_file_in_the_folders_place(commands) -> None:
    commands.work.mkdir()
    commands.folder.write_text("mine")
    for words in (("show", "1"), ("check", "1"), ("run", "1")):
        assert "is no folder; move it away" in commands.refused(*words)
    commands.run("reset", "1", expect=0)
    assert commands.script.is_file()


# --- what disks do ---------------------------------------------------------------------------


def test_a_read_only_work_folder(commands, disks) -> None:
    commands.use("multiply")
    disks.read_only(commands.work)
    commands.run("list", expect=0)
    commands.run("show", "1", expect=0)
    done = commands.run("check", "1", expect=0)
    assert "This verdict was not recorded." in done.stderr
    before = commands.script.read_bytes()
    assert "mend that and try again" in commands.refused("reset", "1")
    assert commands.script.read_bytes() == before


def test_a_work_folder_that_cannot_be_made(commands) -> None:
    commands.work.write_text("a file")
    for words in (("show", "1"), ("check", "1"), ("run", "1"), ("reset", "1")):
        assert "mend that and try again" in commands.refused(*words)


def test_a_full_temporary_disk(commands, disks) -> None:
    commands.use("multiply")
    limits = disks.full(commands.scratch, leave=4096)  # none at all, and Python takes another
    said = commands.refused("check", "1", code=4, **limits)
    assert "free some space" in said or "try again" in said


def test_a_full_work_disk(commands, disks) -> None:
    limits = disks.full(commands.work)
    assert "try again" in commands.refused("show", "1", **limits)
    assert not commands.folder.exists()


def test_output_that_cannot_be_written(commands) -> None:
    with Path("/dev/full").open("w") as full:
        said = commands.refused("list", code=4, stdout=full)
    assert "No space left on device" in said


def test_output_that_nobody_reads(commands) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    done = commands.run("list", stdout=write_fd)
    os.close(write_fd)
    assert (done.returncode, done.stderr) == (0, "")


# --- what else goes wrong --------------------------------------------------------------------


@pytest.mark.parametrize("words", ATTENDEE)
def test_an_unknown_exercise(commands, words: tuple[str, ...]) -> None:
    said = commands.refused(*words, "exercise-2")
    assert said == "There is no exercise 'exercise-2'; did you mean exercise-1?"
    assert not commands.work.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "1", "--device", "tpu"), "There is no device 'tpu'"),
        (("run", "1", "--device", "tpu"), "There is no device 'tpu'"),
        (("check", "1", "--watch", "--json"), "leave out --json"),
        (("run", "1", "--plot", "x.gif"), "must end in .png or .svg"),
        (("list", "--set", "x"), "There is no set 'x'; there are golden."),
        (("hint", "1", "--again"), "You have seen no hint yet"),
        (("pack",), "There is no work in"),
        (("exercise.new", "--title", " "), "Give the exercise a title"),
        (("exercise.verify", "1", "--runs", "0"), "must be at least 1"),
        (("exercise.verify", "1", "--only", "zzz"), "No case's name holds 'zzz'."),
        (("exercise.verify", "7"), "There is no exercise '7'"),
    ],
)
def test_bad_options(commands, words: tuple[str, ...], said: str) -> None:
    assert said in commands.refused(*words)


@pytest.mark.parametrize("words", [("check",), ("show",), ("check", "1", "--nothing"), ("no",)])
def test_usage_errors_of_invoke(commands, words: tuple[str, ...]) -> None:
    done = commands.run(*words, expect=1)
    assert done.stderr.strip() or done.stdout.strip()


def test_a_root_that_is_none(commands) -> None:
    said = commands.refused("list", env={"GPULAB_ROOT": "/nowhere"})
    assert said == "GPULAB_ROOT is /nowhere, which has no exercises/ folder; correct it."


def test_a_check_that_crashes_shows_nothing_of_itself(commands) -> None:
    commands.use("multiply")
    hidden = commands.root / "checks" / "exercise-1" / "test_fix.py"
    text = hidden.read_text().replace("answer = require_answer(attempt)", "secret = 1 / 0", 1)
    hidden.write_text(text)
    done = commands.run("check", "1", expect=3)
    for word in ("secret", "ZeroDivision", "test_fix.py", "test_doubles"):
        assert word not in done.stdout + done.stderr
    assert "this is the lab's fault, not yours" in done.stdout
    (kept,) = commands.scratch.glob("gpulab-check-*")
    assert "secret = 1 / 0" in kept.read_text()
    shown = json.dumps(commands.run("check", "1", "--json", expect=3).stdout)
    assert "secret" not in shown


def test_two_checks_at_once(commands) -> None:
    commands.use("multiply")
    running = [commands.start("check", "1") for _ in range(3)]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert [code for _, code in ended] == [0, 0, 0]
    listed = json.loads(commands.run("list", "--json", expect=0).stdout)
    assert listed[0]["checks"] == 3
    assert not list(commands.scratch.iterdir())


def test_check_all_goes_on_after_one_that_fails(commands) -> None:
    commands.use("multiply")
    (commands.work / "exercise-2").mkdir()
    (commands.work / "exercise-2" / "link").symlink_to("/")
    for home in ("exercises", "checks"):
        source = commands.root / home / "exercise-1"
        subprocess.run(["cp", "-r", source, commands.root / home / "exercise-2"], check=True)
    done = commands.run("check.all", expect=1)
    assert "exercise-1: fixed" in done.stdout
    assert "exercise-2: " in done.stderr
    (commands.work / "exercise-2" / "link").unlink()
    assert "exercise-2: not-fixed" in commands.run("check.all", expect=2).stdout


# --- the other commands ----------------------------------------------------------------------


def test_every_command_says_what_it_does() -> None:
    for name in namespace.task_names:
        assert namespace[name].__doc__, name


def test_hints_one_by_one(commands) -> None:
    for number in (1, 2, 3):
        shown = commands.run("hint", "1", expect=0).stdout
        assert f"{number}/3" in shown
        assert shown.count("/3") == 1
    for words in (("hint", "1"), ("hint", "1", "--again")):
        assert commands.run(*words, expect=0).stdout.count("/3") == 3


def test_reset_and_pack_lose_nothing(commands, tmp_path: Path) -> None:
    commands.use("multiply")
    mine = commands.script.read_text()
    archived = json.loads(commands.run("reset", "1", "--json", expect=0).stdout)["archived"]
    assert (Path(archived) / "train.py").read_text() == mine
    target = tmp_path / "take home.tar.gz"
    commands.run("pack", "--to", str(target), expect=0)
    assert "exists already" in commands.refused("pack", "--to", str(target))
    with tarfile.open(target) as tar:
        assert "gpulab-work/verdicts.json" in tar.getnames()


def test_run_shows_the_output_and_its_end(commands) -> None:
    done = commands.run("run", "1", expect=0)
    assert "doubled [1, 3, 5]" in done.stdout
    assert "exit, " in done.stdout
    seen = json.loads(commands.run("run", "1", "--json", expect=0).stdout)
    assert (seen["ended"], seen["exit_code"]) == ("exit", 0)


def test_run_of_a_script_that_writes_escapes(commands) -> None:
    commands.use("multiply")
    commands.script.write_text("print('\\x1b]0;title\\x07\\x1b[2J[bold]x[/bold] :smile:')\n")
    shown = commands.run("run", "1", expect=0).stdout
    assert not ESCAPES.search(shown)
    assert "[bold]x[/bold] :smile:" in shown


def test_a_new_exercise_is_refused_until_it_is_finished(commands) -> None:
    made = commands.run("exercise.new", "--title", "Loss is NaN", expect=0).stdout
    assert str(commands.root / "exercises" / "exercise-2") in made
    done = commands.run("exercise.verify", "2", expect=1)
    lines = done.stderr.strip().splitlines()
    assert len(lines) > 5
    assert all("still says UNFINISHED; write what belongs there." in line for line in lines)


def test_verify(commands) -> None:
    done = commands.run("exercise.verify", "1", "--only", "multiply", "--json", expect=0)
    (row,) = json.loads(done.stdout)
    assert (row["kind"], row["verdict"], row["problem"]) == ("solution", "fixed", None)
    (commands.root / "checks/exercise-1/solutions/multiply/train.py").write_text("x = 1\n")
    done = commands.run("exercise.verify", "1", "--only", "multiply", expect=2)
    assert "not-fixed, expected fixed" in " ".join(done.stdout.split())


# --- where they are run ----------------------------------------------------------------------


def test_a_work_folder_with_any_name(commands, tmp_path: Path) -> None:
    commands.work = tmp_path / "my work [bold] :smile: 工作"
    shown = commands.run("show", "1", expect=0).stdout
    assert f"Your copy: {commands.script}" in shown
    commands.use("multiply")
    assert "exercise-1: fixed" in commands.run("check", "1", expect=0).stdout
    assert "exercise-1: fixed" in commands.run("check", "1", expect=0, cwd=CHECKOUT / "src").stdout


def test_from_the_work_folder_itself(commands) -> None:
    """A checkout of its own, found from a sub-folder, whose names hide ours."""
    (commands.root / "tasks.py").write_bytes((CHECKOUT / "tasks.py").read_bytes())
    commands.work = commands.root / "work"
    commands.use("multiply")
    (commands.folder / "numpy.py").write_text("raise SystemExit('owned')\n")
    command = [str(Path(sys.executable).with_name("invoke")), "check", "1"]
    environment = commands.environ()
    del environment["GPULAB_ROOT"], environment["GPULAB_WORK"]
    done = subprocess.run(
        command, cwd=commands.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


PLACES = {
    "a dumb terminal": {"TERM": "dumb"},
    "no colour": {"NO_COLOR": "1"},
    "plain ASCII": {"LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "another encoding": {"PYTHONIOENCODING": "ascii"},
}


@pytest.mark.parametrize("place", PLACES)
def test_output_without_a_terminal(commands, place: str) -> None:
    done = commands.run("check", "1", expect=2, env=PLACES[place])
    assert not ESCAPES.search(done.stdout + done.stderr)
    assert "Every value is doubled" in done.stdout


@pytest.mark.parametrize(
    ("environment", "coloured"), [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False)]
)
def test_output_on_a_terminal(commands, environment: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    changes = {"TERM": "xterm"} | environment
    process = commands.start("check", "1", env=changes, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # how a pseudo-terminal says that its other side has gone
            break
        shown += data
    os.close(ours)
    assert process.wait() == 2
    assert b"Every value is doubled" in shown
    assert (b"\x1b[31m" in shown or b"\x1b[1;31m" in shown) is coloured
