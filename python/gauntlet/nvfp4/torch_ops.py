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
    """As `nvfp4.grouped_mm`, through the operator; for tokens without scales ``torch.ops.gauntlet.grouped_mm_of_halves``, and
    ``torch.ops.gauntlet.routed_grouped_mm`` if they come with `offs`.

    Raises:
        As `nvfp4.grouped_mm`.
        ValueError: NVFP4 tokens come with `offs`, or there are no sizes.
    """
    if isinstance(tokens, torch.Tensor):
        matrices = (weights.values, weights.scales, list(weights.tensor_scales))
        if offs is not None:
            routed: torch.Tensor = torch.ops.gauntlet.routed_grouped_mm(tokens, *matrices, offs, out_dtype)
            return routed
        halves: torch.Tensor = torch.ops.gauntlet.grouped_mm_of_halves(tokens, *matrices, _sizes(sizes), out_dtype)
        return halves
    sizes = _sizes(sizes, offs)
    operands = (tokens.values, tokens.scales, list(tokens.tensor_scales))
    other = (weights.values, weights.scales, list(weights.tensor_scales))
    result: torch.Tensor = torch.ops.gauntlet.grouped_mm(*operands, *other, sizes, out_dtype)
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
    """As `nvfp4.swiglu_grouped_mm`, through the operator; for tokens without scales
    ``torch.ops.gauntlet.swiglu_grouped_mm_of_halves``, and ``torch.ops.gauntlet.routed_swiglu_grouped_mm`` if they come with
    `offs`.

    Raises:
        As `nvfp4.swiglu_grouped_mm`.
        ValueError: NVFP4 tokens come with `offs`, or there are no sizes.
    """
    if isinstance(tokens, torch.Tensor):
        matrices = (gate.values, gate.scales, list(gate.tensor_scales), up.values, up.scales, list(up.tensor_scales))
        if offs is not None:
            routed: torch.Tensor = torch.ops.gauntlet.routed_swiglu_grouped_mm(tokens, *matrices, offs, out_dtype)
            return routed
        halves: torch.Tensor = torch.ops.gauntlet.swiglu_grouped_mm_of_halves(tokens, *matrices, _sizes(sizes), out_dtype)
        return halves
    sizes = _sizes(sizes, offs)
    operands = (tokens.values, tokens.scales, list(tokens.tensor_scales))
    first = (gate.values, gate.scales, list(gate.tensor_scales))
    second = (up.values, up.scales, list(up.tensor_scales))
    result: torch.Tensor = torch.ops.gauntlet.swiglu_grouped_mm(*operands, *first, *second, sizes, out_dtype)
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
        max_seqlen_q: Most queries of a sequence. Queries of a longer one are not computed beyond it.
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

    On a GPU the call is one launch that does not depend on the lengths, which the kernel reads when it runs: it may be captured in
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


def _sizes(sizes: Sequence[int] | None, offs: torch.Tensor | None = None) -> list[int]:
    if offs is not None:
        raise ValueError("offs: for NVFP4 tokens the operators take sizes; call nvfp4.grouped_mm, or give 16-bit tokens")
    if sizes is None:
        raise ValueError("sizes: left out; give the tokens of each group, or offs")
    return list(sizes)


def _grouped_mm(
    values: torch.Tensor,
    scales: torch.Tensor,
    tensor_scales: list[float],
    weight_values: torch.Tensor,
    weight_scales: torch.Tensor,
    weight_tensor_scales: list[float],
    sizes: list[int],
    out_dtype: torch.dtype,
) -> torch.Tensor:
    if values.is_cuda and out_dtype in _RESULTS:
        from gauntlet.nvfp4 import _cuda

        factors = (tensor_scales, 1), (weight_tensor_scales, len(sizes))
        if _cuda.fits(values, scales, (weight_values, weight_scales), sizes) and _cuda.are_scales(*factors):
            first = _cuda.Matrices.of(weight_values, weight_scales, weight_tensor_scales)
            return _cuda.enqueue(values, scales, tensor_scales, first, None, sizes, out_dtype)
    tokens = Tensor(values, scales, tuple(tensor_scales))
    weights = Tensor(weight_values, weight_scales, tuple(weight_tensor_scales))
    result: torch.Tensor = _products.grouped_mm(tokens, weights, sizes, out_dtype=out_dtype)
    return result


