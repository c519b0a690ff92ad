"""An attempt behaves as `python train.py` does, is watched, and leaves nothing behind."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from gpulab import attempts
from gpulab.attempts import Call, Ended, Job, Limits, Line
from gpulab.model import LabError
from gpulab.observe import Observer

REPORT = """
import json, os, signal, sys
print(json.dumps({
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path, "cwd": os.getcwd(),
    "main": sys.modules["__main__"].__file__, "stdin": sys.stdin.read(), "flags": list(sys.flags),
    "spec": __spec__ is None, "doc": __doc__, "annotations": __annotations__, "umask": os.umask(0),
    "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)],
    "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3],
    "recursion": sys.getrecursionlimit(), "modules": "multiprocessing" in sys.modules,
    "globals": sorted(name for name in globals()), "encoding": sys.stdout.encoding,
    "omp": os.environ.get("OMP_NUM_THREADS"), "language": os.environ.get("LANG"),
}))
"""
QUICK = Limits(seconds=30)


@pytest.fixture(scope="module", autouse=True)
def _childless() -> None:
    """Reap what tests of other modules left dead; these look at all children of this process."""
    for child in psutil.Process().children():
        if child.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(child.pid, os.WNOHANG)


def like_a_shell(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "train.py", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def alive_with(token: str) -> list[psutil.Process]:
    """Processes with a word in their command line, zombies included."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if token in " ".join(process.info["cmdline"] or [])
    ]


def test_it_is_as_in_a_shell(attempt, tmp_path: Path) -> None:
    made = attempt(REPORT, "--epochs", "3", "*")
    (line,) = made.lines
    assert json.loads(line.text) == json.loads(
        like_a_shell(tmp_path / "folder", "--epochs", "3", "*").stdout
    )


def test_the_ways_in_which_it_is_not(attempt, scratch: Path, monkeypatch) -> None:
    """Output comes unbuffered, the environment is a clean one, temporary files go elsewhere."""
    for name in ("PYTHONPATH", "LD_PRELOAD", "PYTEST_ADDOPTS", "MY_SECRET", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "3")
    made = attempt("import json, os; print(json.dumps(dict(os.environ)))")
    seen = json.loads(made.output("stdout"))
    assert seen["PYTHONUNBUFFERED"] == "1"
    assert seen["OMP_NUM_THREADS"] == "3"
    assert seen["OMP_WAIT_POLICY"] == "PASSIVE"
    assert seen["TMPDIR"] == str(scratch)
    assert not {"PYTHONPATH", "LD_PRELOAD", "PYTEST_ADDOPTS", "MY_SECRET"} & seen.keys()


def test_a_cpu_attempt_sees_no_gpu_and_the_variable_is_read_before_the_script(attempt) -> None:
    made = attempt("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))")
    assert made.output() == "''"


@pytest.mark.parametrize(
    "body",
    [
        "raise SystemExit(7)",
        "raise SystemExit('bye')",
        "raise ValueError('no')",
        "import os; os._exit(9)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.abort()",
        "raise KeyboardInterrupt",
        "import atexit; atexit.register(print, 'last')",
        "def (",
        "",
    ],
)
def test_exit_codes_and_output_are_the_same(attempt, tmp_path: Path, body: str) -> None:
    made = attempt(body)
    shell = like_a_shell(tmp_path / "folder")
    assert made.ended is Ended.EXIT
    assert made.exit_code == shell.returncode
    assert made.output("stdout") == shell.stdout.removesuffix("\n")
    assert made.output("stderr") == shell.stderr.removesuffix("\n")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(attempt, method: str) -> None:
    script = f"""
        import multiprocessing
        def work(queue, value):
            queue.put((value * 2, __name__))
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            queue = context.Queue()
            process = context.Process(target=work, args=(queue, 21))
            process.start()
            print(queue.get()[0])
            process.join()
            print(process.exitcode)
        """
    made = attempt(script, limits=QUICK)
    assert (made.output("stdout"), made.exit_code, made.left_running) == ("42\n0", 0, 0)


def test_children_of_multiprocessing_in_a_call(attempt) -> None:
    script = """
        import multiprocessing
        def work(value):
            return value * 2
        def f():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(work, [1, 2])
        """
    assert attempt(script, call=Call("f"), limits=QUICK).answer == [2, 4]


