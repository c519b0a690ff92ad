"""Behaviour that scripts meet: torch's rules and texts, allocator, streams, random numbers, forks.

A case is a function that raises AssertionError where the device does not behave as expected. Every
group runs in a process of its own. `refusals` are the rehearsal's alone: a GPU does not refuse.
"""

import gc
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpulab.rehearsal.conformance.finding import Finding, one_line
from gpulab.rehearsal.site.gpulab_rehearsal.settings import PREFIX

Case = Callable[[], None]
GROUPS: dict[str, dict[str, Case]] = {}

MIXED = r"Expected all tensors to be on the same device, but found at least two devices, cuda:0"
MIXED_ARGUMENT = (
    r"Expected all tensors to be on the same device, but got {name} is on {device}, "
    r"different from other tensors on .* \(when checking argument in method wrapper_CUDA"
)


def judge(group: str) -> Iterator[Finding]:
    """Judge the cases of a group, in order."""
    for name, case in GROUPS[group].items():
        gc.collect()
        try:
            case()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this case's
            yield Finding("cases", f"{group}: {name}", "wrong", one_line(error))
        else:
            yield Finding("cases", f"{group}: {name}", "values")


def _case(group: str, name: str) -> Callable[[Case], Case]:
    def register(case: Case) -> Case:
        GROUPS.setdefault(group, {})[name] = case
        return case

    return register


def _expect(condition: object, observed: object = "not so") -> None:
    if not condition:
        raise AssertionError(str(observed))


def _raises(call: Callable[[], Any], pattern: str, kind: type[Exception] = RuntimeError) -> None:
    """Require an error of a kind whose text begins with a pattern."""
    try:
        result = call()
    except kind as error:
        _expect(re.match(pattern, str(error)), one_line(error))
    else:
        raise AssertionError(f"no error, but {str(result)[:80]}")


# ---- torch's device checks, in torch's words


def _vectors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 8, device="cuda"), torch.randn(4, 8)


def _logits() -> torch.Tensor:
    return torch.randn(4, 3, device="cuda")


class _Scaled(nn.Module):  # type: ignore[misc] # torch is untyped here
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 3)
        self.scale = torch.ones(3)  # a plain attribute: .to() does not move it

    def forward(self, inputs: Any) -> Any:
        return self.linear(inputs) * self.scale


def _convolve(inputs_on: str, weights_on: str) -> Callable[[], Any]:
    return lambda: nn.Conv2d(1, 2, 3).to(weights_on)(torch.randn(1, 1, 5, 5, device=inputs_on))


def _embed(weights_on: str, tokens_on: str) -> Callable[[], Any]:
    return lambda: nn.Embedding(9, 4).to(weights_on)(torch.tensor([1, 2], device=tokens_on))


_WRONG_WEIGHT = (
    r"Input type \(torch.cuda.FloatTensor\) and weight type \(torch.FloatTensor\) should"
)
_WRONG_INDEX = (
    r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)"
)
_TEXTS: dict[str, tuple[Callable[[], Any], str]] = {
    "matmul, right side on the CPU": (
        lambda: _vectors()[0] @ torch.randn(8, 3),
        MIXED_ARGUMENT.format(name="mat2", device="cpu"),
    ),
    "matmul, right side on the device": (
        lambda: _vectors()[1] @ torch.randn(8, 3, device="cuda"),
        MIXED_ARGUMENT.format(name="mat2", device="cuda:0"),
    ),
    "sum of both": (lambda: _vectors()[0] + _vectors()[1], MIXED),
    "sum of both, in place": (lambda: _vectors()[1].add_(_vectors()[0]), MIXED),
    "model on the CPU, input on the device": (
        lambda: nn.Linear(8, 3)(_vectors()[0]),
        MIXED_ARGUMENT.format(name="mat1", device="cuda:0"),
    ),
    "model on the device, input on the CPU": (
        lambda: nn.Linear(8, 3).cuda()(_vectors()[1]),
        MIXED_ARGUMENT.format(name="mat1", device="cpu"),
    ),
    "tensor that is no buffer": (lambda: _Scaled().cuda()(_vectors()[0]), MIXED),
    "cross entropy, target on the CPU": (
        lambda: functional.cross_entropy(_logits(), torch.tensor([0, 1, 2, 0])),
        MIXED_ARGUMENT.format(name="target", device="cpu"),
    ),
    "mean squared error, target on the CPU": (
        lambda: functional.mse_loss(_logits(), torch.zeros(4, 3)),
        MIXED,
    ),
    "embedding, tokens on the CPU": (
        _embed("cuda", "cpu"),
        MIXED_ARGUMENT.format(name="index", device="cpu"),
    ),
    "embedding on the CPU": (
        _embed("cpu", "cuda"),
        MIXED_ARGUMENT.format(name="index", device="cuda:0"),
    ),
    "convolution, weight on the CPU": (_convolve("cuda", "cpu"), _WRONG_WEIGHT),
    "cat": (
        lambda: torch.cat(_vectors()),
        MIXED_ARGUMENT.format(name="tensors", device="cpu"),
    ),
    "where": (lambda: torch.where(_vectors()[0] > 0, *_vectors()), MIXED),
    "CPU tensor, index on the device": (
        lambda: _vectors()[1][torch.tensor([0, 1], device="cuda")],
        _WRONG_INDEX,
    ),
    "second device": (lambda: torch.ones(2).to("cuda:1"), "CUDA error: invalid device ordinal"),
    "shapes": (
        lambda: _vectors()[0] @ _vectors()[0],
        r"mat1 and mat2 shapes cannot be multiplied \(4x8 and 4x8\)",
    ),
    "dtypes": (
        lambda: _vectors()[0] @ torch.ones(8, 2, dtype=torch.float64, device="cuda"),
        r"expected m1 and m2 to have the same dtype|expected mat1 and mat2 to have the same dtype",
    ),
    "a fourth device made current": (
        lambda: torch.cuda.set_device(3),
        "CUDA error: invalid device ordinal",
    ),
}
for _name, (_call, _pattern) in _TEXTS.items():
    _case("texts", _name)(partial(_raises, _call, _pattern))


