"""Attention on quantised operands."""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4 import _arrays

MAX_HEADS = 1 << 20
"""Most sequences times heads; the native part has the same limit, and lists as long are made before it is asked."""

MAX_HEAD_SIZE = 256
HEAD_STEP = 16
"""Values of a head on a GPU are a multiple of this."""

FORMATS = ("float16", "bfloat16", "float8_e4m3fn", "int8")
SCALED = ("float8_e4m3fn", "int8")
SCALE_BLOCK = 64


def attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    query_scale: Any = None,
    key_scale: Any = None,
    value_scale: Any = None,
    is_causal: bool = False,
    out_dtype: Any = None,
) -> Any:
    """Attention: ``softmax(query @ key.T / sqrt(head_size)) @ value``.

    Args:
        query: ``[batch, heads, queries, head_size]``, contiguous: float16, bfloat16, or, with scales, float8_e4m3fn or int8.
        key: ``[batch, kv_heads, keys, head_size]``; heads are a multiple of kv_heads.
        value: As `key`.
        query_scale: float32 scales of query in float8_e4m3fn or int8: one number for all, ``[batch, heads]``, or
            ``[batch, heads, ceil(queries / 64)]``. The three scales have the same number of dimensions. For operands on a
            GPU, scales there are read by the kernel, and numbers are part of the call, so the host waits for neither; arrays
            on the CPU are copied.
        key_scale: The same for key.
        value_scale: The same for value.
        is_causal: Whether query i sees only keys up to ``i + keys - queries``: the last query sees all of them, as
            when decoding. (PyTorch's `scaled_dot_product_attention` aligns the first ones if lengths differ.)
        out_dtype: float16, bfloat16 or float32; by default that of query, or float16 if that is quantised.

    Returns:
        ``[batch, heads, queries, head_size]``, of the query's library and device.

    On a GPU the call is one launch or two on PyTorch's current stream, which may be captured in a graph; heads are of a multiple of 16
    values, up to 256, and elements are not looked at: NaN and infinities go into the result. Arrays of other libraries that offer DLPack
    (CuPy, JAX) are computed through PyTorch.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A shape, stride, device or scale does not fit, or, on the CPU, a value is not finite.
    """
    if getattr(query, "is_cuda", False):
        quick = _on_gpu().quick(query, key, value, (query_scale, key_scale, value_scale), is_causal, out_dtype)
        if quick is not None:
            return quick
    scales = {"query_scale": query_scale, "key_scale": key_scale, "value_scale": value_scale}
    if _arrays.is_foreign(query):
        tensors = {name: _arrays.imported(scale) for name, scale in scales.items()}
        operands = (_arrays.imported(array) for array in (query, key, value))
        result = attention(*operands, **tensors, is_causal=is_causal, out_dtype=out_dtype)
        return _arrays.exported(result, query)
    return _checked(query, key, value, scales, is_causal, out_dtype)


