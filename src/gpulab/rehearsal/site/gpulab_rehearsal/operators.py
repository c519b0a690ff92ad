"""One operator: lend the device's bytes, call the CPU's operator, bring the result home."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable

import torch

from . import generators, memory, runtime
from .settings import PREFIX, refusal
from .substitutes import SUBSTITUTES

Tensor = torch.Tensor
_lend = memory.lend
_to_device = memory.to_device
_require_device = memory.require_device
_deterministic = torch.are_deterministic_algorithms_enabled
_CPU = torch.device("cpu")
_KEYS = torch._C.DispatchKeySet  # noqa: SLF001 - kernels are called with a set of keys
_PLAIN = (int, float, bool, complex, str, type(None), torch.dtype, torch.layout)

# What torch's own CUDA kernel says when all its checks have passed and it asks for a GPU.
_WANTS_GPU = (
    f"{PREFIX} kernel",
    "CUBLAS_STATUS",
    "CUDNN_STATUS",
    "cusparse",
    "cusolver",
    "CUSOLVER",
    "CUFFT",
    "cuFFT",
    "operation not supported",
    "CUDA driver",
    "NVRTC",
    "MAGMA",
)
# What CPU kernels say where CUDA's stop with a device-side assertion.
_ASSERTED = ("out of bounds", "out of range", "should be between 0 and 1", "probability tensor")


class Operator:
    """An operator of torch's, registered for CUDA in place of torch's own kernel.

    Args:
        name: Without namespace, with overload: `add.Tensor`.
        own: Torch's own CUDA kernel, asked only for its checks and their texts.
    """

    def __init__(self, name: str, own: Any) -> None:
        self.name = name
        self.own = own
        self.cpu: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute one call, whose CUDA tensors stay where they are."""
        _require_device()
        if self.cpu is None:
            self._resolve()
        if kwargs or self.careful:
            return self._general(args, kwargs)
        # The quick way, for nearly all calls: positional tensors and numbers.
        owners = []
        lent: list[Any] = []
        on_host = False
        for value in args:
            if isinstance(value, Tensor):
                if value.is_cuda:
                    owners.append(value)
                    value = _lend(value)  # noqa: PLW2901
                else:
                    on_host = True
            elif not isinstance(value, _PLAIN):
                return self._general(args, kwargs)
            lent.append(value)
        if on_host or _deterministic():
            self._consult(args, kwargs)
        if self.wraps_numbers:
            self._wrap_numbers(lent)
        result = self._compute(lent, {}, args, kwargs)
        if self.in_place:
            return args[0]
        return _bring_home(result, owners)

    def _resolve(self) -> None:
        """Read the schema, at the first call: most operators are never called."""
        base, _, overload = self.name.partition(".")
        self.overload = getattr(getattr(torch.ops.aten, base), overload or "default")
        schema = self.overload._schema  # noqa: SLF001 - where torch keeps it
        self.names = [argument.name for argument in schema.arguments]
        self.is_tensor = [str(argument.type) == "Tensor" for argument in schema.arguments]
        self.written = {a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write}
        self.outs = {a.name for a in schema.arguments if a.kwarg_only and a.name in self.written}
        self.returns_written = bool(schema.returns) and all(
            r.alias_info and r.alias_info.is_write for r in schema.returns
        )
        self.in_place = self.returns_written and self.names[0] in self.written
        self.takes_generator = "generator" in self.names
        self.draws = torch.Tag.nondeterministic_seeded in self.overload.tags
        numbers_pass = torch._C._should_allow_numbers_as_tensors(base)  # noqa: SLF001 - no public way
        self.wraps_numbers = not numbers_pass
        self.careful = self.draws or bool(self.outs)
        self.cpu = SUBSTITUTES.get(self.name) or self.overload._op  # noqa: SLF001 - skips a layer

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        loan = _Loan()
        lent = [loan.convert(value) for value in args]
        lent_kwargs = {
            name: loan.convert_out(value) if name in self.outs else loan.convert(value)
            for name, value in kwargs.items()
            if name != "pin_memory"
        }
        if self.wraps_numbers:
            self._wrap_numbers(lent)
        if (loan.on_host and loan.owners) or _deterministic():
            self._consult(args, kwargs)
        with self._randomness(lent, lent_kwargs, drawn=loan.drew):
            result = self._compute(lent, lent_kwargs, args, kwargs)
        loan.settle()
        if self.returns_written:
            return self._written(args, kwargs)
        return _bring_home(result, loan.owners)

    def _wrap_numbers(self, lent: list[Any]) -> None:
        """Make tensors of numbers: wrapped numbers reach Python as plain ones."""
        for index, value in enumerate(lent):
            if self.is_tensor[index] and isinstance(value, (int, float, complex)):
                lent[index] = torch.tensor(value)

    def _written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the tensors that were written, as the schema promises."""
        given = {**dict(zip(self.names, args)), **kwargs}  # noqa: B905 - Python 3.9
        written = [given[name] for name in self.names if name in self.written]
        return written[0] if len(written) == 1 else tuple(written)

    def _randomness(
        self, lent: list[Any], lent_kwargs: dict[str, Any], *, drawn: bool
    ) -> contextlib.AbstractContextManager[None]:
        """Draw from CUDA's default generator, unless the call brought one."""
        if not self.draws or drawn:
            return contextlib.nullcontext()
        if not self.takes_generator:
            return generators.default_generator_seeded()
        position = self.names.index("generator")
        if position < len(lent):
            lent[position] = generators.cpu_generator()
        else:
            lent_kwargs["generator"] = generators.cpu_generator()
        return contextlib.nullcontext()

    def _compute(
        self,
        lent: list[Any],
        lent_kwargs: dict[str, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call the CPU's operator; where it complains, CUDA's own complaint goes first."""
        assert self.cpu is not None  # noqa: S101 - resolved by the caller
        try:
            return self.cpu(*lent, **lent_kwargs)
        except (RuntimeError, IndexError, ValueError) as error:
            self._consult(args, kwargs)
            if any(mark in str(error) for mark in _ASSERTED) and self.own is not None:
                self._fail_assertion(error)
            if not isinstance(error, NotImplementedError):
                raise
        return self._decompose(lent, lent_kwargs)

    def _decompose(self, lent: list[Any], lent_kwargs: dict[str, Any]) -> Any:
        """Compute by torch's own decomposition what the CPU has no kernel for."""
        from torch._decomp import decomposition_table  # noqa: PLC0415 - slow, rarely needed

        decomposition = decomposition_table.get(self.overload)
        if decomposition is not None:
            with contextlib.suppress(NotImplementedError):
                return decomposition(*lent, **lent_kwargs)
        raise refusal(
            f"aten::{self.name}, which has no CPU kernel for these inputs,",
            "use another operator or dtype, or run this on a GPU",
        )

    def _consult(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let torch's own CUDA kernel object in its own words; it gets no further than that."""
        if self.own is None:
            return
        try:
            self.own.call_boxed(_KEYS(torch._C.DispatchKey.CUDA), *args, **kwargs)  # noqa: SLF001
        except (RuntimeError, IndexError, ValueError) as error:
            if not any(mark in str(error) for mark in _WANTS_GPU):
                raise

    def _fail_assertion(self, error: Exception) -> None:
        """Do as CUDA does: say it on stderr, and fail this call and every later one."""
        print(f"rehearsal: assertion in aten::{self.name} failed: {error}", file=sys.stderr)
        runtime.stub().rehearsal_break(runtime.DEVICE_ASSERT)
        _require_device()


class _Loan:
    """The tensors of one call that are lent to the CPU's operator."""

    def __init__(self) -> None:
        self.owners: list[Tensor] = []
        self.outs: list[tuple[Tensor, Tensor]] = []
        self.on_host = False
        self.drew = False

    def convert(self, value: Any) -> Any:
        """Return a value as the CPU's operator takes it."""
        if isinstance(value, Tensor):
            if not value.is_cuda:
                self.on_host = True
                return value
            self.owners.append(value)
            return _lend(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.convert(item) for item in value])
        if isinstance(value, torch.Generator):
            self.on_host |= value.device.type == "cpu"  # torch will object
            self.drew = True
            return generators.cpu_generator(value) if value.device.type == "cuda" else value
        return _CPU if isinstance(value, torch.device) else value

    def convert_out(self, value: Any) -> Any:
        """Return a private tensor for an `out=` argument, which the operator may resize."""
        if isinstance(value, (list, tuple)):
            return [self.convert_out(item) for item in value]
        if not isinstance(value, Tensor) or not value.is_cuda:
            return self.convert(value)
        self.owners.append(value)
        private = (
            _lend(value).clone() if value.numel() else torch.empty(value.shape, dtype=value.dtype)
        )
        self.outs.append((value, private))
        return private

    def settle(self) -> None:
        """Bring what was written to private tensors home."""
        for owner, private in self.outs:
            if owner.shape == private.shape:
                _lend(owner).copy_(private)
            else:
                owner.set_(_to_device(private))


def _bring_home(result: Any, owners: list[Tensor]) -> Any:
    """Return a CPU result as CUDA tensors; what shares lent bytes shares their owner's storage."""
    if isinstance(result, Tensor):
        if result.layout is not torch.strided or not memory.is_lent(result):
            return _to_device(result)
        for owner in owners:
            if memory.owns(owner, result):
                return memory.view_of(owner, result)
        return _to_device(result.clone())
    if isinstance(result, (list, tuple)):
        return type(result)([_bring_home(item, owners) for item in result])
    return result
