"""A hang inside the sandbox is recognised outside, with the attendee's line."""

from pathlib import Path

import pytest

from gpulab import attempts
from gpulab.attempts import Ended, WarmPool

LOCKED = """
    import threading
    lock = threading.Lock()
    with lock, lock:
        pass
"""
WORKERS = """
    import threading
    from torch.utils.data import DataLoader

    lock = threading.Lock()

    class Records:
        def __len__(self):
            return 8
        def __getitem__(self, index):
            with lock:
                return index

    with lock:
        for batch in DataLoader(Records(), num_workers=2):
            print(batch)
"""


def frames(made) -> list:
    return [f for p in made.hang.waiting for t in p.threads for f in t.frames if f.source]


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_lock_taken_twice(sandbox, start: str) -> None:
    job = sandbox.job(LOCKED)
    if start == "cold":
        made = attempts.run(job, launcher=sandbox.launcher)
    else:
        with WarmPool(sandbox.launcher, job.setting) as pool:
            made = attempts.run(job, launcher=pool)
    assert made.ended is Ended.HANG, made
    assert made.hang.kind == "proof"
    first = frames(made)[0]
    assert (first.file, first.line, first.source) == ("train.py", 4, "with lock, lock:")


def test_workers_of_a_loader(sandbox) -> None:
    made = sandbox.run(WORKERS)
    assert made.ended is Ended.HANG, made
    assert {"with lock:"} <= {frame.source for frame in frames(made)}
    assert {"main", "worker"} >= {process.role for process in made.hang.waiting}


def test_no_name_of_a_file_shows_a_line_of_the_host(sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("\n\n\nthe secret line\n")
    names = [str(secret), f"../../../../../..{secret}", f"/work/exercise-9/../../..{secret}"]
    script = f"""
        import threading
        lock = threading.Lock()
        lock.acquire()
        steps = [lock.acquire]
        for name in {names!r}:
            frame = {{"inner": steps[-1]}}
            exec(compile("\\n\\n\\ndef step(): inner()", name, "exec"), frame)
            steps.append(frame["step"])
        steps[-1]()
    """
    made = sandbox.run(script)
    assert made.ended is Ended.HANG, made.output()
    shown = [f.line for p in made.hang.waiting for t in p.threads for f in t.frames]
    assert shown.count(4) >= len(names)  # the frames are there, their lines are not
    assert "the secret line" not in repr(made)


def test_a_link_put_in_place_of_the_script_shows_nothing(sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("the secret line\n" * 20)
    script = f"""
        import os, threading
        os.remove("train.py")
        os.symlink({str(secret)!r}, "train.py")
        lock = threading.Lock()
        with lock, lock:
            pass
    """
    made = sandbox.run(script)
    assert made.ended is Ended.HANG
    assert frames(made)[0].source == "with lock, lock:"
    assert "the secret line" not in repr(made)
