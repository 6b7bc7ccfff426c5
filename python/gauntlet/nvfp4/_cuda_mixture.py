"""The steps of a mixture of experts around its products on a Hopper GPU, on PyTorch's current stream. Imports torch."""

from __future__ import annotations

from typing import NamedTuple

import torch

from gauntlet.nvfp4._cuda import NAMES, current_stream, is_hopper, libraries

MAX_SLOTS = 1 << 20
"""Most tokens times experts of each."""

MAX_EXPERTS = 1024
MAX_EXPERTS_A_TOKEN = 32
MAX_VALUES = 65535
"""Most values of a token."""

_PIECE = 16
"""Bytes of a row of tokens are copied so many at a time."""


class Arrangement(NamedTuple):
    """Tokens sorted by their experts, a row for each slot: one of the experts of one token. All of it is on the GPU."""

    ends: torch.Tensor
    """``[experts]``, int32: where each expert's rows end."""
    experts: torch.Tensor
    """``[slots]``, int32: the expert of each row; 0 behind the last end."""
    rows: torch.Tensor
    """``[slots]``, int32: the row of each slot; -1 if its expert is elsewhere or there is none, -2 if its id stands for no expert."""
    tokens: torch.Tensor
    """``[slots, hidden]``: the tokens by rows; not defined behind the last end."""
    sizes: tuple[int, int, int, int]

    def combined(self, results: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """For each token the sum of its experts' results, ``[slots, hidden]`` in float32, by their weights."""
        weights = weights.contiguous()
        output = torch.empty((self.sizes[0], self.sizes[3]), dtype=dtype, device=results.device)
        device = results.get_device()
        libraries.of[device].enqueue_combine(
            current_stream(device),
            self.sizes,
            (results.data_ptr(), self.rows.data_ptr(), weights.data_ptr(), output.data_ptr()),
            (NAMES[weights.dtype], NAMES[dtype]),
        )
        return output


def takes(hidden: torch.Tensor, topk_ids: torch.Tensor, experts: int) -> bool:
    """Whether the kernels compute a layer of these tokens; everything fits."""
    return (
        hidden.is_cuda
        and hidden.dtype in (torch.bfloat16, torch.float16)
        and hidden.shape[1] * hidden.element_size() % _PIECE == 0
        and hidden.shape[1] <= MAX_VALUES
        and hidden.data_ptr() % _PIECE == 0
        and 0 < topk_ids.numel() <= MAX_SLOTS
        and topk_ids.shape[1] <= MAX_EXPERTS_A_TOKEN
        and experts <= MAX_EXPERTS
        and is_hopper(hidden.device)
    )


def arranged(
    hidden: torch.Tensor,
    topk_ids: torch.Tensor,
    expert_map: torch.Tensor | None,
    experts: int,
    dtype: torch.dtype,
) -> Arrangement:
    """Sorts tokens that the kernels take by their experts; `dtype` is that of the layer's result."""
    hidden, topk_ids = hidden.contiguous(), topk_ids.contiguous()
    expert_map = None if expert_map is None else expert_map.contiguous()
    slots, width = topk_ids.numel(), hidden.shape[1]
    sizes = (*topk_ids.shape, experts, width)
    device = hidden.get_device()
    library = libraries.of[device]
    scratch = library.mixture_scratch(sizes) // 4
    integers = torch.empty(experts + 2 * slots + scratch, dtype=torch.int32, device=hidden.device)
    ends, row_experts, rows, counts = integers.split([experts, slots, slots, scratch])
    gathered = torch.empty((slots, width), dtype=hidden.dtype, device=hidden.device)
    results = tuple(one.data_ptr() for one in (ends, row_experts, rows, gathered, counts))
    library.enqueue_arrange(
        current_stream(device),
        sizes,
        (topk_ids.data_ptr(), hidden.data_ptr()),
        (0, 0) if expert_map is None else (expert_map.data_ptr(), expert_map.numel()),
        (topk_ids.element_size(), 0 if expert_map is None else expert_map.element_size()),
        results,
        NAMES[dtype],
    )
    return Arrangement(ends, row_experts, rows, gathered, sizes)
