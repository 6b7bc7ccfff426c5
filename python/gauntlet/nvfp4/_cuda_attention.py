"""Attention on NVIDIA GPUs, on PyTorch's current stream. Imports torch."""

from __future__ import annotations

import math
from typing import Any

import torch

from gauntlet.nvfp4 import _arrays
from gauntlet.nvfp4._cuda import NAMES, current_stream, libraries

_FORMATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.int8: "int8",
}
_HALVES = (torch.float16, torch.bfloat16)
_SCALE_BLOCK = 64

Scales = list[torch.Tensor] | list[float] | None
"""Those of query, key and value: on the GPU, as numbers of whole tensors, or none."""


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scales: dict[str, Any],
    scaling: str,
    is_causal: bool,
    dtype: str,
) -> torch.Tensor:
    """Attention of operands that fit each other, with scales as arrays of shapes that fit. Those on the CPU are numbers of the call if
    each tensor has one, and else copied, for which the host waits."""
    for name, scale in scales.items():
        if _arrays.is_cuda(scale) and scale.device != query.device:
            raise ValueError(
                f"{name}: it is on {scale.device}, and query on {query.device}; move it with .to('{query.device}')"
            )
    numbers = {
        name: float(scale.reshape(-1)[0])
        for name, scale in scales.items()
        if scaling == "per-tensor" and not _arrays.is_cuda(scale)
    }
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise ValueError(f"{name}: {number} is not finite; give a finite scale")
    placed: Scales = None
    if numbers and len(numbers) == len(scales):
        placed = list(numbers.values())
    elif scales:
        placed = [
            torch.full((1,), numbers[name], device=query.device)
            if name in numbers
            else torch.as_tensor(scale).detach().to(query.device, torch.float32).contiguous()
            for name, scale in scales.items()
        ]
    return enqueue(query, key, value, placed, scaling, is_causal, getattr(torch, dtype))


def quick(
    query: torch.Tensor, key: Any, value: Any, scales: tuple[Any, Any, Any], is_causal: bool, out_dtype: Any
) -> torch.Tensor | None:
    """Attention, if a few comparisons show that everything fits; otherwise None, and `_attention` checks each argument with
    words."""
    if not (isinstance(key, torch.Tensor) and isinstance(value, torch.Tensor)):
        return None
    dtype, shape, device = query.dtype, query.shape, query.device
    is_half = dtype in _HALVES
    wanted = (dtype if is_half else torch.float16) if out_dtype is None else out_dtype
    if (
        dtype not in _FORMATS
        or key.dtype is not dtype
        or value.dtype is not dtype
        or len(shape) != 4
        or len(key.shape) != 4
        or key.shape != value.shape
        or key.shape[0] != shape[0]
        or key.shape[3] != shape[3]
        or key.device != device
        or value.device != device
        or not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous())
        or wanted not in NAMES
    ):
        return None
    if is_half:
        if any(scale is not None for scale in scales):
            return None
        return enqueue(query, key, value, None, "per-head", is_causal, wanted)
    if all(type(scale) is float for scale in scales):
        if not math.isfinite(sum(scales)):
            return None
        return enqueue(query, key, value, list(scales), "per-tensor", is_causal, wanted)
    if not all(
        isinstance(scale, torch.Tensor)
        and scale.dtype is torch.float32
        and scale.device == device
        and scale.is_contiguous()
        for scale in scales
    ):
        return None
    scaling = _scaling(query, key, scales)
    return None if scaling is None else enqueue(query, key, value, list(scales), scaling, is_causal, wanted)


def _scaling(query: torch.Tensor, key: torch.Tensor, scales: tuple[Any, Any, Any]) -> str | None:
    """Which values share a scale, if the shapes say so."""
    found = [tuple(scale.shape) for scale in scales]
    if all(shape in ((), (1,)) for shape in found):
        return "per-tensor"
    heads = [tuple(operand.shape[:2]) for operand in (query, key, key)]
    if found == heads:
        return "per-head"
    blocks = [(*operand.shape[:2], -(-operand.shape[2] // _SCALE_BLOCK)) for operand in (query, key, key)]
    return "per-block" if found == blocks else None


def enqueue(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scales: Scales,
    scaling: str,
    is_causal: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Enqueues attention on the current stream of its device."""
    batch, heads, queries, head_size = query.shape
    kv_heads, keys = key.shape[1], key.shape[2]
    device = query.get_device()
    output = torch.empty(query.shape, dtype=dtype, device=query.device)
    addresses: list[int] | None = None
    numbers: list[float] | None = None
    for scale in scales or ():
        if isinstance(scale, torch.Tensor):
            addresses = [*(addresses or ()), scale.data_ptr()]
        else:
            numbers = [*(numbers or ()), scale]
    libraries.of(device).enqueue_attention(
        current_stream(device),
        torch.cuda.is_current_stream_capturing(),
        (batch, heads, kv_heads, queries, keys, head_size),
        (_FORMATS[query.dtype], scaling, NAMES[dtype]),
        bool(is_causal),
        (query.data_ptr(), key.data_ptr(), value.data_ptr(), output.data_ptr()),
        addresses,
        numbers,
    )
    return output
