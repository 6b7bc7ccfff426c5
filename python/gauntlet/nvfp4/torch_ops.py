"""The products and attention as PyTorch operators, for `torch.compile` and graph capture. Importing this module imports torch.

``torch.ops.gauntlet.grouped_mm``, ``torch.ops.gauntlet.swiglu_grouped_mm``, ``torch.ops.gauntlet.attention`` and
``torch.ops.gauntlet.varlen_attention`` take tensors and plain numbers only, so that a compiler can trace them; the functions here
take what those of the package take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gauntlet.nvfp4 import _attention, _products, _varlen
from gauntlet.nvfp4._tensor import Tensor

__all__ = ["attention", "grouped_mm", "swiglu_grouped_mm", "varlen_attention"]

_RESULTS = (torch.float16, torch.bfloat16, torch.float32)


def grouped_mm(
    tokens: Tensor | torch.Tensor,
    weights: Tensor,
    sizes: Sequence[int] | None = None,
    *,
    offs: torch.Tensor | None = None,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """As `nvfp4.grouped_mm`, through the operator.

    Raises:
        As `nvfp4.grouped_mm`.
        ValueError: NVFP4 tokens come with `offs`, or there are no sizes.
    """
    operands = (*_parts(tokens), *_parts(weights), _sizes(tokens, sizes, offs), out_dtype)
    result: torch.Tensor = torch.ops.gauntlet.grouped_mm(*operands, offs=offs)
    return result


def swiglu_grouped_mm(
    tokens: Tensor | torch.Tensor,
    gate: Tensor,
    up: Tensor,
    sizes: Sequence[int] | None = None,
    *,
    offs: torch.Tensor | None = None,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """As `nvfp4.swiglu_grouped_mm`, through the operator.

    Raises:
        As `nvfp4.swiglu_grouped_mm`.
        ValueError: NVFP4 tokens come with `offs`, or there are no sizes.
    """
    operands = (*_parts(tokens), *_parts(gate), *_parts(up), _sizes(tokens, sizes, offs), out_dtype)
    result: torch.Tensor = torch.ops.gauntlet.swiglu_grouped_mm(*operands, offs=offs)
    return result


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    query_scale: float | torch.Tensor | None = None,
    key_scale: float | torch.Tensor | None = None,
    value_scale: float | torch.Tensor | None = None,
    is_causal: bool = False,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """As `nvfp4.attention`, through the operator.

    Raises:
        As `nvfp4.attention`.
        TypeError: Some scales are numbers, and others are not.
    """
    given, numbers = _alike(query_scale, key_scale, value_scale)
    if out_dtype is None:
        out_dtype = _default_result(query)
    result: torch.Tensor = torch.ops.gauntlet.attention(query, key, value, *given, numbers, is_causal, out_dtype)
    return result


def varlen_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    cu_seqlens_q: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    cu_seqlens_k: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    query_scale: float | torch.Tensor | None = None,
    key_scale: float | torch.Tensor | None = None,
    value_scale: float | torch.Tensor | None = None,
    is_causal: bool = False,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Attention on several sequences in one call, as `nvfp4.attention` computes each; arguments are named as FlashAttention's.

    Args:
        query: ``[positions, heads, head_size]``, the sequences one after another.
        key: ``[positions, kv_heads, head_size]``, or, with a block table, pages, ``[pages, page_size, kv_heads, head_size]``; the
            page size is a power of two. The last dimension of each operand has no gaps; others may.
        value: As `key`.
        cu_seqlens_q: int32, ``[sequences + 1]``: where each sequence begins in query, and the end of the last.
        max_seqlen_q: Most queries of a sequence. Of a longer one, queries beyond it may be left out.
        max_seqlen_k: About the most keys of a sequence; it decides how the work is split, not what is computed.
        cu_seqlens_k: As `cu_seqlens_q`, of key and value; not for pages.
        seqused_k: int32, ``[sequences]``: how many keys of each sequence count; for pages it is needed.
        block_table: int32, ``[sequences, most pages of a sequence]``: the pages of each, in their order.
        query_scale: float32 scales of query in float8_e4m3fn or int8: one number for all, or ``[sequences, heads]``.
        key_scale: The same for key, ``[sequences, kv_heads]``.
        value_scale: The same for value.
        is_causal: Whether query i of a sequence sees only keys up to ``i + keys - queries``.
        out_dtype: float16, bfloat16 or float32; by default that of query, or float16 if that is quantised.

    Returns:
        ``[positions, heads, head_size]``. Positions of no sequence are left as they were allocated.

    On a GPU the call is one launch or two that do not depend on the lengths, which the kernels read when they run: it may be captured in
    a graph and replayed with others. They are not checked.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A shape, stride, device or scale does not fit.
    """
    given, numbers = _alike(query_scale, key_scale, value_scale)
    if out_dtype is None:
        out_dtype = _default_result(query)
    lengths = (cu_seqlens_q, cu_seqlens_k, seqused_k, block_table, max_seqlen_q, max_seqlen_k)
    result: torch.Tensor = torch.ops.gauntlet.varlen_attention(
        query, key, value, *lengths, *given, numbers, is_causal, out_dtype
    )
    return result


