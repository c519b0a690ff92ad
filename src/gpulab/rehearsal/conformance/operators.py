"""Torch's own operator database: every operator on the device against the same on the CPU."""

import contextlib
import re
import signal
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from gpulab.rehearsal.conformance.finding import Finding, one_line
from gpulab.rehearsal.site.gpulab_rehearsal.settings import PREFIX

SAMPLES = 4
SECONDS = 60

_SPLIT_BY_CPU_TENSORS = ("tensor_split",)  # its indices are on the CPU always

_NO_CUDA_KERNEL = re.compile(r"Could not run '.*' with arguments from the '\w*CUDA' backend")
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
        return Finding("operators", name, _outcome_of(error), one_line(error))
    for outcome in ("values", "random"):
        if outcome in outcomes:
            return Finding("operators", name, outcome)
    return Finding("operators", name, "none", "no sample that the CPU computes")


def _outcome_of(error: Exception) -> str:
    if PREFIX in str(error):
        return "refused"
    # What torch itself says of operators that it has for the CPU alone: so it does on a GPU.
    return "none" if _NO_CUDA_KERNEL.match(str(error)) else "wrong"


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
    """Return a few inputs on the CPU: float32, or another dtype for operators without it."""
    if not op.dtypes:
        return []  # not for the CPU
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
    on_device = _on_device(op, on_cpu)
    draws = Draws()
    try:
        with draws:
            expected = _call(op, on_cpu)
    except SlowError:
        raise
    except Exception:  # noqa: BLE001 - not a valid sample for this build
        return "none"
    observed = _call(op, on_device)
    by_definition = draws.seen or op.name.startswith(_UNINITIALISED)
    if by_definition and not _same(observed, expected):
        _require_same_shapes(observed, expected)
        return "random"
    _require_close(observed, expected)
    if _has_gradient(on_cpu, expected):
        _judge_gradients(on_cpu, expected, on_device, observed)
    return "values"


class Draws(TorchDispatchMode):  # type: ignore[misc] # torch is untyped here
    """Notices whether a call draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator as usual."""
        self.seen |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def _call(op: Any, arguments: tuple[Any, Any, Any]) -> Any:
    torch.manual_seed(0)
    first, rest, named = arguments
    return op(first, *rest, **named)


def _on_device(op: Any, arguments: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Return copies on the device; devices among the arguments are replaced too."""
    if op.name in _SPLIT_BY_CPU_TENSORS:
        first, *rest = arguments
        return (tree_map(_moved, first), *rest)
    moved: tuple[Any, Any, Any] = tree_map(_moved, arguments)
    return moved


def _moved(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        names_device = isinstance(value, str | torch.device) and str(value) == "cpu"
        return "cuda" if names_device else value
    return _copied(value.detach()).requires_grad_(value.requires_grad)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the device; that of a view has the whole storage behind it."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.to("cuda")
    storage = tensor.untyped_storage()
    if storage.nbytes() == tensor.nbytes:
        return tensor.to("cuda")
    whole = torch.empty(0, dtype=tensor.dtype).set_(storage).to("cuda")
    return whole.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


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
