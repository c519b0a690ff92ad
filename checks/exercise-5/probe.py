"""Validate on fresh batches that come one by one, then train."""

# Plain Python 3.9, like the code it runs beside.

import ctypes
import time

import torch
from gpulab_attempt import mark

REST = 0.3  # seconds in which nothing comes and goes, long enough to be looked at from outside
M_MMAP_THRESHOLD, SMALL = -3, 16 << 10  # as in malloc.h; bytes


def validate_then_train(script, seed, count, rows):
    """The history of `count` batches, and whether the model trains afterwards."""
    limit_gpu_memory()
    return_memory_at_once()
    history, model = validate(script, seed, marked_batches(script, seed, count, rows))
    before = [weight.detach().clone() for weight in model.parameters()]
    mark("validated")
    training = model.training
    problem = None
    try:
        script.train_epoch(model, batches(script, seed, 2, rows))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        problem = f"{type(error).__name__}: {error}"[:300]
    after = [weight.detach() for weight in model.parameters()]
    trained = sum(bool((old != new).any()) for old, new in zip(before, after))
    return {
        "history": history,
        "training": training,
        "problem": problem,
        "trained": trained,
        "parameters": len(after),
    }


def right_history(script, seed, count, rows):
    """The history alone, as the reference has it."""
    return validate(script, seed, batches(script, seed, count, rows))[0]


def validate(script, seed, batches):
    """The history of a fresh model, and the model."""
    torch.set_num_threads(1)  # small operators: threads that wait for each other only heat a core
    torch.manual_seed(seed)
    model = script.build_model()
    return script.validate(model, batches), model


def limit_gpu_memory():
    """Give the attempt the share of the card that the brief tells of, whatever it wished for."""
    if torch.cuda.is_available():
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, (1 << 30) / total))


def return_memory_at_once():
    """Give all but the smallest tensors pages of their own, which go back to the system with them.

    By default glibc raises the size from which it does so as it goes along; its heap, where the
    tensors then lie, grows and shrinks in steps of their size, whatever is kept.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not in every C library
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, SMALL)


def batches(script, seed, count, rows):
    """Yield fresh batches, on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        readings = torch.randn(rows, script.READINGS, generator=generator)
        yield readings, readings[:, :1].cos()


def marked_batches(script, seed, count, rows):
    """The same, each one marked; from the half on, every fourth one comes after a rest.

    A rest's mark tells torch's own count of the GPU memory in use.
    """
    for number, batch in enumerate(batches(script, seed, count, rows)):
        if number >= count // 2 and number % 4 == 0:
            mark(f"rest {torch.cuda.memory_allocated() if torch.cuda.is_available() else 0}")
            time.sleep(REST)
        mark("batch")
        yield batch
