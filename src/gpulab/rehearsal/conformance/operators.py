"""Torch's own operator database: every operator on the device against the same operator on the CPU."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

from gpulab.rehearsal.conformance.finding import Finding, one_line
from gpulab.rehearsal.site.gpulab_rehearsal.settings import PREFIX

SAMPLES = 4
SECONDS = 60

# Their memory is whatever was there before; growing by resizing is the same.
_UNINITIALISED = ("empty", "new_empty", "resize_", "resize_as_")


class SlowError(Exception):
    """One operator took longer than SECONDS."""


def names() -> list[str]:
    """Return the operators' names, variants included, in the database's order."""
    return [".".join(filter(None, [op.name, op.variant_test_name])) for op in op_db]


def judge(index: int) -> Finding:
    """Judge the operator at this place of the database."""
    op, name = op_db[index], names()[index]
    try:
        with _time_limit():
            outcomes = [_judge_sample(op, sample) for sample in _samples(op)]
    except SlowError:
        return Finding("operators", name, "crash", f"no answer within {SECONDS} s")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this operator's
        outcome = "refused" if str(error).startswith(PREFIX) else "wrong"
        return Finding("operators", name, outcome, one_line(error))
    for outcome in ("values", "random"):
        if outcome in outcomes:
            return Finding("operators", name, outcome)
    return Finding("operators", name, "none", "no sample that the CPU computes")


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_number: int, _frame: Any) -> None:
        raise SlowError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _samples(op: Any) -> list[Any]:
    """Return a few inputs on the CPU: float32, or another dtype where an operator has no float32."""
    dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
    gradients = op.supports_autograd and dtype.is_floating_point
    try:
        return list(islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES))
    except (RuntimeError, NotImplementedError):
        return []


def _judge_sample(op: Any, sample: Any) -> str:
    """Return `values`, `random` or `none`; raise what is wrong or refused."""
    on_cpu = (sample.input, sample.args, sample.kwargs)
    # Before the CPU's calls, some of which write to their input.
    on_device = _moved(on_cpu, "cuda")
    again = _moved(on_cpu, "cpu")
    call = _caller(op)
    try:
        expected = call(on_cpu, seed=0)
        repeated = call(again, seed=1)
    except SlowError:
        raise
    except Exception:  # noqa: BLE001 - not a valid sample for this build
        return "none"
    observed = call(on_device, seed=0)
    if op.name.startswith(_UNINITIALISED) or not _same(expected, repeated):
        _require_same_shapes(observed, expected)
        return "random"
    _require_close(observed, expected)
    if _has_gradient(on_cpu, expected):
        _judge_gradients(on_cpu, expected, on_device, observed)
    return "values"


def _caller(op: Any) -> Callable[..., Any]:
    def call(arguments: tuple[Any, Any, Any], *, seed: int) -> Any:
        torch.manual_seed(seed)
        first, rest, named = arguments
        return op(first, *rest, **named)

    return call


def _moved(arguments: tuple[Any, Any, Any], device: str) -> tuple[Any, Any, Any]:
    """Return copies on a device; devices among the arguments are replaced too."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            copy = value.detach().clone() if device == "cpu" else value.detach().to(device)
            return copy.requires_grad_(value.requires_grad)
        names_device = isinstance(value, str | torch.device) and str(value) == "cpu"
        return device if names_device else value

    moved: tuple[Any, Any, Any] = tree_map(move, arguments)
    return moved


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def _same(first: Any, second: Any) -> bool:
    try:
        _require_close(first, second)
    except AssertionError:
        return False
    return True


def _require_close(observed: Any, expected: Any) -> None:
    assert_close(tree_map(_to_cpu, observed), tree_map(_to_cpu, expected), equal_nan=True)


def _to_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _require_same_shapes(observed: Any, expected: Any) -> None:
    shapes = [
        [(tensor.shape, tensor.dtype) for tensor in _tensors(values)]
        for values in (observed, expected)
    ]
    assert shapes[0] == shapes[1], f"{shapes[0]} instead of {shapes[1]}"  # noqa: S101 - a judgement


def _differentiable(values: Any) -> list[torch.Tensor]:
    return [t for t in _tensors(values) if t.requires_grad and t.dtype.is_floating_point]


def _has_gradient(inputs: Any, outputs: Any) -> bool:
    return bool(_differentiable(inputs)) and bool(_differentiable(outputs))


def _gradients(inputs: Any, outputs: Any) -> list[torch.Tensor | None]:
    total = [output.sum() for output in _differentiable(outputs)]
    found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(
        total, _differentiable(inputs), allow_unused=True
    )
    return list(found)


def _judge_gradients(on_cpu: Any, expected: Any, on_device: Any, observed: Any) -> None:
    try:
        wanted = _gradients(on_cpu, expected)
    except (RuntimeError, NotImplementedError):
        return  # the CPU has none to compare with
    _require_close(_gradients(on_device, observed), wanted)
