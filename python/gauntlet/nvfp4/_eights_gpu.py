"""Rounding tokens to e4m3 on a GPU, in one launch. Imports torch and triton, which PyTorch's packages for GPUs bring along."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 2048
WARPS = 8


@triton.jit  # type: ignore[untyped-decorator]
def _round_rows(x, values, scales, k: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """A row a program, which reads it twice, the second time from a cache."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    largest = tl.zeros([block], tl.float32)
    for first in range(0, k, block):
        own = tl.load(x + row * k + first + at, mask=first + at < k, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(own))
    most = tl.maximum(tl.max(largest, 0), 1e-30)
    tl.store(scales + row, most / 448.0)
    factor = 448.0 / most
    for first in range(0, k, block):
        own = tl.load(x + row * k + first + at, mask=first + at < k, other=0.0).to(tl.float32)
        tl.store(values + row * k + first + at, (own * factor).to(tl.float8e4nv), mask=first + at < k)


def rounded(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As `_eights.rounded`; x is contiguous."""
    values = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(len(x), dtype=torch.float32, device=x.device)
    with torch.cuda.device(x.device):
        _round_rows[(len(x),)](x, values, scales, x.shape[1], BLOCK, num_warps=WARPS)
    return values, scales
