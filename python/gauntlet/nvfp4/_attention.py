"""Attention on quantised operands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gauntlet import _native
from gauntlet.nvfp4 import _arrays

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
        query: ``[batch, heads, queries, head_size]``: float16, bfloat16, or, with scales, float8_e4m3fn or int8.
        key: ``[batch, kv_heads, keys, head_size]``; heads are a multiple of kv_heads.
        value: As `key`.
        query_scale: float32 scales of query in float8_e4m3fn or int8: one number for all, ``[batch, heads]``, or
            ``[batch, heads, ceil(queries / 64)]``. The three scales have the same number of dimensions.
        key_scale: The same for key.
        value_scale: The same for value.
        is_causal: Whether query i sees only keys up to ``i + keys - queries``: the last query sees all of them, as
            when decoding. (PyTorch's `scaled_dot_product_attention` aligns the first ones if lengths differ.)
        out_dtype: float16, bfloat16 or float32; by default that of query, or float16 if that is quantised.

    Returns:
        ``[batch, heads, queries, head_size]``, of the query's library.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A shape, stride, device or scale does not fit, or a value is not finite.
    """
    operands = {"query": query, "key": key, "value": value}
    for name, array in operands.items():
        _arrays.check(name, array, FORMATS, [None, None, None, None])
    device = _arrays.check_same_device(operands)
    if device != "cpu":
        raise ValueError(
            f"query: it is on {device}, and attention is computed on the CPU only so far; move the operands with .cpu()"
        )
    dtype = _arrays.dtype_name(query)
    for name in ("key", "value"):
        found = _arrays.dtype_name(operands[name])
        if found != dtype:
            raise TypeError(f"{name}: its dtype is {found}, and query's is {dtype}; use one for all three")
    batch, heads, queries, head_size = (int(size) for size in query.shape)
    kv_heads, keys = int(key.shape[1]), int(key.shape[2])
    for name in ("key", "value"):
        _arrays.check(name, operands[name], FORMATS, [batch, kv_heads, keys, head_size])
    scales = {"query_scale": query_scale, "key_scale": key_scale, "value_scale": value_scale}
    scaling, flat = _scales(dtype, scales, [(batch, heads, queries), (batch, kv_heads, keys), (batch, kv_heads, keys)])
    output = _arrays.dtype_argument("out_dtype", out_dtype, "float16" if dtype in SCALED else dtype, query)
    data = _native.attention(
        (_arrays.flat_bytes(query), flat[0]),
        (_arrays.flat_bytes(key), flat[1]),
        (_arrays.flat_bytes(value), flat[2]),
        (batch, heads, kv_heads, queries, keys, head_size),
        (dtype, scaling, output),
        is_causal,
    )
    return _arrays.from_bytes(data, output, query.shape, query)


def _scales(
    dtype: str, scales: dict[str, Any], sizes: list[tuple[int, int, int]]
) -> tuple[str, list[np.ndarray[Any, np.dtype[np.float32]]]]:
    """Which values share a scale, and the scales of query, key and value by head and block."""
    if dtype not in SCALED:
        given = [name for name, scale in scales.items() if scale is not None]
        if given:
            raise ValueError(f"{given[0]}: {dtype} has no scales; leave it out, or use float8_e4m3fn or int8")
        return "per-head", [np.ones(batch * heads, np.float32) for batch, heads, _ in sizes]
    arrays = {}
    for name, scale in scales.items():
        if scale is None:
            raise ValueError(f"{name}: it is left out, and {dtype} has scales; give one number, or [batch, heads]")
        array = _arrays.flat_floats(scale).reshape(tuple(scale.shape)) if _arrays.is_torch(scale) else scale
        arrays[name] = np.asarray(array, np.float32)
    dimensions = {name: array.ndim if array.size != 1 or array.ndim > 1 else 0 for name, array in arrays.items()}
    first = dimensions["query_scale"]
    for name, count in dimensions.items():
        if count != first:
            raise ValueError(f"{name}: it has {count} dimensions, and query_scale {first}; scale all three alike")
    flat = []
    for (name, array), (batch, heads, positions) in zip(arrays.items(), sizes, strict=True):
        if first == 0:
            flat.append(np.full(batch * heads, array.reshape(-1)[0], np.float32))
            continue
        wanted = (batch, heads, math.ceil(positions / SCALE_BLOCK))[: max(first, 2)]
        if array.shape != wanted:
            raise ValueError(f"{name}: its shape is {array.shape}; it must be {wanted}, or one number")
        flat.append(np.ascontiguousarray(array).reshape(-1))
    return {0: "per-tensor", 2: "per-head", 3: "per-block"}[first], flat