def test_lines_come_as_they_are_printed(attempt) -> None:
    script = """
        import sys, time
        for number in range(3):
            print(number)
            print("error", number, file=sys.stderr)
            time.sleep(0.3)
        """
    made = attempt(script)
    at = [line.at for line in made.lines if line.stream == "stdout"]
    assert at == sorted(at)
    assert 0.5 < at[2] - at[0] < made.evidence.wall
    assert made.output("stderr") == "error 0\nerror 1\nerror 2"


def test_output_that_is_no_text(attempt) -> None:
    made = attempt("import os; os.write(1, b'a\\xff\\0\\x1b[31mb\\r\\n\\xe4\\xb8'); os._exit(0)")
    assert [line.text for line in made.lines] == ["a\ufffd\0\x1b[31mb", "\ufffd"]


def test_a_last_line_without_its_end(attempt) -> None:
    assert attempt("import sys; sys.stdout.write('a\\nb')").output() == "a\nb"


def test_a_very_long_line(attempt) -> None:
    made = attempt("print('x' * 3_000_000)")
    assert (made.ended, len(made.output())) == (Ended.EXIT, 3_000_000)


def test_the_end_of_a_whole_character_at_a_cut(attempt) -> None:
    """Bytes come in pieces; no character is lost where one piece ends."""
    script = """
        import os, time
        for byte in "é中\\n".encode():
            os.write(1, bytes([byte]))
            time.sleep(0.02)
        """
    assert attempt(script).output() == "é中"


@pytest.mark.parametrize(
    "body",
    [
        "while True: print('x' * 10_000)",
        "while True: print()",
        "import os\nwhile True: os.write(2, bytes(9_999))",
        "print('x' * 6_000_000)",
        "print('\\n' * 100_000)",
    ],
)
def test_a_flood_is_ended_and_bounded(attempt, body: str) -> None:
    seen: list[object] = []
    made = attempt(body, listener=seen.append, limits=QUICK)
    assert made.ended is Ended.FLOOD
    assert made.evidence.wall < 20
    assert len(made.lines) <= Limits().lines + 1
    assert len(made.output()) <= Limits().output_bytes
    assert sum(isinstance(item, Line) for item in seen) == len(made.lines)


def test_an_answer_without_end(attempt) -> None:
    script = (
        "import os, sys\ndef f():\n    while True: os.write(int(sys.orig_argv[-1]), bytes(9999))"
    )
    made = attempt(script, call=Call("f"), limits=Limits(answer_bytes=1 << 20, seconds=30))
    assert made.ended is Ended.FLOOD


def test_a_process_that_closes_its_pipes(attempt) -> None:
    made = attempt("import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(4)")
    assert (made.ended, made.exit_code) == (Ended.EXIT, 4)
    assert made.evidence.wall > 0.4


def test_the_time_out(attempt) -> None:
    made = attempt("while True: pass", limits=Limits(seconds=1))
    assert (made.ended, made.exit_code) == (Ended.TIME_OUT, None)
    assert 1 <= made.evidence.wall < 10


def test_the_memory_cap(attempt) -> None:
    script = "kept = []\nwhile True: kept.append(bytearray(4 << 20))"
    made = attempt(script, limits=Limits(seconds=30, memory=200 << 20))
    assert made.ended is Ended.MEMORY
    assert 200 << 20 < max(sample.private for sample in made.evidence.memory) < 4 << 30


def test_the_memory_cap_counts_the_children(attempt) -> None:
    script = """
        import subprocess, sys
        hold = "import time; kept = b'x' * (150 << 20); time.sleep(60)"
        for child in [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(2)]:
            child.wait()
        """
    assert attempt(script, limits=Limits(seconds=30, memory=250 << 20)).ended is Ended.MEMORY


def test_no_file_grows_without_end(attempt) -> None:
    made = attempt("import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE)[0] >> 30)")
    assert made.output() == "4"


def test_the_stop_event(attempt) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(InterruptedError):
        attempt("import time; time.sleep(60)  # stop-event", stop=stop)
    assert not psutil.Process().children()


def test_the_listener_sees_lines_and_looks(attempt) -> None:
    seen: list[Line | Observer] = []
    attempt("import time; print('x'); time.sleep(0.3)", listener=seen.append)
    assert [item.text for item in seen if isinstance(item, Line)] == ["x"]
    assert any(isinstance(item, Observer) for item in seen)


