"""What the rehearsal device cannot show, refused by name and at once."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, Callable, NoReturn

import torch

from .hook import after_import
from .settings import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_ON_A_GPU = "run this on a GPU"
_WALL_CLOCK = "time nothing here; a rehearsal computes on the CPU"
_NO_GAUGE = "there is no GPU to measure; run this on one"

# Functions and methods: where they are, what is refused, what to do instead.
_REFUSED = (
    ("torch.cuda", "Event.elapsed_time", "timing with CUDA events", _WALL_CLOCK),
    ("torch.cuda", "_sleep", "torch.cuda._sleep", _WALL_CLOCK),
    ("torch.cuda.graphs", "CUDAGraph.capture_begin", "capturing a CUDA graph", _ON_A_GPU),
    ("torch.cuda.graphs", "graph.__enter__", "capturing a CUDA graph", _ON_A_GPU),
    ("torch.cuda.graphs", "make_graphed_callables", "capturing a CUDA graph", _ON_A_GPU),
    ("torch.cuda", "make_graphed_callables", "capturing a CUDA graph", _ON_A_GPU),
    ("torch.cuda.jiterator", "_JittedFunction.__call__", "compiling a CUDA kernel", _ON_A_GPU),
    ("torch.cuda", "_compile_kernel", "compiling a CUDA kernel", _ON_A_GPU),
    ("torch.cuda", "utilization", "the GPU's utilization", _NO_GAUGE),
    ("torch.cuda", "memory_usage", "the GPU's memory utilization", _NO_GAUGE),
    ("torch.cuda", "temperature", "the GPU's temperature", _NO_GAUGE),
    ("torch.cuda", "power_draw", "the GPU's power draw", _NO_GAUGE),
    ("torch.cuda", "clock_rate", "the GPU's clock rate", _NO_GAUGE),
    ("torch.cuda", "device_memory_used", "the memory that the GPU reports", _NO_GAUGE),
    ("torch.cuda", "list_gpu_processes", "the GPU's list of processes", _NO_GAUGE),
    (
        "torch",
        "UntypedStorage._share_cuda_",
        "a CUDA tensor sent to another process",
        "send CPU tensors and move them to the device in the process that uses them",
    ),
)


def install() -> None:
    """Put the refusals in place, now or when their module is imported."""
    for module, name, what, instead in _REFUSED:
        _replace(module, name, _refuse(what, instead))
    after_import("torch.utils.data._utils.fetch", _guard_workers)
    after_import("multiprocessing.queues", _guard_queues)
    after_import("torch.distributed.distributed_c10d", _guard_nccl)
    after_import("torch.autograd.profiler", _guard_profiler)
    after_import("torch._inductor.compile_fx", _guard_inductor)
    after_import("triton.runtime.jit", _guard_triton)


def _refuse(what: str, instead: str) -> Callable[..., NoReturn]:
    def refused(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise refusal(what, instead)

    return refused


def _replace(module: str, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function or method; a torch that lacks it has nothing to refuse."""
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for step in path:
        owner = getattr(owner, step)
    if hasattr(owner, last):
        setattr(owner, last, replacement)


def _cuda_tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the CUDA tensors in nested containers."""
    if isinstance(value, torch.Tensor):
        if value.is_cuda:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _cuda_tensors(item)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _cuda_tensors(item)


def _refuse_cuda_tensors(value: Any, sender: str) -> None:
    if any(True for _ in _cuda_tensors(value)):
        raise refusal(
            f"a CUDA tensor sent to another process by {sender}",
            "send CPU tensors and move them to the device in the process that uses them",
        )


def _guard_workers(fetch: ModuleType) -> None:
    """Look at a worker's batch where its errors reach the loader; later, they would be lost."""
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):  # noqa: SLF001
        original = fetcher.fetch

        def guarded(self: Any, index: Any, *, _original: Any = original) -> Any:
            batch = _original(self, index)
            if torch.utils.data.get_worker_info() is not None:
                _refuse_cuda_tensors(batch, "a DataLoader worker")
            return batch

        fetcher.fetch = functools.wraps(original)(guarded)


def _guard_queues(queues: ModuleType) -> None:
    """Look at what is put on a queue: the queue's own thread would lose the error."""
    original = queues.Queue.put

    @functools.wraps(original)
    def put(self: Any, obj: Any, *args: Any, **kwargs: Any) -> None:
        _refuse_cuda_tensors(obj, "a queue")
        original(self, obj, *args, **kwargs)

    queues.Queue.put = put


def _guard_nccl(distributed: ModuleType) -> None:
    refused = _refuse("the NCCL backend", "use the gloo backend, or run this on GPUs")
    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        process_group = getattr(distributed, name, None)
        if process_group is not None:
            process_group.__init__ = refused


def _guard_profiler(profiler: ModuleType) -> None:
    original = profiler.profile.__init__

    @functools.wraps(original)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("use_device") == "cuda":
            raise refusal(
                "profiling CUDA activity",
                "pass activities=[torch.profiler.ProfilerActivity.CPU], or run this on a GPU",
            )
        original(self, *args, **kwargs)

    profiler.profile.__init__ = guarded


def _guard_inductor(compile_fx: ModuleType) -> None:
    """Refuse to compile for the device. The error passes through torch's compiler unchanged."""
    from torch._dynamo.exc import ShortenTraceback  # noqa: PLC0415 - slow, and imported by now

    error = refusal(
        "torch.compile with the inductor backend",
        "compile with backend='aot_eager' or not at all, or run this on a GPU",
    )

    class CompilationRefused(ShortenTraceback):  # type: ignore[misc] # torch is untyped here
        """The refusal, of a kind that torch does not wrap into another error."""

        def __str__(self) -> str:
            """Leave out the advice that torch appends."""
            return str(error)

    original = compile_fx.compile_fx

    @functools.wraps(original)
    def guarded(graph: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = [*example_inputs, *graph.parameters(), *graph.buffers()]
        if any(True for _ in _cuda_tensors(tensors)):
            raise CompilationRefused(str(error), first_useful_frame=None)
        return original(graph, example_inputs, *args, **kwargs)

    compile_fx.compile_fx = guarded


def _guard_triton(jit: ModuleType) -> None:
    jit.JITFunction.run = _refuse("a Triton kernel", _ON_A_GPU)
