"""NVFP4 tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4 import _arrays

BLOCK = 16
"""Values along a row that share one scale."""

VALUES = ("uint8", "float4_e2m1fn_x2")
SCALES = ("uint8", "float8_e4m3fn")


@dataclass(frozen=True, eq=False)
class Tensor:
    """An NVFP4 matrix ``[rows, columns]``, or a stack of them ``[groups, rows, columns]``.

    Args:
        values: e2m1 codes, two a byte, low nibble first: ``[..., rows, columns / 2]``, uint8 or float4_e2m1fn_x2.
        scales: e4m3 block scales: ``[..., rows, columns / 16]``, uint8 or float8_e4m3fn.
        tensor_scale: What all elements are multiplied by; of a stack one number, or one for each matrix.

    Raises:
        TypeError: An array is of another type.
        ValueError: An array has another shape, device or strides, or a scale is not finite.
    """

    values: Any
    scales: Any
    tensor_scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        _arrays.check("values", self.values, VALUES)
        if self.values.ndim not in (2, 3):
            raise ValueError(
                f"values: it has {self.values.ndim} dimensions; give [rows, columns / 2] or [groups, rows, columns / 2]"
            )
        *outer, half = (int(size) for size in self.values.shape)
        if 2 * half % BLOCK:
            raise ValueError(
                f"values: {half} bytes a row are {2 * half} values; rows must be whole blocks of {BLOCK}, so pad them "
                "with zeros"
            )
        _arrays.check("scales", self.scales, SCALES, [*outer, 2 * half // BLOCK])
        _arrays.check_same_device({"values": self.values, "scales": self.scales})
        object.__setattr__(self, "tensor_scale", self._checked_scale())

    def _checked_scale(self) -> float | tuple[float, ...]:
        given: Any = self.tensor_scale
        if hasattr(given, "tolist"):
            given = given.tolist()
        several = isinstance(given, Sequence)
        numbers = tuple(float(number) for number in (given if several else [given]))
        bad = [number for number in numbers if not math.isfinite(number)]
        if bad:
            raise ValueError(f"tensor_scale: it is {bad[0]}; it must be finite, and 1 where there is none")
        if len(numbers) == 1:
            return numbers[0]
        if self.values.ndim != 3 or len(numbers) != self.values.shape[0]:
            raise ValueError(
                f"tensor_scale: it has {len(numbers)} numbers for values of shape {tuple(self.values.shape)}; give one, "
                "or one for each matrix of a stack"
            )
        return numbers

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the elements: ``(rows, columns)``, or ``(groups, rows, columns)``."""
        *outer, half = self.values.shape
        return (*outer, 2 * half)

    @property
    def device(self) -> str:
        """Where it lies: ``cpu``, ``cuda:0`` and so on."""
        return _arrays.device_name(self.values)

    @property
    def tensor_scales(self) -> tuple[float, ...]:
        """One scale for each matrix."""
        groups = self.shape[0] if len(self.shape) == 3 else 1
        scale = self.tensor_scale
        return scale if isinstance(scale, tuple) else (scale,) * groups

    def to(self, device: Any) -> Tensor:
        """The same tensor on another device (PyTorch tensors only)."""
        if not _arrays.is_torch(self.values):
            raise TypeError(f"values: it is a {type(self.values).__name__}; only PyTorch tensors move to {device}")
        return Tensor(self.values.to(device), self.scales.to(device), self.tensor_scale)

    def __repr__(self) -> str:
        return f"nvfp4.Tensor(shape={self.shape}, tensor_scale={self.tensor_scale}, device={self.device!r})"


def quantize(values: Any) -> Tensor:
    """Quantises a matrix to NVFP4.

    The tensor scale is ``amax / 2688``, so that the largest magnitude becomes 6 x 448; a block's scale is
    ``e4m3(block amax / 6 / tensor scale)``; values are divided by both in float64 and rounded to the nearest e2m1 value,
    ties to even (the recipe of arXiv 2509.25149).

    Args:
        values: ``[rows, columns]``, float32, float16 or bfloat16, on the CPU; columns are a multiple of 16.

    Returns:
        The tensor, of the same library: uint8 values, and scales in uint8 (numpy) or float8_e4m3fn (PyTorch).

    Raises:
        TypeError: The array is of another type.
        ValueError: The array has another shape, is not contiguous or not on the CPU, or holds a value that is not finite.
    """
    _arrays.check("values", values, ("float32", "float16", "bfloat16"), [None, None])
    _arrays.on_cpu("values", values)
    rows, columns = (int(size) for size in values.shape)
    packed, scales, scale = _native.quantize(_arrays.flat_floats(values), rows, columns)
    return from_parts((rows, columns), (packed, scales, scale), like=values)


def from_parts(
    shape: tuple[int, int],
    parts: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], float],
    like: Any,
) -> Tensor:
    """A tensor from the native part's arrays, in the library of `like`."""
    (rows, columns), (packed, scales, scale) = shape, parts
    scale_type = "float8_e4m3fn" if _arrays.is_torch(like) else "uint8"
    return Tensor(
        _arrays.from_bytes(packed, "uint8", (rows, columns // 2), like),
        _arrays.from_bytes(scales, scale_type, (rows, columns // BLOCK), like),
        scale,
    )


def dequantize(tensor: Tensor, dtype: Any = None) -> Any:
    """The elements of a tensor: each exact product, rounded once to `dtype`.

    Args:
        tensor: A matrix or a stack, on the CPU.
        dtype: float64 (always exact), float32 (the default), float16, or bfloat16, which numpy has with ml_dtypes.

    Returns:
        An array of the tensor's shape and library.

    Raises:
        TypeError: The type is not supported.
        ValueError: The tensor is not on the CPU, or a block scale is NaN.
    """
    name = _arrays.dtype_argument("dtype", dtype, "float32", tensor.values)
    _arrays.on_cpu("tensor", tensor.values)
    *_, rows, columns = tensor.shape
    packed, scales = _arrays.flat_bytes(tensor.values), _arrays.flat_bytes(tensor.scales)
    pieces, half, blocks = [], rows * columns // 2, rows * columns // BLOCK
    for group, scale in enumerate(tensor.tensor_scales):
        own = packed[group * half : (group + 1) * half], scales[group * blocks : (group + 1) * blocks]
        pieces.append(_native.dequantize(*own, (rows, columns), scale, name))
    data = pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.uint8), *pieces])
    return _arrays.from_bytes(data, name, tensor.shape, tensor.values)


def stack(tensors: Sequence[Tensor]) -> Tensor:
    """Stacks matrices of one shape, such as the experts of a layer: ``[groups, rows, columns]``.

    Raises:
        ValueError: There are none, or their shapes differ.
    """
    if not tensors:
        raise ValueError("tensors: there are none; give at least one")
    first = tensors[0]
    for number, tensor in enumerate(tensors):
        if tensor.shape != first.shape or len(tensor.shape) != 2:
            raise ValueError(
                f"tensors[{number}]: its shape is {tensor.shape}, and that of the first is {first.shape}; stack matrices "
                "of one shape"
            )
    scale = tuple(tensor.tensor_scales[0] for tensor in tensors)
    if _arrays.is_torch(first.values):
        import torch

        scales = torch.stack([tensor.scales.view(torch.uint8) for tensor in tensors]).view(first.scales.dtype)
        return Tensor(torch.stack([tensor.values for tensor in tensors]), scales, scale)
    values = np.stack([tensor.values for tensor in tensors])
    return Tensor(values, np.stack([tensor.scales for tensor in tensors]), scale)
