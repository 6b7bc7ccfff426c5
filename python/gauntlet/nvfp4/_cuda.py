"""Products on NVIDIA Hopper GPUs, on PyTorch's current stream. Imports torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gauntlet import _native
from gauntlet.nvfp4._tensor import Tensor

STEP = 256
"""Values in memory along k are a multiple of this."""


class _Libraries(threading.local):
    """The GPUs that a thread uses: the objects of a CUDA library stay in the thread that made them."""

    def __init__(self) -> None:
        self.by_device: dict[int, _native.CudaLibrary] = {}

    def of(self, device: int) -> _native.CudaLibrary:
        library = self.by_device.get(device)
        if library is None:
            library = self.by_device[device] = _native.CudaLibrary(device)
        return library


_libraries = _Libraries()

_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


def _wrapped_stream(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


# PyTorch's own compiler uses the private function in the code that it generates: it spares an object in each call.
_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _wrapped_stream)


def product(tokens: Tensor, named: dict[str, Any], counts: Sequence[int], dtype: str) -> torch.Tensor:
    """A grouped product whose operands lie on one GPU; everything fits."""
    for name, weights in named.items():
        if not isinstance(weights, Tensor):
            raise TypeError(f"{name}: nvfp4.Weights are on the CPU, and tokens on {tokens.device}; give an nvfp4.Tensor")
    k = tokens.shape[1]
    if k % STEP:
        raise ValueError(
            f"tokens: rows of {k} values; on a GPU they are a multiple of {STEP}, so pad values and scales of tokens and "
            f"weights with zeros to {-(-k // STEP) * STEP}"
        )
    first, *others = named.values()
    second = others[0] if others else None
    return enqueue(
        tokens.values,
        tokens.scales,
        tokens.tensor_scales,
        (first.values, first.scales, first.tensor_scales),
        None if second is None else (second.values, second.scales, second.tensor_scales),
        counts,
        getattr(torch, dtype),
    )


def enqueue(
    values: torch.Tensor,
    scales: torch.Tensor,
    token_scales: Sequence[float],
    first: tuple[torch.Tensor, torch.Tensor, Sequence[float]],
    second: tuple[torch.Tensor, torch.Tensor, Sequence[float]] | None,
    counts: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """Enqueues a product on the current stream of its device."""
    rows, half = values.shape
    weights, weight_scales, factors = first
    columns = weights.shape[-2]
    device = values.get_device()
    output = torch.empty((rows, columns), dtype=dtype, device=values.device)
    other = (0, 0) if second is None else (second[0].data_ptr(), second[1].data_ptr())
    _libraries.of(device).enqueue(
        _stream(device),
        torch.cuda.is_current_stream_capturing(),
        (len(counts), columns, 2 * half),
        (weights.data_ptr(), weight_scales.data_ptr(), *other),
        (token_scales, factors, () if second is None else second[2]),
        _NAMES[dtype],
        counts,
        (values.data_ptr(), scales.data_ptr(), output.data_ptr()),
    )
    return output
