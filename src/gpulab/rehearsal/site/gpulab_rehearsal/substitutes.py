"""CPU versions of operators that exist for CUDA alone. All take and return CPU tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tensor = torch.Tensor

_aten = torch.ops.aten


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return hidden state, cell state and the activated gates (batch x 4 hidden)."""
    gates = input_gates + hidden_gates
    if input_bias is not None and hidden_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new_cell = f * cell + i * g
    return o * new_cell.tanh(), new_cell, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    cell: Tensor,
    new_cell: Tensor,
    gates: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of the gates, of the cell state and of the bias."""
    i, f, g, o = gates.chunk(4, 1)
    squashed = new_cell.tanh()
    grad = torch.zeros_like(new_cell) if grad_cell is None else grad_cell
    grad_o = torch.zeros_like(o)
    if grad_hidden is not None:
        grad = grad + grad_hidden * o * (1 - squashed * squashed)
        grad_o = grad_hidden * squashed * o * (1 - o)
    grad_gates = torch.cat(
        [grad * g * i * (1 - i), grad * cell * f * (1 - f), grad * i * (1 - g * g), grad_o], 1
    )
    return grad_gates, grad * f, grad_gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the hidden state, and what the backward pass needs (batch x 5 hidden)."""
    if input_bias is not None and hidden_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    input_r, input_z, input_n = input_gates.chunk(3, 1)
    hidden_r, hidden_z, hidden_n = hidden_gates.chunk(3, 1)
    reset, update = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    new = (input_n + reset * hidden_n).tanh()
    saved = torch.cat([reset, update, new, hidden, hidden_n], 1)
    return new + update * (hidden - new), saved


def gru_cell_backward(
    grad: Tensor, saved: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of input gates, hidden gates, hidden state and both biases."""
    reset, update, new, hidden, hidden_n = saved.chunk(5, 1)
    grad_n = grad * (1 - update) * (1 - new * new)
    grad_z = grad * (hidden - new) * update * (1 - update)
    grad_r = grad_n * hidden_n * reset * (1 - reset)
    grad_input = torch.cat([grad_r, grad_z, grad_n], 1)
    grad_hidden = torch.cat([grad_r, grad_z, grad_n * reset], 1)
    biases = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return (grad_input, grad_hidden, grad * update, *biases)


def batch_norm(*args: Any) -> tuple[Tensor, ...]:
    """Batch norm as cuDNN returns it: with a reserve, which is empty here."""
    return (*_aten.native_batch_norm(*args), torch.empty(0, dtype=torch.uint8))


def batch_norm_backward(  # noqa: PLR0913, PLR0917 - the operator's own signature
    inputs: Tensor,
    grad: Tensor,
    weight: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor | None,
    inverse_deviation: Tensor | None,
    epsilon: float,
    _reserve: Tensor,
) -> tuple[Tensor, ...]:
    """Return the gradients of input, weight and bias."""
    saved = (running_mean, running_var, mean, inverse_deviation)
    result: tuple[Tensor, ...] = _aten.native_batch_norm_backward(
        grad, inputs, weight, *saved, True, epsilon, [True, True, True]
    )
    return result


def grid_sampler(inputs: Tensor, grid: Tensor) -> Tensor:
    """Bilinear, zero padding, aligned corners: the one mode that cuDNN has."""
    return _aten.grid_sampler_2d(inputs, grid, 0, 0, True)


def grid_sampler_backward(inputs: Tensor, grid: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of input and grid."""
    result: tuple[Tensor, Tensor] = _aten.grid_sampler_2d_backward(
        grad, inputs, grid, 0, 0, True, [True, True]
    )
    return result


def never(*_args: Any, **_kwargs: Any) -> bool:
    """Answer the question whether a vendor's library should compute something."""
    return False


def no_flat_weights(weights: Sequence[Tensor], *_args: Any, **_kwargs: Any) -> Tensor:
    """Leave a recurrent layer's weights where they are: only cuDNN wants them in one piece."""
    return weights[0].new_empty(0)


SUBSTITUTES: dict[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
    "cudnn_batch_norm": batch_norm,
    "cudnn_batch_norm_backward": batch_norm_backward,
    "cudnn_grid_sampler": grid_sampler,
    "cudnn_grid_sampler_backward": grid_sampler_backward,
    "cudnn_is_acceptable": never,
    "_use_cudnn_ctc_loss": never,
    "_use_cudnn_ctc_loss.Tensor": never,
    "_use_miopen_ctc_loss": never,
    "_use_miopen_ctc_loss.Tensor": never,
    "_cudnn_rnn_flatten_weight": no_flat_weights,
}
