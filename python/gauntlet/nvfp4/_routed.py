"""A mixture of experts whose routing stays on the device. Imports torch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from gauntlet.nvfp4._activations import Activation
from gauntlet.nvfp4._products import grouped_mm, on_gpu, swiglu_grouped_mm


NO_EXPERT = -1
"""The id of no expert, with which engines pad; and the place of an expert that is elsewhere."""


class Biases(NamedTuple):
    """What is added to the sums of each product: ``[experts, intermediate]`` twice, and ``[experts, hidden]``."""

    gate: torch.Tensor | None = None
    up: torch.Tensor | None = None
    down: torch.Tensor | None = None


_MOST_BYTES = 2 << 30
"""Of what lies between tokens and results."""

_SUM_BYTES = 4
"""Of a sum of the last product."""


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

    What lies between tokens and results takes memory for all slots, wherever their experts are. So many tokens are computed one part
    after another.

    The steps around the products are kernels on a Hopper GPU, and PyTorch's operators elsewhere and for sizes that the kernels do
    not take. Both add up in the same order. Rows of experts that are elsewhere, and of padding, come behind all others or nowhere.
    The products leave them undefined, and they add nothing. Tokens with an id that stands for no expert become NaN.
    """
    slot_bytes = _SUM_BYTES * hidden.shape[1] + hidden.element_size() * (hidden.shape[1] + gate.shape[1])
    most = max(1, _MOST_BYTES // (slot_bytes * max(1, topk_ids.shape[1])))
    if hidden.shape[0] > most:
        parts = [slice(begin, begin + most) for begin in range(0, hidden.shape[0], most)]
        rest = expert_map, dtype, activation, biases
        return torch.cat([moe(hidden[own], topk_ids[own], topk_weights[own], gate, up, down, *rest) for own in parts])
    experts = gate.shape[0]
    result_dtype = getattr(torch, dtype)
    arrangement = _arranged(hidden, topk_ids, expert_map, experts, result_dtype)
    gathered, offs = arrangement.tokens, arrangement.ends

    def sums_of(tokens: torch.Tensor, weights: Any, bias: torch.Tensor | None) -> torch.Tensor:
        sums: torch.Tensor = grouped_mm(tokens, weights, offs=offs, out_dtype=torch.float32)
        return sums if bias is None else sums + bias.float()[arrangement.experts.long()]

    between = None
    is_plain = activation.is_plain and biases.gate is None and biases.up is None
    if hidden.is_cuda:
        if is_plain:
            on_gpu().load_mixture(hidden, gate, up, down)
        elif activation.function == "silu":
            limit = math.inf if activation.limit is None else activation.limit
            numbers = activation.alpha, activation.beta, limit
            epilogue = on_gpu().epilogue_of(experts, (biases.gate, biases.up), numbers)
            if epilogue is not None:
                between = on_gpu().quick(gathered, gate, up, None, offs, hidden.dtype, epilogue=epilogue)
    if is_plain:
        between = swiglu_grouped_mm(gathered, gate, up, offs=offs, out_dtype=hidden.dtype)
    if between is not None and hidden.is_cuda:
        epilogue = None if biases.down is None else on_gpu().epilogue_of(experts, (biases.down,))
        if biases.down is None or epilogue is not None:
            # Nothing was launched since the first product, which read the same ends.
            ready = {"ends_are_ready": True, "epilogue": epilogue}
            sums = on_gpu().quick(between, down, None, None, offs, torch.float32, **ready)
            if sums is not None:
                quick: torch.Tensor = arrangement.combined(sums, topk_weights, result_dtype)
                return quick
    if between is None:
        exact = activation.of(sums_of(gathered, gate, biases.gate), sums_of(gathered, up, biases.up))
        between = exact.to(hidden.dtype)
    result: torch.Tensor = arrangement.combined(sums_of(between, down, biases.down), topk_weights, result_dtype)
    return result


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
    instead: torch.Tensor
    """``[slots]``: 0 for slots that add nothing, NaN for ids that stand for no expert, and 1 for slots whose expert is here."""
    tokens: torch.Tensor

    @classmethod
    def of(cls, hidden: torch.Tensor, topk_ids: torch.Tensor, expert_map: torch.Tensor | None, experts: int) -> _Sorted:
        ids = topk_ids.reshape(-1).long()
        if expert_map is not None:
            known = expert_map.shape[0]
            places = expert_map.long()[ids.clamp(0, known - 1)] if known else ids
            is_known = (ids >= 0) & (ids < known)
            ids = torch.where(is_known, places, torch.where(ids == NO_EXPERT, NO_EXPERT, experts))
        is_here = (ids >= 0) & (ids < experts)
        instead = torch.where(is_here, 1.0, torch.where(ids == NO_EXPERT, 0.0, torch.nan))
        ids = torch.where(is_here, ids, experts)
        order = torch.argsort(ids, stable=True)
        numbers = torch.arange(experts, device=hidden.device)
        ends = torch.searchsorted(ids[order], numbers, right=True).to(torch.int32)
        gathered = hidden[order // topk_ids.shape[1]]
        return cls(ends, ids[order].clamp(max=experts - 1), order, instead, gathered)

    def combined(self, results: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        rows = torch.empty_like(self.order)
        rows[self.order] = torch.arange(self.order.shape[0], device=self.order.device)
        instead = self.instead[:, None]
        own = torch.where(instead == 1, results[rows], instead).view(*weights.shape, results.shape[1])
        sums: torch.Tensor = (own * weights.float()[:, :, None]).sum(1)
        return sums.to(dtype)
