"""Folders that an attempt is given paths of: what goes in, and what comes back."""

import os
from pathlib import Path

import pytest

from gpulab import attempts
from gpulab.attempts import Call


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs" / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.txt").write_text("one")
    (folder / "deep" / "two.txt").write_text("two")
    return folder


def give(sandbox, script: str, folder: Path, *arguments, **options):
    options = {"shared": (folder,), "returned": (folder,)} | options
    job = sandbox.job(script, Call("f", arguments or (folder,)), **options)
    return attempts.run(job, launcher=sandbox.launcher)


def test_it_reads_and_writes(sandbox, shared: Path) -> None:
    script = """
        def f(folder):
            read = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
            (folder / "one.txt").write_text("changed")
            (folder / "new").mkdir()
            (folder / "new" / "three.txt").write_text("three")
            return read
    """
    made = give(sandbox, script, shared)
    assert made.answer == ["deep", "deep/two.txt", "one.txt"], made
    assert (shared / "one.txt").read_text() == "changed"
    assert (shared / "new" / "three.txt").read_text() == "three"
    assert (shared / "deep" / "two.txt").read_text() == "two"


def test_what_does_not_return_stays_as_it_was(sandbox, shared: Path) -> None:
    script = "def f(folder):\n    (folder / 'one.txt').write_text('changed')\n"
    assert give(sandbox, script, shared, returned=()).error is None
    assert (shared / "one.txt").read_text() == "one"


def test_paths_in_lists_and_arguments_are_translated(sandbox, shared: Path) -> None:
    script = "def f(given):\n    return [p.read_text() for p in given['files']]\n"
    files = {"files": [shared / "one.txt", shared / "deep" / "two.txt"]}
    assert give(sandbox, script, shared, files).answer == ["one", "two"]
    script = "def f(path):\n    return open(path).read()\n"
    assert give(sandbox, script, shared, f"{shared}/one.txt").answer == "one"
    script = "import sys\nprint(open(sys.argv[1].split('=')[1] + '/one.txt').read())\n"
    job = sandbox.job(script, shared=(shared,), arguments=(f"--data={shared}",))
    assert attempts.run(job, launcher=sandbox.launcher).output() == "one"


def test_a_folder_that_nobody_names_is_not_there(sandbox, shared: Path) -> None:
    script = "import os\ndef f(n):\n    return sorted(os.listdir('/work'))\n"
    assert give(sandbox, script, shared, 1).answer == ["exercise-9"]


def test_it_comes_back_however_the_attempt_ends(sandbox, shared: Path) -> None:
    script = """
        import os
        def f(folder):
            (folder / "new").write_text("x")
            os.kill(os.getpid(), 9)
    """
    made = give(sandbox, script, shared)
    assert made.exit_code == -9
    assert (shared / "new").read_text() == "x"


def test_no_link_and_no_special_file_comes_back(sandbox, shared: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    script = """
        import os, shutil, socket
        def f(folder, secret):
            os.symlink(secret, folder / "link")
            os.symlink("/", folder / "root")
            os.mkfifo(folder / "pipe")
            socket.socket(socket.AF_UNIX).bind(str(folder / "socket"))
            shutil.rmtree(folder / "deep")
            os.symlink(os.path.dirname(secret), folder / "deep")
            os.remove(folder / "one.txt")
            os.symlink(secret, folder / "one.txt")
    """
    made = give(sandbox, script, shared, shared, str(secret))
    assert made.error is None
    assert sorted(path.name for path in shared.iterdir()) == ["deep", "one.txt"]
    assert (shared / "one.txt").read_text() == "one"
    assert not (shared / "deep").is_symlink()


def test_the_folder_itself_may_be_a_link_by_then(sandbox, shared: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    script = """
        import os, shutil
        def f(folder, outside):
            shutil.rmtree(folder.parent)
            os.symlink(outside, folder.parent)
    """
    give(sandbox, script, shared, shared, str(tmp_path))
    assert sorted(p.name for p in shared.rglob("*")) == ["deep", "one.txt", "two.txt"]


def test_what_comes_back_is_bounded(sandbox, shared: Path) -> None:
    script = """
        import os
        def f(folder):
            with open(folder / "huge", "wb") as file:
                file.truncate(2 << 30)  # a hole: it takes no room inside
            deep = folder
            for _ in range(100):
                deep = deep / "d"
                deep.mkdir()
            (folder / "small").write_text("small")
            (folder / "many").mkdir()
            for number in range(11_000):
                (folder / "many" / str(number)).touch()
    """
    made = give(sandbox, script, shared)
    assert made.error is None
    assert not (shared / "huge").exists()
    assert len(list(shared.rglob("*"))) <= 10_000 + 10
    assert not list(shared.glob("d/" * 25))


def test_names_that_are_no_text(sandbox, shared: Path) -> None:
    script = """
        import os
        def f(folder):
            open(os.fsencode(folder) + b"/\\xff\\n", "w").write("x")
    """
    assert give(sandbox, script, shared).error is None
    assert (shared / os.fsdecode(b"\xff\n")).read_text() == "x"


def test_the_work_folder_is_a_copy(sandbox) -> None:
    job = sandbox.job("import os\nopen('left', 'w').write('x')\nos.remove('train.py')\n")
    assert attempts.run(job, launcher=sandbox.launcher).exit_code == 0
    assert [path.name for path in job.folder.iterdir()] == ["train.py"]