def check_head_size(head_size: int) -> None:
    """Raises ValueError, which says what to do, unless a GPU computes heads of this size."""
    if head_size > MAX_HEAD_SIZE:
        raise ValueError(
            f"query: its heads have {head_size} values, and at most {MAX_HEAD_SIZE} are computed; use another attention for this layer"
        )
    if head_size % HEAD_STEP or head_size == 0:
        wanted = (head_size // HEAD_STEP + 1) * HEAD_STEP
        raise ValueError(
            f"query: its heads have {head_size} values, and a GPU computes multiples of {HEAD_STEP}; pad query, key and value with zeros to "
            f"{wanted}, multiply query by {(wanted / max(head_size, 1)) ** 0.5:.8g}, and take the first {head_size} values of the result"
        )


@functools.cache
def _on_gpu() -> ModuleType:
    """As `_products.on_gpu`, for attention."""
    from gauntlet.nvfp4 import _cuda_attention

    return _cuda_attention


def _checked(query: Any, key: Any, value: Any, scales: dict[str, Any], is_causal: bool, out_dtype: Any) -> Any:
    """Attention, after a look at each argument."""
    operands = {"query": query, "key": key, "value": value}
    for name, array in operands.items():
        _arrays.check(name, array, FORMATS, [None, None, None, None])
    device = _arrays.check_same_device(operands)
    dtype = _arrays.dtype_name(query)
    for name in ("key", "value"):
        found = _arrays.dtype_name(operands[name])
        if found != dtype:
            raise TypeError(f"{name}: its dtype is {found}, and query's is {dtype}; use one for all three")
    batch, heads, queries, head_size = (int(size) for size in query.shape)
    kv_heads, keys = int(key.shape[1]), int(key.shape[2])
    for name in ("key", "value"):
        _arrays.check(name, operands[name], FORMATS, [batch, kv_heads, keys, head_size])
    sizes = [(batch, heads, queries), (batch, kv_heads, keys), (batch, kv_heads, keys)]
    scaling, arrays = _scales(dtype, scales, sizes)
    output = _arrays.dtype_argument("out_dtype", out_dtype, "float16" if dtype in SCALED else dtype, query)
    if device != "cpu":
        check_head_size(head_size)
        return _on_gpu().attention(query, key, value, arrays, scaling, is_causal, output)
    if batch * max(heads, 1) > MAX_HEADS:
        raise ValueError(f"query: {batch} sequences of {heads} heads are more than {MAX_HEADS} heads in all; split the problem")
    flat = _by_head(arrays, scaling, sizes)
    data = _native.attention(
        (_arrays.flat_bytes(query), flat[0]),
        (_arrays.flat_bytes(key), flat[1]),
        (_arrays.flat_bytes(value), flat[2]),
        (batch, heads, kv_heads, queries, keys, head_size),
        (dtype, scaling, output),
        is_causal,
    )
    return _arrays.from_bytes(data, output, query.shape, query)


def _scales(dtype: str, scales: dict[str, Any], sizes: list[tuple[int, int, int]]) -> tuple[str, dict[str, Any]]:
    """Which values share a scale, and the scales as arrays; none for a type without them."""
    if dtype not in SCALED:
        given = [name for name, scale in scales.items() if scale is not None]
        if given:
            raise ValueError(f"{given[0]}: {dtype} has no scales; leave it out, or use float8_e4m3fn or int8")
        return "per-head", {}
    arrays = {}
    for name, scale in scales.items():
        if scale is None:
            raise ValueError(f"{name}: it is left out, and {dtype} has scales; give one number, or [batch, heads]")
        arrays[name] = scale if _arrays.is_array(scale) else np.asarray(scale, np.float32)
    shapes = {name: tuple(int(size) for size in array.shape) for name, array in arrays.items()}
    dimensions = {name: 0 if shape == (1,) else len(shape) for name, shape in shapes.items()}
    first = dimensions["query_scale"]
    for name, count in dimensions.items():
        if count != first:
            raise ValueError(f"{name}: it has {count} dimensions, and query_scale {first}; scale all three alike")
    if first == 0:
        return "per-tensor", arrays
    for (name, shape), (batch, heads, positions) in zip(shapes.items(), sizes, strict=True):
        wanted = (batch, heads, math.ceil(positions / SCALE_BLOCK))[: max(first, 2)]
        if shape != wanted:
            raise ValueError(f"{name}: its shape is {shape}; it must be {wanted}, or one number")
    return {2: "per-head", 3: "per-block"}[first], arrays


def _by_head(
    arrays: dict[str, Any], scaling: str, sizes: list[tuple[int, int, int]]
) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """The scales of query, key and value by head and block, on the CPU."""
    if not arrays:
        return [np.ones(batch * heads, np.float32) for batch, heads, _ in sizes]
    for name, array in arrays.items():
        _arrays.on_cpu(name, array)
    flat = [_arrays.flat_floats(array) for array in arrays.values()]
    if scaling == "per-tensor":
        return [np.full(batch * heads, one[0], np.float32) for one, (batch, heads, _) in zip(flat, sizes, strict=True)]
    return flat