@_case("texts", "to numpy")
def _to_numpy() -> None:
    text = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu"
    _raises(_vectors()[0].numpy, text, TypeError)


@_case("texts", "what may be mixed")
def _allowed_mixtures() -> None:
    on_device, on_cpu = _vectors()
    for result in (
        on_device + torch.tensor(2.0),
        torch.tensor(2.0) * on_device,
        on_device[torch.tensor([0, 1])],
        on_device[on_cpu > 0],
    ):
        _expect(result.is_cuda, result.device)


@_case("texts", "deterministic algorithms")
def _deterministic() -> None:
    weights = torch.ones(3, requires_grad=True, device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        _raises(
            lambda: torch.histc(weights.detach(), 3),
            "_histc_cuda (with floating point input )?does not have a deterministic",
        )
    finally:
        torch.use_deterministic_algorithms(False)


# ---- the allocator


@_case("memory", "counted and given back")
def _counted() -> None:
    before = torch.cuda.memory_allocated()
    block = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    _expect(torch.cuda.memory_allocated() - before == 3 << 20, torch.cuda.memory_allocated())
    del block
    _expect(torch.cuda.memory_allocated() == before, torch.cuda.memory_allocated())


@_case("memory", "cache")
def _cache() -> None:
    block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    del block
    cached = torch.cuda.memory_reserved()
    free = torch.cuda.mem_get_info()[0]
    torch.cuda.empty_cache()
    _expect(torch.cuda.memory_reserved() <= cached - (64 << 20), torch.cuda.memory_reserved())
    _expect(torch.cuda.mem_get_info()[0] >= free + (64 << 20), torch.cuda.mem_get_info())


@_case("memory", "peak")
def _peak() -> None:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.ones(4 << 20, dtype=torch.uint8, device="cuda").add(1).add(1)
    peak = torch.cuda.max_memory_allocated() - before
    _expect(peak == 8 << 20, peak)


_OUT_OF_MEMORY = (
    r"CUDA out of memory\. Tried to allocate [\d.]+ GiB\. GPU 0 has a total capacity of [\d.]+ \w+ "
    r"of which [\d.]+ \w+ is free\. [\s\S]*reserved by PyTorch but unallocated\. If reserved but "
    r"unallocated memory is large try setting PYTORCH_"
)


@_case("memory", "out of memory")
def _out_of_memory() -> None:
    more = 2 * torch.cuda.get_device_properties(0).total_memory + (1 << 30)
    _raises(
        lambda: torch.empty(more, dtype=torch.uint8, device="cuda"),
        _OUT_OF_MEMORY,
        torch.cuda.OutOfMemoryError,
    )
    _expect(torch.ones(2, device="cuda").tolist() == [1, 1])


@_case("memory", "graphs kept by their losses")
def _leak() -> None:
    """Hold three graphs' worth: every kept loss keeps its activations."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
    inputs = torch.randn(256, 64, device="cuda")
    model(inputs).sum().item()  # what is allocated once, a library's workspace included
    before = torch.cuda.memory_allocated()
    kept = []
    grown = []
    for _ in range(3):
        kept.append(model(inputs).pow(2).mean())
        grown.append(torch.cuda.memory_allocated() - before)
    steps = {second - first for first, second in pairwise(grown)}
    _expect(len(steps) == 1 and min(steps) > 256 * 64 * 4, grown)
    kept.clear()
    _expect(torch.cuda.memory_allocated() == before, torch.cuda.memory_allocated() - before)


@_case("memory", "fraction")
def _fraction() -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.25)
    try:
        _raises(
            lambda: torch.empty(total // 2, dtype=torch.uint8, device="cuda"),
            "CUDA out of memory",
            torch.cuda.OutOfMemoryError,
        )
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@_case("memory", "summary and snapshot")
def _summary() -> None:
    block = torch.empty(1 << 20, device="cuda")
    _expect("CUDA OOMs" in torch.cuda.memory_summary())
    _expect(torch.cuda.memory_snapshot())
    _expect(block.untyped_storage().nbytes() == 4 << 20)


# ---- streams, events, pinned memory


@_case("streams", "work on a side stream")
def _side_stream() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        result = torch.ones(4, device="cuda") * 2
        done = stream.record_event()
    torch.cuda.current_stream().wait_event(done)
    result.record_stream(torch.cuda.current_stream())
    done.synchronize()
    _expect(done.query() and stream.query())
    _expect(result.tolist() == [2.0] * 4, result)


@_case("streams", "priorities")
def _priorities() -> None:
    _expect(torch.cuda.Stream(priority=-1).priority == -1)
    _expect(torch.cuda.Stream() != torch.cuda.current_stream())


@_case("streams", "pinned memory")
def _pinned() -> None:
    pinned = torch.arange(6.0).pin_memory()
    _expect(pinned.is_pinned() and not torch.arange(6.0).is_pinned())
    moved = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    _expect(torch.equal(moved.cpu(), pinned), moved)


@_case("streams", "copy to the host that does not wait")
def _late_copy() -> None:
    target = torch.empty(4, pin_memory=True)
    target.copy_(torch.full((4,), 3.0, device="cuda"), non_blocking=True)
    torch.cuda.synchronize()
    _expect(target.tolist() == [3.0] * 4, target)


@_case("streams", "loader that pins")
def _pinning_loader() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(16, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    batches = [batch for (batch,) in loader]
    _expect(all(batch.is_pinned() for batch in batches))
    _expect(torch.equal(torch.cat([b.cuda(non_blocking=True) for b in batches]).cpu(), data[:][0]))


# ---- random numbers


@_case("random", "seeds")
def _seeds() -> None:
    torch.manual_seed(0)
    first = torch.randn(8, device="cuda")
    second = torch.randn(8, device="cuda")
    torch.cuda.manual_seed(0)
    _expect(torch.equal(first, torch.randn(8, device="cuda")))
    _expect(not torch.equal(first, second))


@_case("random", "state")
def _state() -> None:
    state = torch.cuda.get_rng_state()
    first = functional.dropout(torch.ones(64, device="cuda"))
    torch.cuda.set_rng_state(state)
    _expect(torch.equal(first, functional.dropout(torch.ones(64, device="cuda"))))


@_case("random", "generators")
def _generators() -> None:
    generator = torch.Generator("cuda").manual_seed(5)
    first = torch.rand(8, device="cuda", generator=generator)
    generator.manual_seed(5)
    _expect(torch.equal(first, torch.rand(8, device="cuda", generator=generator)))
    _raises(
        lambda: torch.rand(8, device="cuda", generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    )


@_case("random", "the CPU's numbers are its own")
def _cpu_untouched() -> None:
    torch.manual_seed(0)
    expected = torch.rand(4)
    torch.manual_seed(0)
    functional.dropout(torch.ones(8, device="cuda"))
    torch.rand(8, device="cuda")
    _expect(torch.equal(torch.rand(4), expected))


# ---- processes


class _Indices(torch.utils.data.Dataset):  # type: ignore[misc] # as above
    """Makes its items on the device, or on the CPU."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return (torch.ones(2) * index).to("cuda").to(self.device)


def _first_batch(device: str, context: str) -> Any:
    loader = torch.utils.data.DataLoader(
        _Indices(device), batch_size=4, num_workers=1, multiprocessing_context=context
    )
    return next(iter(loader))


@_case("processes", "fork after use")
def _fork() -> None:
    torch.ones(1, device="cuda")
    _raises(lambda: _first_batch("cpu", "fork"), r"[\s\S]*Cannot re-initialize CUDA in forked sub")


@_case("processes", "fork after use, seen from the child")
def _fork_directly() -> None:
    held = torch.ones(1, device="cuda")
    child = os.fork()
    if child == 0:
        try:
            held.add(1)
        except RuntimeError as error:
            os._exit(0 if "initialization error" in str(error) else 1)
        os._exit(1)
    _expect(os.waitpid(child, 0)[1] == 0)


@_case("processes", "spawned workers use the device")
def _spawn() -> None:
    batch = _first_batch("cpu", "spawn")
    _expect(batch[:, 0].tolist() == [0, 1, 2, 3], batch)


# ---- mixed precision, checkpoints


@_case("precision", "autocast")
def _autocast() -> None:
    layer = nn.Linear(8, 3).cuda()
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype=dtype):
            result = layer(torch.ones(2, 8, device="cuda"))
            _expect(result.dtype == dtype, result.dtype)
            _expect(result.float().pow(2).mean().dtype == torch.float32)


