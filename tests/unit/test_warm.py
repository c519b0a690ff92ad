"""A process that waited with torch imported behaves as a fresh one does."""

import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpulab import attempts
from gpulab.attempts import (
    Attempt,
    Call,
    Ended,
    ForkLauncher,
    ForkServer,
    Job,
    LocalLauncher,
    Setting,
    WarmPool,
)
from gpulab.model import Device, LabError

SCRIPTS = {
    "prints": "print('a')\nprint('b', end='')\n",
    "says who it is": """
        import os, pathlib, sys
        print(__name__, __file__, __spec__, __package__, __doc__, __cached__, __builtins__)
        print(type(__loader__).__name__, __loader__.name, __loader__.path)
        print(sorted(globals()), sys.argv, sys.path[0], os.getcwd(), sys.flags)
        print(sys.modules['__main__'].__dict__ is globals(), __annotations__)
        print(pathlib.Path(__file__).resolve() == pathlib.Path('train.py').resolve())
        print(sys.executable, sys.prefix, sys.orig_argv[1:], os.environ.get('TMPDIR'))
    """,
    "raises": "def f():\n    raise ValueError('no')\n\ntry:\n    1 / 0\nfinally:\n    f()\n",
    "raises from within": "import json\njson.loads('{')\n",
    "has a hook for it": """
        import sys, traceback
        def hook(kind, error, trace):
            print(kind.__name__, len(traceback.extract_tb(trace)))
        sys.excepthook = hook
        raise ValueError('no')
    """,
    "is no python": "x = (\n",
    "ends with a number": "import sys\nprint('x')\nsys.exit(7)\n",
    "ends with a text": "import sys\nsys.exit('why')\n",
    "ends at once": "import os\nprint('x', flush=True)\nos._exit(9)\n",
    "ends by a signal": "import os\nos.kill(os.getpid(), 15)\n",
    "is interrupted": "raise KeyboardInterrupt\n",
    "has things to do at the end": """
        import atexit, threading, time
        atexit.register(print, 'last')
        threading.Thread(target=lambda: (time.sleep(0.3), print('thread'))).start()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print('main')
    """,
    "raises and has things to do": """
        import atexit
        atexit.register(print, 'last')
        raise SystemError('x')
    """,
    "imports its neighbour": "import helper\nprint(helper.value, helper.__file__)\n",
    "pickles its own": """
        import pickle
        class Mine:
            pass
        print(type(pickle.loads(pickle.dumps(Mine()))) is Mine, Mine.__module__)
    """,
    "seeds": "import torch\ntorch.manual_seed(1)\nprint(torch.rand(3).tolist())\n",
    "uses every thread": """
        import numpy, torch
        x = numpy.ones((600, 600), numpy.float32)
        print((x @ x).sum(), (torch.from_numpy(x) @ torch.from_numpy(x)).sum().item())
    """,
    "draws from numpy": """
        import numpy
        print(numpy.random.default_rng(3).random(), numpy.random.rand() != 0.5)
    """,
    "counts threads": """
        import threading, torch
        print(threading.active_count(), torch.get_num_threads())
    """,
    "writes a temporary file": """
        import os, tempfile
        print(tempfile.gettempdir() == os.environ['TMPDIR'])
    """,
}
WORKERS = """
    import multiprocessing, os, sys
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.tensor([index ** 2, __name__ == '__main__', os.path.exists('train.py')])

    if __name__ == '__main__':
        loader = DataLoader(Squares(), 4, num_workers=2, multiprocessing_context='CONTEXT')
        print([batch.tolist() for batch in loader], sys.argv)
"""
CONTEXTS = ("fork", "spawn", "forkserver")
SCRIPTS |= {f"has workers by {how}": WORKERS.replace("CONTEXT", how) for how in CONTEXTS}


@pytest.fixture
def make(tmp_path: Path, scratch: Path):
    def job(script: str, **options) -> Job:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(textwrap.dedent(script), encoding="utf-8")
        (folder / "helper.py").write_text("value = 3\n", encoding="utf-8")
        return Job(folder, "train.py", scratch, **options)

    return job


def run_warm(job: Job) -> Attempt:
    with WarmPool(LocalLauncher(), job.setting) as pool:
        return attempts.run(job, launcher=pool)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer.start(Setting(Path(sys.executable), Device.CPU))
    yield server
    server.close()


@pytest.fixture(params=["waited", "forked"])
def run_ready(request, server: ForkServer) -> Callable[[Job], Attempt]:
    if request.param == "waited":
        return run_warm
    return lambda job: attempts.run(job, launcher=ForkLauncher(LocalLauncher(), server))


