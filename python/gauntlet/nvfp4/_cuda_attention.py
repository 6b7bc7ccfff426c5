"""Attention on NVIDIA GPUs, on PyTorch's current stream. Imports torch."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from gauntlet import _native
from gauntlet.nvfp4 import _arrays, _attention
from gauntlet.nvfp4._cuda import NAMES, current_stream, libraries

_FORMATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.int8: "int8",
}
_HALVES = (torch.float16, torch.bfloat16)
_SCALE_BLOCK = 64


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
    if numbers and len(numbers) == len(scales):
        given = list(numbers.values())
    else:
        given = [
            torch.full((1,), numbers[name], device=query.device)
            if name in numbers
            else torch.as_tensor(scale).detach().to(query.device, torch.float32).contiguous()
            for name, scale in scales.items()
        ]
    output = getattr(torch, dtype)
    shape = _shape(query.dtype, query.shape, key.shape, scaling, bool(is_causal), output)
    return enqueue(query, key, value, given, shape, output)


def quick(
    query: torch.Tensor, key: Any, value: Any, scales: tuple[Any, ...], is_causal: bool, out_dtype: Any
) -> torch.Tensor | None:
    """Attention, if a few comparisons show that everything fits; otherwise None, and `_attention` checks each argument with
    words."""
    if not (isinstance(key, torch.Tensor) and isinstance(value, torch.Tensor)):
        return None
    device = query.device
    scaled: tuple[torch.Size, ...] | None = ()
    if scales[0] is None and scales[1] is None and scales[2] is None:
        scales, scaled = (), None
    elif isinstance(scales[0], torch.Tensor):
        for scale in scales:
            if not isinstance(scale, torch.Tensor) or scale.dtype is not torch.float32 or scale.device != device:
                return None
            if not scale.is_contiguous():
                return None
        scaled = (scales[0].shape, scales[1].shape, scales[2].shape)
    elif not (all(type(scale) is float for scale in scales) and math.isfinite(sum(scales))):
        return None
    form = _form(
        (query.dtype, key.dtype, value.dtype),
        (query.shape, key.shape, value.shape),
        (device, key.device, value.device),
        scaled,
        bool(is_causal),
        out_dtype,
    )
    if form is None or not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
        return None
    return enqueue(query, key, value, scales, *form)


class _Form(NamedTuple):
    shape: _native.AttentionShape
    output: torch.dtype


@functools.lru_cache(maxsize=1024)
def _form(
    dtypes: tuple[torch.dtype, torch.dtype, torch.dtype],
    shapes: tuple[torch.Size, torch.Size, torch.Size],
    devices: tuple[torch.device, torch.device, torch.device],
    scaled: tuple[torch.Size, ...] | None,
    is_causal: bool,
    out_dtype: Any,
) -> _Form | None:
    """What calls with operands of these types and shapes have in common, if everything fits. It is kept, because finding it takes less
    time than the comparisons. `scaled` has the shapes of scales on the GPU; it is empty for numbers, and None without scales."""
    dtype, shape, key_shape = dtypes[0], shapes[0], shapes[1]
    is_half = dtype in _HALVES
    output = (dtype if is_half else torch.float16) if out_dtype is None else out_dtype
    if (
        dtype not in _FORMATS
        or dtypes != (dtype,) * 3
        or len(shape) != 4
        or len(key_shape) != 4
        or key_shape != shapes[2]
        or (key_shape[0], key_shape[3]) != (shape[0], shape[3])
        or shape[3] % _attention.HEAD_STEP != 0
        or not 0 < shape[3] <= _attention.MAX_HEAD_SIZE
        or devices != (devices[0],) * 3
        or output not in NAMES
        or is_half != (scaled is None)
    ):
        return None
    scaling = "per-head" if scaled is None else _scaling(shape, key_shape, scaled)
    return None if scaling is None else _Form(_shape(dtype, shape, key_shape, scaling, is_causal, output), output)


def _scaling(shape: torch.Size, key_shape: torch.Size, scaled: tuple[torch.Size, ...]) -> str | None:
    """Which values share a scale, if the shapes of the scales say so."""
    if all(own in ((), (1,)) for own in scaled):
        return "per-tensor"
    operands = (shape, key_shape, key_shape)
    if scaled == tuple(own[:2] for own in operands):
        return "per-head"
    blocks = tuple((*own[:2], -(-own[2] // _SCALE_BLOCK)) for own in operands)
    return "per-block" if scaled == blocks else None


def _shape(
    dtype: torch.dtype, shape: torch.Size, key_shape: torch.Size, scaling: str, is_causal: bool, output: torch.dtype
) -> _native.AttentionShape:
    batch, heads, queries, head_size = shape
    sizes = (batch, heads, key_shape[1], queries, key_shape[2], head_size)
    return _native.AttentionShape(sizes, (_FORMATS[dtype], scaling, NAMES[output]), is_causal)


def enqueue(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scales: Sequence[Any],
    shape: _native.AttentionShape,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Enqueues attention on the current stream of its device. Scales of query, key and value are on the GPU, or numbers of whole
    tensors, or none."""
    device = query.get_device()
    output = torch.empty_like(query, dtype=dtype)
    addresses, numbers = None, scales or None
    if scales and isinstance(scales[0], torch.Tensor):
        addresses, numbers = [scale.data_ptr() for scale in scales], None
    libraries.of[device].enqueue_attention(
        current_stream(device),
        torch.cuda.is_current_stream_capturing(),
        shape,
        (query.data_ptr(), key.data_ptr(), value.data_ptr(), output.data_ptr()),
        addresses,
        numbers,
    )
    return output
