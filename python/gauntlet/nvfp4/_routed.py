"""A mixture of experts whose routing stays on the device. Imports torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from gauntlet.nvfp4._activations import Activation
from gauntlet.nvfp4._products import grouped_mm, on_gpu, swiglu_grouped_mm


class Biases(NamedTuple):
    """What is added to the sums of each product: ``[experts, intermediate]`` twice, and ``[experts, hidden]``."""

    gate: torch.Tensor | None = None
    up: torch.Tensor | None = None
    down: torch.Tensor | None = None


def moe(
    hidden: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    gate: Any,
    up: Any,
    down: Any,
    expert_map: torch.Tensor | None,
    dtype: str,
    activation: Activation = Activation(),
    biases: Biases = Biases(),
) -> torch.Tensor:
    """`nvfp4.moe` by the grouped products; nothing here waits for the device. Everything fits.

    The steps around the products are kernels on a Hopper GPU, and PyTorch's operators elsewhere and for sizes that the kernels do
    not take. Both add up in the same order. Rows of experts that are elsewhere, and of ids that stand for no expert, come behind all
    others or nowhere. The products leave them undefined, and they add nothing.
    """
    experts = gate.shape[0]
    result_dtype = getattr(torch, dtype)
    arrangement = _arranged(hidden, topk_ids, expert_map, experts, result_dtype)
    gathered, offs = arrangement.tokens, arrangement.ends

    def sums_of(tokens: torch.Tensor, weights: Any, bias: torch.Tensor | None) -> torch.Tensor:
        sums: torch.Tensor = grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
        return sums if bias is None else sums + bias.float()[arrangement.experts.long()]

    if activation.is_fused and biases.gate is None and biases.up is None:
        if hidden.is_cuda:
            on_gpu().load_mixture(hidden, gate, up, down)
        between = swiglu_grouped_mm(gathered, gate, up, offs=offs, out_dtype=hidden.dtype)
    else:
        exact = activation.of(sums_of(gathered, gate, biases.gate), sums_of(gathered, up, biases.up))
        between = exact.to(hidden.dtype)
    return arrangement.combined(sums_of(between, down, biases.down), topk_weights, result_dtype)


def _arranged(
    hidden: torch.Tensor, topk_ids: torch.Tensor, expert_map: torch.Tensor | None, experts: int, dtype: torch.dtype
) -> Any:
    if hidden.is_cuda:
        from gauntlet.nvfp4 import _cuda_mixture

        if _cuda_mixture.takes(hidden, topk_ids, experts):
            return _cuda_mixture.arranged(hidden, topk_ids, expert_map, experts, dtype)
    return _Sorted.of(hidden, topk_ids, expert_map, experts)


class _Sorted(NamedTuple):
    """Tokens sorted by their experts, as `_cuda_mixture.Arrangement`, by PyTorch's operators."""

    ends: torch.Tensor
    experts: torch.Tensor
    order: torch.Tensor
    """``[slots]``: the slot of each row."""
    is_here: torch.Tensor
    """``[slots]``: whether the expert of each slot is here."""
    tokens: torch.Tensor

    @classmethod
    def of(cls, hidden: torch.Tensor, topk_ids: torch.Tensor, expert_map: torch.Tensor | None, experts: int) -> _Sorted:
        ids = topk_ids.reshape(-1).long()
        if expert_map is not None:
            is_known = (ids >= 0) & (ids < expert_map.shape[0])
            ids = torch.where(is_known, expert_map.long()[ids.clamp(0, expert_map.shape[0] - 1)], -1)
        is_here = (ids >= 0) & (ids < experts)
        ids = torch.where(is_here, ids, experts)
        order = torch.argsort(ids, stable=True)
        numbers = torch.arange(experts, device=hidden.device)
        ends = torch.searchsorted(ids[order], numbers, right=True).to(torch.int32)
        gathered = hidden[order // topk_ids.shape[1]]
        return cls(ends, ids[order].clamp(max=experts - 1), order, is_here, gathered)

    def combined(self, results: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        rows = torch.empty_like(self.order)
        rows[self.order] = torch.arange(self.order.shape[0], device=self.order.device)
        own = torch.where(self.is_here[:, None], results[rows], 0.0).view(*weights.shape, results.shape[1])
        sums: torch.Tensor = (own * weights.float()[:, :, None]).sum(1)
        return sums.to(dtype)