def told(made: Attempt) -> tuple:
    error = made.error and (made.error.type, made.error.line, made.error.source)
    return made.ended, made.exit_code, made.output("stdout"), made.output("stderr"), error


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_behaves_the_same(make, run_ready, name: str) -> None:
    job = make(SCRIPTS[name], arguments=("--epochs", "3"))
    cold, warm = attempts.run(job), run_ready(job)
    assert told(warm) == told(cold)
    assert cold.ended is Ended.EXIT


@pytest.mark.parametrize(
    "script",
    [
        "def f(x):\n    return [x, __name__]\n",
        "def f(x):\n    raise ValueError('no')\n",
        "import torch\ndef f(x):\n    return torch.tensor(x).double()\n",
    ],
)
def test_a_call_behaves_the_same(make, run_ready, script: str) -> None:
    job = make(script, call=Call("f", ([1.5],)))
    cold, warm = attempts.run(job), run_ready(job)
    assert told(warm) == told(cold)
    assert repr(warm.answer) == repr(cold.answer)


def test_cuda_is_untouched_and_the_time_before_does_not_count(make, run_ready) -> None:
    script = "import sys, torch\nprint('torch' in sys.modules, torch.cuda.is_initialized())\n"
    made = run_ready(make(script))
    assert made.output() == "True False"
    assert made.evidence.cpu < 1.5  # importing torch takes more, of which nothing is left here


class Counting(LocalLauncher):
    """Counts what is started."""

    def __init__(self) -> None:
        self.fresh = self.prepared = 0

    def launch(self, job: Job):
        self.fresh += 1
        return super().launch(job)

    def prepare(self, *arguments):
        self.prepared += 1
        return super().prepare(*arguments)


def test_each_is_used_once(make) -> None:
    counting, job = Counting(), make("import os\nprint(os.getpid())\n")
    with WarmPool(counting, job.setting) as pool:
        seen = {attempts.run(job, launcher=pool).output() for _ in range(3)}
    assert len(seen) == 3
    assert counting.fresh == 0


def test_a_cold_job_is_started_fresh(make) -> None:
    counting, job = Counting(), make("print(1)", cold=True)
    with WarmPool(counting) as pool:
        attempts.run(job, launcher=pool)
    assert (counting.fresh, counting.prepared) == (1, 0)


def test_a_neighbour_with_an_imported_name_is_found_first(make) -> None:
    job = make("import json\nprint(json.mine)\n")
    (job.folder / "json.py").write_text("mine = True\n")
    assert told(run_warm(job)) == told(attempts.run(job))


def test_an_unexpected_setting_is_started_fresh_the_first_time(make) -> None:
    counting, job = Counting(), make("print(1)")
    with WarmPool(counting) as pool:
        attempts.run(job, launcher=pool)
        pool.wait()
        attempts.run(job, launcher=pool)
    assert counting.fresh == 1


def test_a_spare_that_is_lost_is_replaced(make) -> None:
    counting, job = Counting(), make("print(1)")
    with WarmPool(counting, job.setting, modules=()) as pool:
        pool.wait()
        spare = pool._waiting[job.setting][0].result()
        spare.kill()
        spare.process.wait()
        assert attempts.run(job, launcher=pool).output() == "1"
    assert counting.fresh == 1


def test_a_spare_that_is_killed_with_the_job_on_its_way_is_replaced(make) -> None:
    counting, job = Counting(), make("print(1)")
    with WarmPool(counting, job.setting, modules=()) as pool:
        pool.wait()
        spare = pool._waiting[job.setting][0].result()
        spare.process.send_signal(signal.SIGSTOP)  # the job is sent, and nobody takes it
        killer = threading.Timer(0.5, spare.kill)
        killer.start()
        assert attempts.run(job, launcher=pool).output() == "1"
        killer.join()
    assert counting.fresh == 1


def test_a_python_that_cannot_import_is_named(make) -> None:
    launcher, job = LocalLauncher(), make("print(1)")
    spare = launcher.prepare(job.setting, ("no_such_module",))
    with pytest.raises(LabError, match=r"does not start: .*no_such_module"):
        spare.become_ready()


def test_nothing_is_left_of_what_waited(make) -> None:
    before = psutil.Process().children(recursive=True)
    with WarmPool(LocalLauncher(), make("").setting):
        pass
    assert psutil.Process().children(recursive=True) == before


def test_the_setting_reaches_it(make) -> None:
    job = make("import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'] == '')\n")
    assert job.setting.device is Device.CPU
    assert run_warm(job).output() == "True"