def _grouped_mm_of_halves(
    tokens: torch.Tensor,
    values: torch.Tensor,
    scales: torch.Tensor,
    tensor_scales: list[float],
    routing: list[int] | torch.Tensor,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    weights = Tensor(values, scales, tuple(tensor_scales))
    result: torch.Tensor = _products.grouped_mm(tokens, weights, **_routed(routing), out_dtype=out_dtype)
    return result


def _swiglu_grouped_mm_of_halves(
    tokens: torch.Tensor,
    gate_values: torch.Tensor,
    gate_scales: torch.Tensor,
    gate_tensor_scales: list[float],
    up_values: torch.Tensor,
    up_scales: torch.Tensor,
    up_tensor_scales: list[float],
    routing: list[int] | torch.Tensor,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    gate = Tensor(gate_values, gate_scales, tuple(gate_tensor_scales))
    up = Tensor(up_values, up_scales, tuple(up_tensor_scales))
    result: torch.Tensor = _products.swiglu_grouped_mm(tokens, gate, up, **_routed(routing), out_dtype=out_dtype)
    return result


def _routed(routing: list[int] | torch.Tensor) -> dict[str, Any]:
    """The products' argument for the tokens of each group: a tensor has the ends of the groups, a list their sizes."""
    return {"offs" if isinstance(routing, torch.Tensor) else "sizes": routing}


def _fake_of_halves(tokens: torch.Tensor, values: torch.Tensor, *others: Any) -> torch.Tensor:
    return tokens.new_empty((tokens.shape[0], values.shape[-2]), dtype=others[-1])


def _swiglu_grouped_mm(
    values: torch.Tensor,
    scales: torch.Tensor,
    tensor_scales: list[float],
    gate_values: torch.Tensor,
    gate_scales: torch.Tensor,
    gate_tensor_scales: list[float],
    up_values: torch.Tensor,
    up_scales: torch.Tensor,
    up_tensor_scales: list[float],
    sizes: list[int],
    out_dtype: torch.dtype,
) -> torch.Tensor:
    if values.is_cuda and out_dtype in _RESULTS:
        from gauntlet.nvfp4 import _cuda

        factors = (tensor_scales, 1), (gate_tensor_scales, len(sizes)), (up_tensor_scales, len(sizes))
        matrices = (gate_values, gate_scales, up_values, up_scales)
        if _cuda.fits(values, scales, matrices, sizes) and _cuda.are_scales(*factors):
            first = _cuda.Matrices.of(gate_values, gate_scales, gate_tensor_scales)
            second = _cuda.Matrices.of(up_values, up_scales, up_tensor_scales)
            return _cuda.enqueue(values, scales, tensor_scales, first, second, sizes, out_dtype)
    tokens = Tensor(values, scales, tuple(tensor_scales))
    gate = Tensor(gate_values, gate_scales, tuple(gate_tensor_scales))
    up = Tensor(up_values, up_scales, tuple(up_tensor_scales))
    result: torch.Tensor = _products.swiglu_grouped_mm(tokens, gate, up, sizes, out_dtype=out_dtype)
    return result


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


def _fake(values: torch.Tensor, scales: Any, tensor_scales: Any, weights: torch.Tensor, *others: Any) -> torch.Tensor:
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


def _register(
    name: str,
    operands: str,
    work: Callable[..., torch.Tensor],
    fake: Callable[..., torch.Tensor],
    routing: str = "SymInt[] sizes",
) -> None:
    """Defines a product."""
    define(name, f"{operands}, {routing}, ScalarType out_dtype", work, fake)


def _tensors(*names: str) -> str:
    """The arguments of NVFP4 tensors whose names begin so."""
    return ", ".join(f"Tensor {own}values, Tensor {own}scales, float[] {own}tensor_scales" for own in names)


_register("grouped_mm", _tensors("", "weight_"), _grouped_mm, _fake)
_register("swiglu_grouped_mm", _tensors("", "gate_", "up_"), _swiglu_grouped_mm, _fake)
_HALVES = f"Tensor tokens, {_tensors('')}"
_register("grouped_mm_of_halves", _HALVES, _grouped_mm_of_halves, _fake_of_halves)
_register("routed_grouped_mm", _HALVES, _grouped_mm_of_halves, _fake_of_halves, "Tensor offs")

_DUAL_HALVES = f"Tensor tokens, {_tensors('gate_', 'up_')}"
_register("swiglu_grouped_mm_of_halves", _DUAL_HALVES, _swiglu_grouped_mm_of_halves, _fake_of_halves)
_register("routed_swiglu_grouped_mm", _DUAL_HALVES, _swiglu_grouped_mm_of_halves, _fake_of_halves, "Tensor offs")

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
