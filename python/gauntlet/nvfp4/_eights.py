"""Dense layers whose tokens and weights are rounded to e4m3: not exact, and quicker with many tokens. Imports torch."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from gauntlet.nvfp4._tensor import BLOCK, Tensor

E4M3 = torch.float8_e4m3fn
MAX = 448.0
"""The largest e4m3 number."""

MULTIPLE = 16
"""The product takes weights whose sizes are multiples of this."""

CHUNK = 1 << 26
"""Weights that are decoded at a time, in float32."""


class Eights(NamedTuple):
    """Rows of e4m3 numbers, and what those of each row are multiplied by, float32."""

    values: torch.Tensor
    scales: torch.Tensor


@functools.cache
def _codes(device: torch.device) -> torch.Tensor:
    """The e2m1 numbers by their codes."""
    sizes = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], device=device)
    return torch.cat((sizes, -sizes))


def decoded(tensor: Tensor) -> Eights:
    """NVFP4 weights ``[n, k]``, each rounded once to e4m3, block scales included. A row is divided by a power of two, so that the
    largest product of one of its block scales is in range.

    Raises:
        TypeError: They are no PyTorch tensors.
        ValueError: They are of another shape, or on a GPU that multiplies no e4m3.
    """
    if not isinstance(tensor.values, torch.Tensor):
        raise TypeError("tokens: float8_e4m3fn is for PyTorch tensors; leave it out")
    if len(tensor.shape) != 2 or any(size % MULTIPLE for size in tensor.shape):
        raise ValueError(f"tokens: weights of shape {tensor.shape} are not multiplied as e4m3; give [n, k], both multiples of {MULTIPLE}")
    if tensor.values.is_cuda and torch.cuda.get_device_capability(tensor.values.device) < (8, 9):
        raise ValueError("tokens: float8_e4m3fn needs a GPU that multiplies e4m3, as Ada and Hopper do; leave it out")
    n, k = tensor.shape
    codes = tensor.values.view(torch.uint8)
    blocks = tensor.scales.view(E4M3)
    largest = blocks.float().abs().amax(1) * (6.0 / MAX)
    powers = torch.exp2(torch.ceil(torch.log2(largest.clamp_min(2.0**-60))))
    values = torch.empty(n, k, dtype=E4M3, device=codes.device)
    rows = max(1, CHUNK // k)
    for first in range(0, n, rows):
        own = slice(first, first + rows)
        both = torch.stack((codes[own] & 15, codes[own] >> 4), -1).view(-1, k // BLOCK, BLOCK)
        exact = _codes(codes.device)[both.int()] * (blocks[own].float() / powers[own, None])[..., None]
        values[own] = exact.view(-1, k).to(E4M3)
    return Eights(values, powers * tensor.tensor_scales[0])


def rounded(x: torch.Tensor) -> Eights:
    """Tokens ``[m, k]``, each row divided by a 448th of its largest magnitude and rounded to e4m3."""
    if x.is_cuda:
        from gauntlet.nvfp4 import _eights_gpu

        return Eights(*_eights_gpu.rounded(x))
    floats = x.float()
    scales = floats.abs().amax(1).clamp_min(1e-30) / MAX
    return Eights((floats / scales[:, None]).to(E4M3), scales)


def linear(x: torch.Tensor, weights: Eights, bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """The layer on tokens ``[m, k]``; sums are rounded to bfloat16 on a GPU before the bias is added."""
    if len(x) == 0:
        return x.new_empty((0, len(weights.values)), dtype=dtype)
    tokens = rounded(x.contiguous())
    rows, columns = tokens.scales[:, None], weights.scales[None, :]
    if x.is_cuda:
        result = torch._scaled_mm(
            tokens.values, weights.values.t(), rows, columns, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    else:
        result = tokens.values.float() @ weights.values.float().t() * rows * columns
    if bias is not None:
        result = result + bias.to(result.dtype)
    return result.to(dtype)


def layer(x: Any, weights: Any, bias: Any, dtype: str) -> torch.Tensor:
    """`nvfp4.linear` with `Weights` for e4m3 tokens, after the shapes that both have are checked."""
    eights: Eights = weights.eights
    if not isinstance(x, torch.Tensor) or x.device != eights.values.device:
        raise ValueError(f"weight: it is on {weights.device} and for PyTorch tensors there; give x so")
    if x.ndim == 0 or x.shape[-1] != weights.shape[1]:
        raise ValueError(f"weight: its rows have {weights.shape[1]} values, and x is of shape {tuple(x.shape)}; both must have k")
    result = linear(x.reshape(-1, x.shape[-1]), eights, bias, getattr(torch, dtype))
    return result.view(*x.shape[:-1], weights.shape[0])
