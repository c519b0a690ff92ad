"""Validate on fresh batches that come one by one, then train."""

# Plain Python 3.9, like the code it runs beside.

import time

import torch
from gpulab_attempt import mark

REST = 0.3  # seconds in which nothing comes and goes, long enough to be looked at from outside


def validate_then_train(script, seed, count, rows):
    """The history of `count` batches, and whether the model trains afterwards."""
    limit_gpu_memory()
    torch.manual_seed(seed)
    model = script.build_model()
    history = script.validate(model, marked_batches(script, seed, count, rows))
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


def limit_gpu_memory():
    """Give the attempt the share of the card that the brief tells of, whatever it wished for."""
    if torch.cuda.is_available():
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, (1 << 30) / total))


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
