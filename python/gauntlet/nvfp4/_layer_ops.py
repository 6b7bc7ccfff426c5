"""Layers as PyTorch operators whose weights are the tensors of a checkpoint: ``torch.ops.gauntlet.linear`` and ``moe``.

A weight comes as values, block scales and tensor scale, as `nvfp4.modules.PackedWeights` keeps them. An operator prepares
it at the first call, as `nvfp4.Weights` does, and again once one of the tensors was changed in place, moved or replaced. The last
argument of an operator names the type of tokens that all of its weights were repacked for by `nvfp4.repack`.
Importing this module imports torch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

from gauntlet.nvfp4 import _layers
from gauntlet.nvfp4._products import Weights, repacked
from gauntlet.nvfp4._tensor import Tensor
from gauntlet.nvfp4.torch_ops import define


class _Prepared(NamedTuple):
    """Weights, and the tensors with their contents at the time they were prepared from."""

    scales: torch.Tensor
    tensor_scale: torch.Tensor
    contents: tuple[tuple[int, int | None], ...]
    tokens: str | None
    weights: Weights


_prepared: Any = WeakIdKeyDictionary()
"""By the tensor of values. An entry goes with that tensor, so it may not hold it."""


def prepared(
    values: torch.Tensor, scales: torch.Tensor, tensor_scale: torch.Tensor, tokens: str | None = None
) -> Weights:
    """The weights of these tensors: on the CPU a copy for its kernels, on a GPU rows of a length that its kernels take.

    Args:
        values: ``[n, k / 2]`` or ``[groups, n, k / 2]``, uint8.
        scales: ``[n, k / 16]`` or ``[groups, n, k / 16]``, float8_e4m3fn or uint8.
        tensor_scale: One number, or ``[groups]``, float32. It is read when the weights are prepared: on a GPU that waits
            for the device, so a layer is called once before it is captured in a graph.
        tokens: The type of tokens for which values and scales were repacked; they are then used as they are.

    Raises:
        As `nvfp4.Tensor` and `nvfp4.Weights`.
        ValueError: They were repacked, and are not on a GPU.
    """
    contents = tuple(_contents(tensor) for tensor in (values, scales, tensor_scale))
    found: _Prepared | None = _prepared.get(values)
    if (
        found is not None
        and found.scales is scales
        and found.tensor_scale is tensor_scale
        and found.contents == contents
        and found.tokens == tokens
    ):
        return found.weights
    # On a GPU the prepared weights may be the tensor itself: `detach` makes another object of the same memory.
    tensor = Tensor(values.detach(), scales.detach(), tuple(tensor_scale.reshape(-1).tolist()))
    weights = Weights(tensor) if tokens is None else repacked(tensor, tokens)
    _prepared[values] = _Prepared(scales, tensor_scale, contents, tokens, weights)
    return weights


def _contents(tensor: torch.Tensor) -> tuple[int, int | None]:
    """Where a tensor lies, and the number of changes in place, which PyTorch does not count in inference mode."""
    return tensor.data_ptr(), None if tensor.is_inference() else tensor._version


def _linear(
    x: torch.Tensor,
    values: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor,
    bias: torch.Tensor | None,
    tokens: str | None = None,
) -> torch.Tensor:
    result: torch.Tensor = _layers.linear(x.contiguous(), prepared(values, scales, tensor_scale, tokens), bias)
    return result


def _fake_linear(x: torch.Tensor, values: torch.Tensor, *others: Any) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], values.shape[0]))


def _moe(
    hidden: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    gate_values: torch.Tensor,
    gate_scales: torch.Tensor,
    gate_tensor_scale: torch.Tensor,
    up_values: torch.Tensor,
    up_scales: torch.Tensor,
    up_tensor_scale: torch.Tensor,
    down_values: torch.Tensor,
    down_scales: torch.Tensor,
    down_tensor_scale: torch.Tensor,
    tokens: str | None = None,
) -> torch.Tensor:
    result: torch.Tensor = _layers.moe(
        hidden.contiguous(),
        topk_ids.contiguous(),
        topk_weights.contiguous(),
        prepared(gate_values, gate_scales, gate_tensor_scale, tokens),
        prepared(up_values, up_scales, up_tensor_scale, tokens),
        prepared(down_values, down_scales, down_tensor_scale, tokens),
    )
    return result


def _fake_moe(hidden: torch.Tensor, *others: Any) -> torch.Tensor:
    return hidden.new_empty(hidden.shape)


def _weights(*names: str) -> str:
    """The arguments of weights whose names begin so."""
    return ", ".join(f"Tensor {own}values, Tensor {own}scales, Tensor {own}tensor_scale" for own in names)


_TOKENS = "str? tokens=None"

define("linear", f"Tensor x, {_weights('')}, Tensor? bias, {_TOKENS}", _linear, _fake_linear)
define(
    "moe",
    f"Tensor hidden, Tensor topk_ids, Tensor topk_weights, {_weights('gate_', 'up_', 'down_')}, {_TOKENS}",
    _moe,
    _fake_moe,
)