def _scaled_step(init_scale: float) -> tuple[bool, float]:
    """Return whether the weights moved, and the scale after one step."""
    layer = nn.Linear(8, 3).cuda()
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=init_scale)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = layer(torch.ones(2, 8, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return not torch.equal(before, layer.weight), scaler.get_scale()


@_case("precision", "gradient scaler")
def _scaler() -> None:
    _expect(_scaled_step(1024.0) == (True, 1024.0), _scaled_step(1024.0))
    overflowing = 1e30
    moved, scale = _scaled_step(overflowing)
    _expect(not moved and scale < overflowing, (moved, scale))


@_case("precision", "sparse gradients of an embedding")
def _sparse_gradient() -> None:
    table = nn.Embedding(10, 4, sparse=True).cuda()
    before = table.weight.detach().clone()
    table(torch.tensor([1, 1, 3], device="cuda")).sum().backward()
    torch.optim.SGD(table.parameters(), 0.5).step()
    moved = (before - table.weight).sum(1).tolist()
    _expect([round(step, 4) for step in moved[:4]] == [0.0, 4.0, 0.0, 2.0], moved)


# ---- assertions of kernels. These end the use of the device: one group each.


@_case("assertion", "index out of range")
def _assertion() -> None:
    table = nn.Embedding(4, 2).cuda()

    def look_up() -> None:
        table(torch.tensor([7], device="cuda"))
        torch.cuda.synchronize()

    _raises(look_up, "CUDA error: device-side assert triggered")
    _raises(lambda: torch.ones(1, device="cuda") + 1, "CUDA error: device-side assert triggered")


# ---- what the rehearsal refuses


def _capture() -> None:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass


def _time_events() -> Any:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def _profile() -> None:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):
        torch.ones(1, device="cuda")


def _send() -> None:
    torch.multiprocessing.get_context("spawn").Queue().put([torch.ones(1, device="cuda")])


def _nccl() -> None:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)


_REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "timing with events": (_time_events, "timing with CUDA events"),
    "graph capture": (_capture, "capturing a CUDA graph"),
    "profiling": (_profile, "profiling CUDA activity"),
    "inductor": (
        lambda: torch.compile(lambda x: x.sin() * 2)(torch.ones(4, device="cuda")),
        "torch.compile with the inductor backend",
    ),
    "NCCL": (_nccl, "the NCCL backend"),
    "tensor on a queue": (_send, "a CUDA tensor sent to another process"),
    "tensor from a spawned worker": (
        lambda: _first_batch("cuda", "spawn"),
        "a CUDA tensor sent to another process by a DataLoader worker",
    ),
    "utilization": (torch.cuda.utilization, "the GPU's utilization"),
    "sparse kernels": (
        lambda: torch.sparse.mm(torch.eye(3).to_sparse().cuda(), torch.ones(3, 2, device="cuda")),
        "aten::addmm on Sparse tensors",
    ),
}
for _name, (_call, _pattern) in _REFUSALS.items():
    _anywhere = rf"[\s\S]*{re.escape(PREFIX)} {re.escape(_pattern)}"
    _case("refusals", _name)(partial(_raises, _call, _anywhere))
