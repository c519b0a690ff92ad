# ruff: noqa: ANN001, ANN003, ANN201, ANN202, ANN204, D102, D103, INP001
# mypy: ignore-errors
"""A loader with one cause of hanging, under one start method.

Runs inside an attempt: the standard library and torch, Python 3.9.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import multiprocessing
from torch.utils.data import DataLoader, Dataset

LARGE = 2_000_000  # elements: enough for torch to use its threads, bytes: more than a pipe holds


class Samples(Dataset):
    """Eight numbers; `before` is called for each of them in the worker."""

    def __init__(self, before=None):
        self.before = before

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if self.before is not None:
            self.before(index)
        return torch.tensor(index)


class Lock:
    """A module's lock: the same one wherever it is used in a process."""

    held = threading.Lock()

    def __call__(self, _index):
        with Lock.held:
            pass


def nothing(method):
    """No cause."""
    epoch(Samples(), method)


def lock_held_by_a_thread(method):
    """A background thread holds a lock at the moment of the start."""
    taken = threading.Event()

    def hold():
        with Lock.held:
            taken.set()
            time.sleep(3600)

    threading.Thread(target=hold, daemon=True).start()
    taken.wait()
    epoch(Samples(Lock()), method)


def sum_up(_index):
    torch.ones(LARGE).sum()


def two_threads(_worker):
    torch.set_num_threads(2)


def threads_of_openmp(method):
    """The main process has computed in parallel, and the worker is told to."""
    torch.set_num_threads(2)
    sum_up(0)
    epoch(Samples(sum_up), method, worker_init_fn=two_threads)


class Pooled:
    """Reads through a pool of threads that it has from the start."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(1)
        self(0)

    def __call__(self, index):
        self.pool.submit(abs, index).result()


def inherited_pool(method):
    """The data set has used its pool of threads before the workers start."""
    epoch(Samples(Pooled()), method)


class Reporting:
    """Reports each sample to the main process."""

    def __init__(self, reports):
        self.reports = reports

    def __call__(self, index):
        self.reports.put(index)


def queue_read_too_late(method):
    """Reports go into a queue that is read after the epoch only."""
    reports = multiprocessing.get_context(method).Queue(maxsize=3)
    epoch(Samples(Reporting(reports)), method)


def produce(results):
    results.put(bytes(LARGE))


def join_before_get(method):
    """A process is waited for before its large result is taken. No loader."""
    context = multiprocessing.get_context(method)
    results = context.Queue()
    process = context.Process(target=produce, args=(results,))
    process.start()
    process.join()
    results.get()


class Guarded:
    """Takes a lock that all processes share."""

    def __init__(self, lock):
        self.lock = lock

    def __call__(self, _index):
        with self.lock:
            pass


def lock_around_the_loop(method):
    """The main process keeps, around its loop, the lock that the workers ask for."""
    lock = multiprocessing.get_context(method).Lock()
    with lock:
        epoch(Samples(Guarded(lock)), method)


def epoch(samples, method, **options):
    list(DataLoader(samples, num_workers=1, multiprocessing_context=method, **options))


def measure(cause, method):
    """True, or nothing at all where it hangs."""
    globals()[cause](method)
    return True