def _alike(*scales: float | torch.Tensor | None) -> tuple[Sequence[float | torch.Tensor | None], list[float]]:
    """The scales of query, key and value as tensors, and as numbers, one of which there are."""
    numbers = [float(scale) for scale in scales if isinstance(scale, (int, float))]
    if len(numbers) not in (0, 3):
        raise TypeError("query_scale, key_scale, value_scale: only some are numbers; the operator takes three numbers or three tensors")
    return ((None, None, None) if numbers else scales), numbers


def _default_result(query: torch.Tensor) -> torch.dtype:
    return query.dtype if query.dtype in _RESULTS else torch.float16


def _parts(operand: Tensor | torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None, list[float]]:
    """An operand as the operators take it: values, scales, tensor scales."""
    if isinstance(operand, torch.Tensor):
        return operand, None, []
    return operand.values, operand.scales, list(operand.tensor_scales)


def _sizes(
    tokens: Tensor | torch.Tensor, sizes: Sequence[int] | None, offs: torch.Tensor | None
) -> list[int] | None:
    if offs is None and sizes is None:
        raise ValueError("sizes: left out; give the tokens of each group, or offs")
    if offs is not None and not isinstance(tokens, torch.Tensor):
        raise ValueError("offs: for NVFP4 tokens the operators take sizes; call nvfp4.grouped_mm, or give 16-bit tokens")
    return None if offs is not None or sizes is None else list(sizes)


_Parts = tuple[torch.Tensor, torch.Tensor, list[float]]


def _product(
    values: torch.Tensor,
    scales: torch.Tensor | None,
    tensor_scales: list[float],
    matrices: tuple[_Parts, ...],
    sizes: list[int] | None,
    out_dtype: torch.dtype,
    offs: torch.Tensor | None,
) -> torch.Tensor:
    if scales is not None and sizes is not None and values.is_cuda and out_dtype in _RESULTS:
        from gauntlet.nvfp4 import _cuda

        factors = ((own, len(sizes)) for _, _, own in matrices)
        operands = [tensor for one in matrices for tensor in one[:2]]
        if _cuda.fits(values, scales, operands, sizes) and _cuda.are_scales((tensor_scales, 1), *factors):
            first, *others = (_cuda.Matrices.of(*one) for one in matrices)
            second = others[0] if others else None
            return _cuda.enqueue(values, scales, tensor_scales, first, second, sizes, out_dtype)
    tokens = values if scales is None else Tensor(values, scales, tuple(tensor_scales))
    weights = [Tensor(own_values, own_scales, tuple(own)) for own_values, own_scales, own in matrices]
    product: Callable[..., torch.Tensor] = _products.grouped_mm if len(weights) == 1 else _products.swiglu_grouped_mm
    return product(tokens, *weights, sizes, offs=offs, out_dtype=out_dtype)


def _grouped_mm(
    values: torch.Tensor,
    scales: torch.Tensor | None,
    tensor_scales: list[float],
    weight_values: torch.Tensor,
    weight_scales: torch.Tensor,
    weight_tensor_scales: list[float],
    sizes: list[int] | None,
    out_dtype: torch.dtype,
    *,
    offs: torch.Tensor | None = None,
) -> torch.Tensor:
    weights = (weight_values, weight_scales, weight_tensor_scales)
    return _product(values, scales, tensor_scales, (weights,), sizes, out_dtype, offs)


