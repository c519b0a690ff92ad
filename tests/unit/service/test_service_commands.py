"""The same commands on a seat: no checks there, a socket instead."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest


class Seat:
    """A seat's checkout: exercises, no checks; and its commands."""

    def __init__(self, service, home: Path) -> None:
        self.service = service
        self.root, self.work = home / "seat", home / "work"
        self.root.mkdir()
        shutil.copytree(service.catalogue / "exercises", self.root / "exercises")
        shutil.copyfile(Path(__file__).parents[3] / "tasks.py", self.root / "tasks.py")

    def environment(self, **changes: str) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if name[:6] != "GPULAB"}
        ours |= {"GPULAB_ROOT": str(self.root), "GPULAB_WORK": str(self.work), "GPULAB_LANG": "en"}
        return ours | {"GPULAB_GRADER": str(self.service.place()), "COLUMNS": "200"} | changes

    def start(self, *words: str, **changes: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "invoke", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
            env=self.environment(**changes),
        )

    def run(self, *words: str, **changes: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        process = self.start(*words, **changes)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in out + err
        return process.returncode, out, err

    def use(self, script: str) -> None:
        folder = self.work / "exercise-1"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.py").write_text(script)


@pytest.fixture
def seat(service, tmp_path: Path) -> Seat:
    return Seat(service, tmp_path)


def test_from_the_first_look_to_the_take_home_file(seat: Seat, tmp_path: Path) -> None:
    code, out, _ = seat.run("check", "1")
    assert (code, "not-fixed" in out, "Debrief" in out) == (2, True, False)
    assert seat.run("hint", "1")[0] == 0
    seat.use(seat.service.variant("multiply"))
    code, out, _ = seat.run("check", "1")
    assert code == 0
    assert "exercise-1: fixed" in out
    assert "adding a value to itself" in out  # the debrief is not on the seat
    (row,) = json.loads(seat.run("list", "--json")[1])
    assert (row["state"], row["checks"]) == ("fixed", 2)
    assert seat.run("pack", "--to", str(tmp_path / "home.tar.gz"))[0] == 0
    with tarfile.open(tmp_path / "home.tar.gz") as tar:
        verdicts = json.load(tar.extractfile("gpulab-work/verdicts.json"))
    assert [grade["verdict"] for grade in verdicts] == ["not-fixed", "fixed"]
    assert not (seat.work / ".lab" / "records.sqlite").exists()  # the record is the grader's
    assert seat.service.client().get("/progress")["hints"] == {"exercise-1": 1}


def test_hints_go_on_where_the_grader_says(seat: Seat) -> None:
    seat.service.client().note_hint("1", 2)
    assert "3/3" in seat.run("hint", "1")[1]


def test_check_all(seat: Seat) -> None:
    seat.use(seat.service.variant("multiply"))
    code, out, _ = seat.run("check.all", "--json")
    assert code == 0
    assert [grade["verdict"] for grade in json.loads(out)] == ["fixed"]


def test_a_link_in_the_work_folder_is_refused_on_the_seat(seat: Seat) -> None:
    seat.use("")
    (seat.work / "exercise-1" / "secret").symlink_to("/etc/shadow")
    code, _, err = seat.run("check", "1")
    assert (code, "is a link" in err) == (1, True)
    assert not seat.service.logged("check asked")


@pytest.mark.parametrize("json_wanted", [False, True])
def test_the_service_is_killed_in_the_middle(seat: Seat, json_wanted: bool) -> None:
    seat.use(seat.service.SLEEPS)
    process = seat.start("check", "1", *["--json"] * json_wanted)
    seat.service.wait_for(lambda: seat.service.logged("judging"))
    seat.service.stop(signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "nothing is lost, run the check again" in out
    assert "Traceback" not in out + err
    if json_wanted:
        assert json.loads(out)["verdict"] == "undecided"


@pytest.mark.parametrize("words", [("check", "1"), ("list",), ("hint", "1"), ("check.all",)])
def test_a_service_that_is_gone(seat: Seat, words: tuple[str, ...]) -> None:
    seat.service.stop(signal.SIGKILL)  # its sockets stay
    code, _, err = seat.run(*words)
    assert code == 4
    assert "cannot be reached" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("check", "1"), ("list",), ("hint", "1")])
def test_neither_checks_nor_socket(seat: Seat, words: tuple[str, ...]) -> None:
    code, _, err = seat.run(*words, GPULAB_GRADER="")
    assert code == 4
    assert "cannot be reached" in err
    assert err.count("\n") == 1


def test_ctrl_c_ends_the_check_at_the_grader(seat: Seat) -> None:
    seat.use(seat.service.SLEEPS)
    process = seat.start("check", "1")
    seat.service.wait_for(lambda: seat.service.logged("judging"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    seat.service.wait_for(lambda: seat.service.logged("check given up"))


def test_a_crashed_check_is_undecided_and_shows_nothing(seat: Seat) -> None:
    test_file = seat.service.catalogue / "checks" / "exercise-1" / "test_fix.py"
    test_file.write_text(
        test_file.read_text().replace("    require_finished(", "    1 / 0  # hidden\n    (")
    )
    seat.use(seat.service.variant("multiply"))
    code, out, err = seat.run("check", "1")
    assert code == 3
    for word in ("hidden", "ZeroDivision", "test_fix", "gpulab-check-"):
        assert word not in out + err


def test_the_client_imports_neither_numpy_nor_pytest_nor_tornado() -> None:
    code = (
        "import sys; sys.argv = ['invoke', 'check', '4', '--json']; import gpulab.tasks;"
        "heavy = {'numpy', 'pytest', 'tornado', 'psutil', 'torch'};"
        "sys.exit(' '.join(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_quick_commands_and_others_in_one_line() -> None:
    code = (
        "import sys; sys.argv = ['invoke', *sys.argv[1:]]; from gpulab.tasks import namespace as n;"
    )
    code += "print('lint' in n.task_names)"
    for words, found in ((["check", "4"], "False"), (["check", "4", "lint"], "True"), ([], "True")):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == found, done.stderr