def test_a_listener_that_fails_leaves_nothing_running(attempt) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("the listener failed")

    with pytest.raises(RuntimeError, match="the listener failed"):
        attempt("import time; time.sleep(60)", listener=fail)
    assert not psutil.Process().children()


LEAVERS = {
    "daemonises": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in (0, 1, 2):
                    os.close(fd)
                os.chdir("/")
                time.sleep(300)
            os._exit(0)
        """,
    "double-forks and holds the pipes": """
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(300)
            os._exit(0)
        """,
    "starts a session": """
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(300) # {TOKEN}"],
                         start_new_session=True)
        """,
    "ignores what can be ignored": """
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (9, 17, 19):
                    signal.signal(number, signal.SIG_IGN)
            time.sleep(300)
        """,
    "writes for ever": """
        if os.fork() == 0:
            while True:
                print("still here")
                time.sleep(0.01)
        """,
    "stops itself": """
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        """,
}


@pytest.mark.parametrize("how", LEAVERS)
def test_what_is_left_running_is_ended(attempt, how: str) -> None:
    token = f"token-{os.getpid()}-{abs(hash(how))}"
    head = f"import os, signal, subprocess, sys, time\nTOKEN = {token!r}\n"
    script = head + textwrap.dedent(LEAVERS[how]) + "time.sleep(0.3)\nos._exit(0)\n"
    made = attempt(script, token, limits=QUICK)
    assert (made.ended, made.exit_code) == (Ended.EXIT, 0)
    assert made.left_running == 1
    assert made.evidence.wall < 10
    assert not alive_with(token)
    assert not psutil.Process().children()


def test_a_fork_bomb_is_ended(attempt) -> None:
    token = f"bomb-{os.getpid()}"
    script = """
        import os, time
        for _ in range(5):
            os.fork()
        while True:
            time.sleep(0.01)
        """
    made = attempt(script, token, limits=Limits(seconds=1))
    assert made.ended is Ended.TIME_OUT
    assert not alive_with(token)


def test_a_neighbour_is_left_alone(attempt) -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        attempt("while True: pass", limits=Limits(seconds=0.5))
        assert neighbour.poll() is None
    finally:
        neighbour.kill()
        neighbour.wait()


def test_a_script_that_kills_its_group(attempt) -> None:
    made = attempt("import os, signal; os.killpg(0, signal.SIGTERM)")
    assert (made.ended, made.exit_code) == (Ended.EXIT, -signal.SIGTERM)


def test_a_python_that_is_not_there(attempt, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot be started") as refused:
        attempt("", python=tmp_path / "nowhere")
    assert refused.value.code == 4
    with pytest.raises(LabError, match="cannot be started"):
        attempt("", python=tmp_path / "nowhere", call=Call("f"))


def test_a_hundred_attempts_leak_nothing(attempt) -> None:
    def state() -> tuple[int, int, int]:
        gc.collect()
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        return descriptors, len(psutil.Process().children()), threading.active_count()

    attempt("print('x')")
    before, memory = state(), psutil.Process().memory_info().rss
    for number in range(100):
        call = Call("f") if number % 2 else None
        made = attempt("def f():\n    return 1\nprint('x')", call=call)
        assert (made.output(), made.ended) == ("x", Ended.EXIT)
    assert state() == before
    assert psutil.Process().memory_info().rss - memory < 30 << 20


def test_attempts_side_by_side_do_not_end_each_other(tmp_path: Path) -> None:
    script = "import os, time\n" + textwrap.dedent(LEAVERS["daemonises"])
    script += "time.sleep(0.3)\nprint('x')\nos._exit(5)\n"
    found = []

    def make(number: int) -> None:
        folder = tmp_path / f"folder-{number}"
        folder.mkdir()
        (folder / "train.py").write_text(script)
        found.append(attempts.run(Job(folder, "train.py", tmp_path)))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(made.exit_code, made.output()) for made in found] == [(5, "x")] * 4
    assert not psutil.Process().children()


def test_the_end_is_seen_at_once(attempt) -> None:
    started = time.monotonic()
    attempt("")
    assert time.monotonic() - started < 5