def _swiglu_grouped_mm(
    values: torch.Tensor,
    scales: torch.Tensor | None,
    tensor_scales: list[float],
    gate_values: torch.Tensor,
    gate_scales: torch.Tensor,
    gate_tensor_scales: list[float],
    up_values: torch.Tensor,
    up_scales: torch.Tensor,
    up_tensor_scales: list[float],
    sizes: list[int] | None,
    out_dtype: torch.dtype,
    *,
    offs: torch.Tensor | None = None,
) -> torch.Tensor:
    both = (gate_values, gate_scales, gate_tensor_scales), (up_values, up_scales, up_tensor_scales)
    return _product(values, scales, tensor_scales, both, sizes, out_dtype, offs)


def _attention_of(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    query_scale: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    numbers: list[float],
    is_causal: bool,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    scales = numbers or (query_scale, key_scale, value_scale)
    named = dict(zip(("query_scale", "key_scale", "value_scale"), scales, strict=True))
    result: torch.Tensor = _attention.attention(query, key, value, **named, is_causal=is_causal, out_dtype=out_dtype)
    return result


def _varlen_attention_of(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor | None,
    seqused_k: torch.Tensor | None,
    block_table: torch.Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    query_scale: torch.Tensor | None,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
    numbers: list[float],
    is_causal: bool,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    lengths = _varlen.Lengths(cu_seqlens_q, cu_seqlens_k, seqused_k, block_table, max_seqlen_q, max_seqlen_k)
    scales = (numbers[0], numbers[1], numbers[2]) if numbers else (query_scale, key_scale, value_scale)
    return _varlen.varlen_attention((query, key, value), lengths, scales, is_causal, out_dtype)


def _fake_attention(query: torch.Tensor, *others: Any) -> torch.Tensor:
    return query.new_empty(query.shape, dtype=others[-1])


def _fake(
    values: torch.Tensor, scales: Any, tensor_scales: Any, weights: torch.Tensor, *others: Any, offs: torch.Tensor | None = None
) -> torch.Tensor:
    """A result without values: what the operators return, for tracing."""
    return values.new_empty((values.shape[0], weights.shape[-2]), dtype=others[-1])


def define(
    name: str, arguments: str, work: Callable[..., torch.Tensor], fake: Callable[..., torch.Tensor]
) -> None:
    """Defines an operator for all devices. `torch.library.custom_op` checks aliasing in each call, which these operators
    do not need, because they return new memory and write nothing else: with it, a call through the functions above took
    135 us of the host in place of 73 (H100 machines, 2026-11-25, not in one run)."""
    torch.library.define(
        f"gauntlet::{name}", f"({arguments}) -> Tensor", tags=(torch.Tag.needs_fixed_stride_order,)
    )
    for device in ("CPU", "CUDA"):
        torch.library.impl(f"gauntlet::{name}", device)(work)
    torch.library.register_fake(f"gauntlet::{name}")(fake)


def _weights(*names: str) -> str:
    """The arguments of NVFP4 weights whose names begin so."""
    return ", ".join(f"Tensor {own}values, Tensor {own}scales, float[] {own}tensor_scales" for own in names)


_TOKENS = "Tensor values, Tensor? scales, float[] tensor_scales"
_ROUTING = "SymInt[]? sizes, ScalarType out_dtype, *, Tensor? offs=None"
define("grouped_mm", f"{_TOKENS}, {_weights('weight_')}, {_ROUTING}", _grouped_mm, _fake)
define("swiglu_grouped_mm", f"{_TOKENS}, {_weights('gate_', 'up_')}, {_ROUTING}", _swiglu_grouped_mm, _fake)

_SCALES = "Tensor? query_scale, Tensor? key_scale, Tensor? value_scale, float[] numbers"
define(
    "attention",
    f"Tensor query, Tensor key, Tensor value, {_SCALES}, bool is_causal, ScalarType out_dtype",
    _attention_of,
    _fake_attention,
)
define(
    "varlen_attention",
    "Tensor query, Tensor key, Tensor value, Tensor cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? seqused_k, Tensor? block_table, "
    f"SymInt max_seqlen_q, SymInt max_seqlen_k, {_SCALES}, bool is_causal, ScalarType out_dtype",
    _varlen_attention_of,
    _fake_attention,
)
