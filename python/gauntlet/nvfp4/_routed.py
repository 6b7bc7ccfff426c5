"""A mixture of experts whose routing stays on the device. Imports torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from gauntlet.nvfp4._activations import Activation
from gauntlet.nvfp4._products import grouped_mm, swiglu_grouped_mm


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
    """`nvfp4.moe` by PyTorch's operators and the grouped products; nothing here waits for the device. Everything fits.

    Rows of experts that are elsewhere, and of ids that stand for no expert, are sorted behind all others. The products
    leave them undefined, and they add nothing.
    """
    experts = gate.shape[0]
    ids = topk_ids.reshape(-1).long()
    if expert_map is not None:
        is_known = (ids >= 0) & (ids < expert_map.shape[0])
        ids = torch.where(is_known, expert_map.long()[ids.clamp(0, expert_map.shape[0] - 1)], -1)
    is_here = (ids >= 0) & (ids < experts)
    ids = torch.where(is_here, ids, experts)
    order = torch.argsort(ids, stable=True)
    numbers = torch.arange(experts, device=hidden.device)
    offs = torch.searchsorted(ids[order], numbers, right=True).to(torch.int32)

    gathered = hidden[order // topk_ids.shape[1]]
    own_expert = ids[order].clamp(max=experts - 1)

    def sums_of(tokens: torch.Tensor, weights: Any, bias: torch.Tensor | None) -> torch.Tensor:
        sums: torch.Tensor = grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
        return sums if bias is None else sums + bias.float()[own_expert]

    if activation.is_fused and biases.gate is None and biases.up is None:
        between = swiglu_grouped_mm(gathered, gate, up, offs=offs, out_dtype=hidden.dtype)
    else:
        exact = activation.of(sums_of(gathered, gate, biases.gate), sums_of(gathered, up, biases.up))
        between = exact.to(hidden.dtype)
    results = sums_of(between, down, biases.down)

    rows = torch.empty_like(order)
    rows[order] = torch.arange(order.shape[0], device=order.device)
    own = torch.where(is_here[:, None], results[rows], 0.0).view(*topk_ids.shape, hidden.shape[1])
    sums: torch.Tensor = (own * topk_weights.float()[:, :, None]).sum(1)
    return sums.to(getattr(torch, dtype))
