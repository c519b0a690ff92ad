"""Claims about the DataLoader and its workers.

Workers are forked, so that none has to import torch, unless the start method is the point.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info
from torch.utils.data import dataloader as loaders

FORK = {"num_workers": 1, "multiprocessing_context": "fork"}
DEAD_WORKER = ("is killed by signal", "exited unexpectedly")


class Numbers(Dataset):
    def __init__(self, length=8):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor(float(index))


class Slow(Numbers):
    """Every sample waits for its file, as it were."""

    def __getitem__(self, index):
        time.sleep(0.02)
        return super().__getitem__(index)


class Ragged(Numbers):
    def __getitem__(self, index):
        return torch.ones(3, 10 + index)


class Mortal(Numbers):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


def seconds(loader) -> float:
    """Of the quickest of three epochs: the machine may be busy."""
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        assert list(loader)
        taken.append(time.perf_counter() - begun)
    return min(taken)


@pytest.mark.claim(3)
def test_workers_on_small_data(part):
    list(DataLoader(Numbers()))
    alone, helped = seconds(DataLoader(Numbers())), seconds(DataLoader(Numbers(), **FORK))
    part("a worker makes it slower", helped > alone)


@pytest.mark.claim(14)
def test_batches_in_shared_memory(part):
    batch = next(iter(DataLoader(Numbers(), batch_size=2, **FORK)))
    part("a batch is in shared memory", batch.is_shared())
    (worker,) = set(DataLoader(Numbers(), batch_size=8, collate_fn=process, **FORK))
    part("from another process", worker != os.getpid())


def process(_samples) -> int:
    return os.getpid()


@pytest.mark.claim(15)
@pytest.mark.skipif(torch.cuda.is_available(), reason="see the test for GPUs")
def test_pinning_without_a_gpu(part):
    with pytest.warns(UserWarning, match="no accelerator is found"):
        batch = next(iter(DataLoader(Numbers(), pin_memory=True)))
    part("the batch leaves host memory", batch.device.type != "cpu")
    assert not batch.is_pinned()


@pytest.mark.claim(15)
@pytest.mark.gpu
def test_pinning_on_a_gpu(part):
    used = torch.cuda.memory_allocated()
    batch = next(iter(DataLoader(Numbers(), pin_memory=True)))
    part("the batch leaves host memory", batch.device.type != "cpu")
    part("it takes GPU memory", torch.cuda.memory_allocated() > used)
    assert batch.is_pinned()


@pytest.mark.claim(20)
def test_number_of_workers_is_kept(part):
    many = len(os.sched_getaffinity(0)) + 1
    with pytest.warns(UserWarning, match="will create .* worker processes"):
        loader = DataLoader(Numbers(), num_workers=many)
    part("another number than asked for", loader.num_workers != many)


@pytest.mark.claim(49)
def test_waiting_for_files(part):
    loader = DataLoader(Slow(10))
    list(DataLoader(Numbers(10)))
    part("reading does not matter", seconds(loader) < 3 * seconds(DataLoader(Numbers(10))))


@pytest.mark.claim(50)
def test_who_collates(part):
    (where,) = set(DataLoader(Numbers(), batch_size=8, collate_fn=process, **FORK))
    part("the main process", where == os.getpid())
    assert list(DataLoader(Numbers(1), collate_fn=process)) == [os.getpid()]


@pytest.mark.claim(51)
def test_who_starts_the_workers(part, monkeypatch):
    iterator = loaders._MultiProcessingDataLoaderIter
    running = []

    def look(self, *args, **kwargs):
        running.append(all(worker.is_alive() for worker in self._workers))
        return reset(self, *args, **kwargs)

    reset = iterator._reset
    monkeypatch.setattr(iterator, "_reset", look)
    list(DataLoader(Numbers(), **FORK))
    part("none runs before _reset", not all(running) or not running)


class Marked:
    """Tells who unpickled it."""

    def __init__(self, made_in):
        self.made_in = made_in

    def __setstate__(self, state):
        self.__dict__.update(state, opened_in=os.getpid())


def with_mark(samples):
    return torch.stack(samples), Marked(os.getpid())


@pytest.mark.claim(52)
def test_what_travels(part):
    ((batch, mark),) = DataLoader(Numbers(4), batch_size=4, collate_fn=with_mark, **FORK)
    part("one sample at a time", len(batch) != 4)
    part("other objects are pickled", mark.opened_in == os.getpid() != mark.made_in)
    part("so are a tensor's values", not batch.is_shared())


@pytest.mark.claim(53)
def test_name_of_the_pinning(part):
    part("pin_memory_batch", hasattr(loaders._utils.pin_memory, "pin_memory_batch"))
    assert callable(loaders._utils.pin_memory._pin_memory_loop)


@pytest.mark.claim(54)
@pytest.mark.gpu
def test_pinned_memory_is_copied(part):
    pinned = torch.ones(8).pin_memory()
    on_gpu = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    pinned.zero_()
    part("no copy: the GPU sees the change", on_gpu.sum() == 0)
    part("always pinned", next(iter(DataLoader(Numbers()))).is_pinned())


def private_growth(touch) -> int:
    """Bytes that a forked child writes to, and so makes its own, while it runs `touch`."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        torch.set_num_threads(1)  # the pool of threads stayed in the parent
        before = private_bytes()
        touch()
        os.write(writing, str(private_bytes() - before).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        grown = answer.read()
    os.waitpid(child, 0)
    return int(grown)


def private_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


@pytest.mark.claim(55)
def test_memory_of_a_worker(part):
    objects, tensor = [f"sample {number}" for number in range(200_000)], torch.ones(4 << 20)
    size = 16 << 20
    part("reading a tensor copies it", private_growth(tensor.max) > size // 4)
    part("reading objects copies them", private_growth(lambda: [o for o in objects]) > size // 8)  # noqa: C416


@pytest.mark.claim(56)
def test_killed_worker(part, complaint):
    said = complaint(lambda: list(DataLoader(Mortal(), **FORK)))
    part("nothing is said", not any(text in said for text in DEAD_WORKER))


@pytest.mark.claim(57)
def test_rule_for_the_number_of_workers(part, complaint):
    for processors in (1, 2):
        workers = min(4, processors - 2)
        said = complaint(lambda workers=workers: DataLoader(Numbers(), num_workers=workers))
        part(f"{processors} processors get a worker", not said and workers > 0)
    assert "num_workers option should be non-negative" in complaint(
        lambda: DataLoader(Numbers(), num_workers=-1)
    )


@pytest.mark.claim(58)
def test_samples_of_other_sizes(part, complaint):
    said = complaint(lambda: list(DataLoader(Ragged(4), batch_size=2)))
    part("it fails", "stack expects each tensor to be equal size" in said)


def padded(samples):
    wide = max(sample.shape[1] for sample in samples)
    padding = [wide - sample.shape[1] for sample in samples]
    pad = torch.nn.functional.pad
    return torch.stack([pad(s, (0, p)) for s, p in zip(samples, padding, strict=True)])


@pytest.mark.claim(59)
def test_padding_collate(part):
    shapes = [
        tuple(batch.shape) for batch in DataLoader(Ragged(4), batch_size=2, collate_fn=padded)
    ]
    part("it runs", shapes == [(2, 3, 11), (2, 3, 13)])


@pytest.mark.claim(60)
def test_kind_of_iterator(part):
    for options in ({}, FORK):
        iterator = iter(DataLoader(Numbers(), **options))
        assert len(list(iterator)) == 8
        workers = options.get("num_workers", 0)
        part(
            f"with {workers} workers", isinstance(iterator, loaders._MultiProcessingDataLoaderIter)
        )


@pytest.mark.claim(61)
def test_names_underneath(part):
    names = ("THSDataLoader_next", "THCTensor_copyCuda", "THCTensor_addmm")
    for library in ("libtorch_python.so", "libtorch_cpu.so"):
        content = (Path(torch.__file__).parent / "lib" / library).read_bytes()
        part(library, any(name.encode() in content for name in names))


@pytest.mark.claim(62)
def test_moving_a_batch(part, complaint):
    batch = default_collate([{"x": torch.ones(1)}, {"x": torch.zeros(1)}])
    said = complaint(lambda: batch.cuda())  # noqa: PLW0108
    part("a batch has .cuda()", "'dict' object has no attribute 'cuda'" not in said)


CUDA_IN_A_WORKER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Moved(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.ones(1).cuda()

def choose(worker):
    torch.cuda.set_device(worker % torch.cuda.device_count())

torch.zeros(1).cuda()
list(DataLoader(DATASET, num_workers=1, multiprocessing_context="fork", worker_init_fn=START))
"""


def cuda_in_a_worker(dataset: str, start: str) -> str:
    script = CUDA_IN_A_WORKER.replace("DATASET", dataset).replace("START", start)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr


@pytest.mark.claim(85)
@pytest.mark.gpu
def test_cuda_in_a_forked_worker(part):
    said = cuda_in_a_worker("Moved()", "None")
    part(
        "it hangs instead of raising", "Cannot re-initialize CUDA in forked subprocess" not in said
    )


@pytest.mark.claim(86)
def test_start_method(part, complaint):
    class Local(Numbers):
        def __init__(self):
            super().__init__(1)
            self.transform = lambda x: x

    spawned = DataLoader(Local(), num_workers=1, multiprocessing_context="spawn")
    part("spawn runs whatever ran before", "pickle" not in complaint(lambda: list(spawned)))
    twice = "import torch.multiprocessing as m\nfor _ in 'ab': m.set_start_method('spawn')"
    done = subprocess.run(
        [sys.executable, "-c", twice], capture_output=True, text=True, check=False
    )
    assert "context has already been set" in done.stderr
    part(
        "a worker is started afresh",
        "spawn" in type(spawned.multiprocessing_context).__name__.lower(),
    )


@pytest.mark.claim(87)
@pytest.mark.skipif(torch.cuda.is_available(), reason="see the test for GPUs")
def test_set_device_without_a_gpu(part, complaint):
    def choose(worker):
        torch.cuda.set_device(worker % torch.cuda.device_count())

    said = complaint(lambda: list(DataLoader(Numbers(), worker_init_fn=choose, **FORK)))
    part("the worker runs", "ZeroDivisionError" not in said)


@pytest.mark.claim(87)
@pytest.mark.gpu
def test_set_device_in_a_forked_worker(part):
    said = cuda_in_a_worker("torch.utils.data.TensorDataset(torch.ones(2))", "choose")
    part("the worker runs", "Cannot re-initialize CUDA in forked subprocess" not in said)


@pytest.mark.claim(88)
def test_no_workers(part):
    where = []

    class Here(Numbers):
        def __getitem__(self, index):
            where.append((os.getpid(), get_worker_info()))
            return super().__getitem__(index)

    assert list(DataLoader(Here(2), num_workers=0))
    part("nobody is waited for", where == [(os.getpid(), None)] * 2)


HANGS = """
import multiprocessing, threading, sys
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()

class Guarded(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        with lock:
            return index

held, release = threading.Event(), threading.Event()

def hold():
    with lock:
        held.set()
        release.wait()

if sys.argv[1] == "held":
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
try:
    limit = int(sys.argv[2])
    list(DataLoader(Guarded(), num_workers=1, multiprocessing_context="fork", timeout=limit))
    print("done")
except RuntimeError as error:
    print(error)
    for worker in multiprocessing.active_children():
        worker.kill()
"""


@pytest.mark.claim(89)
def test_a_hang_has_a_cause(part):
    def ends(word: str, limit: int) -> str:
        command = [sys.executable, "-c", HANGS, word, str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    part("with the cause it may end well", "timed out" not in ends("held", 2))
    part("without it, it may hang", "done" not in ends("free", 60))
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    part("a fresh process has torch within 200 ms", time.perf_counter() - begun < 0.2)
