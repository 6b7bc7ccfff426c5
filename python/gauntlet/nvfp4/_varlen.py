"""Attention on sequences of several lengths, with keys and values one after another or in pages. Imports torch."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, TypeAlias

import torch

from gauntlet import _native
from gauntlet.nvfp4 import _attention
from gauntlet.nvfp4._cuda import NAMES, current_stream, libraries

_HALVES = (torch.float16, torch.bfloat16)
_FORMATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.int8: "int8",
}
_OPERANDS = ("query", "key", "value")
Scale: TypeAlias = "float | torch.Tensor | None"


class Lengths(NamedTuple):
    """Where sequences and their keys are: as the arguments of `torch_ops.varlen_attention`."""

    cu_seqlens_q: torch.Tensor
    cu_seqlens_k: torch.Tensor | None
    seqused_k: torch.Tensor | None
    block_table: torch.Tensor | None
    max_seqlen_q: int
    max_seqlen_k: int

    def tensors(self) -> tuple[torch.Tensor | None, ...]:
        return self[:4]


def varlen_attention(
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    lengths: Lengths,
    scales: tuple[Scale, Scale, Scale],
    is_causal: bool,
    out_dtype: torch.dtype,
    output: torch.Tensor | None = None,
) -> torch.Tensor:
    """As `torch_ops.varlen_attention`; the scales are all numbers, all tensors, or all left out. `output`, contiguous and of the shape of
    query and the type of results, is written if it is given, and else made."""
    query, key, value = operands
    given = [tensor for tensor in lengths.tensors() if tensor is not None]
    form = _form(
        tuple((one.dtype, one.shape, one.stride(), one.device) for one in operands),
        tuple((one.dtype, one.shape, one.device, one.is_contiguous()) for one in given),
        tuple(tensor is not None for tensor in lengths.tensors()[1:]),
        tuple(None if scale is None else tuple(scale.shape) if isinstance(scale, torch.Tensor) else float for scale in scales),
        (lengths.max_seqlen_q, lengths.max_seqlen_k),
        bool(is_causal),
        out_dtype,
    )
    if output is None:
        output = torch.empty(query.shape, dtype=out_dtype, device=query.device)
    if not query.is_cuda:
        _on_cpu(output, operands, lengths, scales, is_causal)
        return output
    device = query.get_device()
    addresses, numbers = _scales(scales, device)
    libraries.of[device].enqueue_ragged_attention(
        current_stream(device),
        torch.cuda.is_current_stream_capturing(),
        form.shape,
        (query.data_ptr(), key.data_ptr(), value.data_ptr(), output.data_ptr()),
        addresses,
        numbers,
        (
            lengths.cu_seqlens_q.data_ptr(),
            _address(lengths.cu_seqlens_k),
            _address(lengths.seqused_k),
            _address(lengths.block_table),
        ),
        form.pages,
        form.strides,
    )
    return output


def _address(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


class _Form(NamedTuple):
    shape: _native.RaggedShape
    pages: tuple[int, int]
    strides: list[tuple[int, int, int]]


@functools.lru_cache(maxsize=1024)
def _form(
    operands: tuple[tuple[torch.dtype, torch.Size, tuple[int, ...], torch.device], ...],
    lengths: tuple[tuple[torch.dtype, torch.Size, torch.device, bool], ...],
    given: tuple[bool, ...],
    scales: tuple[object, ...],
    longest: tuple[int, int],
    is_causal: bool,
    output: torch.dtype,
) -> _Form:
    """What calls of one form have in common, after a look at each argument."""
    dtype, shape, _, device = operands[0]
    has_begins, has_counts, is_paged = given
    if is_paged and (has_begins or not has_counts):
        raise ValueError("block_table: with pages, give seqused_k and not cu_seqlens_k")
    if not is_paged and not has_begins:
        raise ValueError("cu_seqlens_k: it is left out; give it, or pages with seqused_k and block_table")
    if dtype not in _FORMATS:
        raise TypeError(f"query: its dtype is {dtype}; use float16, bfloat16, float8_e4m3fn or int8")
    for name, (own, sizes, strides, place) in zip(_OPERANDS, operands, strict=True):
        dimensions = 4 if is_paged and name != "query" else 3
        if own is not dtype:
            raise TypeError(f"{name}: its dtype is {own}, and query's is {dtype}; use one for all three")
        if place != device:
            raise ValueError(f"{name}: it is on {place}, and query on {device}; move it with .to('{device}')")
        if len(sizes) != dimensions or sizes[-1] != shape[-1]:
            raise ValueError(f"{name}: its shape is {tuple(sizes)}; it must have {dimensions} dimensions, the last of {shape[-1]}")
        if strides[-1] != 1:
            raise ValueError(f"{name}: its last dimension has gaps; call .contiguous()")
    if operands[1][1] != operands[2][1]:
        raise ValueError(f"value: its shape is {tuple(operands[2][1])}, and key's {tuple(operands[1][1])}; they must be alike")
    if device.type == "cuda":
        _attention.check_head_size(shape[-1])
    batch = lengths[0][1].numel() - 1
    sizes_of: dict[str, tuple[int, ...]] = {"cu_seqlens_q": (batch + 1,)}
    if has_begins:
        sizes_of["cu_seqlens_k"] = (batch + 1,)
    if has_counts:
        sizes_of["seqused_k"] = (batch,)
    if is_paged:
        sizes_of["block_table"] = (batch, lengths[-1][1][-1])
    for (name, wanted), (own, sizes, place, is_contiguous) in zip(sizes_of.items(), lengths, strict=True):
        if own is not torch.int32:
            raise TypeError(f"{name}: its dtype is {own}; use int32")
        if tuple(sizes) != wanted:
            raise ValueError(f"{name}: its shape is {tuple(sizes)}; for {batch} sequences it must be {wanted}")
        if place != device or not is_contiguous:
            raise ValueError(f"{name}: it must be contiguous and on {device}, as query")
    heads, kv_heads = shape[1], operands[1][1][-2]
    scaling = _scaling(dtype, scales, [(batch, heads), (batch, kv_heads), (batch, kv_heads)])
    if output not in NAMES:
        raise TypeError(f"out_dtype: {output} is no float16, bfloat16 or float32")
    page = operands[1][1][1] if is_paged else 1
    if page & (page - 1) or page == 0:
        raise ValueError(f"key: its pages have {page} positions; that must be a power of two")
    bytes_of = dtype.itemsize
    every = [tuple(stride * bytes_of for stride in strides[:-1]) for _, _, strides, _ in operands]
    return _Form(
        _native.RaggedShape((batch, heads, kv_heads, *longest, shape[-1]), (_FORMATS[dtype], scaling, NAMES[output]), is_causal),
        (lengths[-1][1][-1] if is_paged else 0, page.bit_length() - 1),
        [(own[0], own[1], own[2]) if len(own) == 3 else (0, own[0], own[1]) for own in every],
    )


def _scaling(dtype: torch.dtype, scales: tuple[object, ...], wanted: list[tuple[int, int]]) -> str:
    """Which values share a scale."""
    names = [f"{name}_scale" for name in _OPERANDS]
    if dtype in _HALVES:
        for name, scale in zip(names, scales, strict=True):
            if scale is not None:
                raise ValueError(f"{name}: {dtype} has no scales; leave it out, or use float8_e4m3fn or int8")
        return "per-head"
    for name, scale in zip(names, scales, strict=True):
        if scale is None:
            raise ValueError(f"{name}: it is left out, and {dtype} has scales; give one number, or [sequences, heads]")
    if all(scale in (float, (), (1,)) for scale in scales):
        return "per-tensor"
    for name, scale, shape in zip(names, scales, wanted, strict=True):
        if scale != shape:
            raise ValueError(f"{name}: its shape is {scale}; it must be {shape}, or one number for all three")
    return "per-head"


def _scales(scales: tuple[Scale, ...], device: int) -> tuple[list[int] | None, list[float] | None]:
    """The addresses of those in the device's memory, or numbers, or neither."""
    tensors = [scale for scale in scales if isinstance(scale, torch.Tensor)]
    for name, scale in zip(_OPERANDS, tensors, strict=False):
        if scale.dtype is not torch.float32 or scale.get_device() != device or not scale.is_contiguous():
            raise ValueError(f"{name}_scale: it must be contiguous float32 on the device of query")
    if tensors:
        return [scale.data_ptr() for scale in tensors], None
    numbers = [float(scale) for scale in scales if scale is not None]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"query_scale, key_scale, value_scale: {numbers} are not all finite; give finite scales")
    return None, numbers or None


def _on_cpu(
    output: torch.Tensor, operands: tuple[torch.Tensor, ...], lengths: Lengths, scales: tuple[Scale, ...], is_causal: bool
) -> None:
    """One sequence after another."""
    begins = lengths.cu_seqlens_q.tolist()
    for index, (begin, end) in enumerate(zip(begins, begins[1:], strict=False)):
        keys = [_keys(one, lengths, index) for one in operands[1:]]
        queries = slice(begin, end)
        if len(keys[0]) == 0:
            output[queries] = 0
            continue
        by_head = [one.transpose(0, 1)[None].contiguous() for one in (operands[0][queries], *keys)]
        named = {
            f"{name}_scale": scale[index : index + 1] if isinstance(scale, torch.Tensor) and scale.dim() == 2 else scale
            for name, scale in zip(_OPERANDS, scales, strict=True)
        }
        result = _attention.attention(*by_head, **named, is_causal=is_causal, out_dtype=output.dtype)
        output[queries] = result[0].transpose(0, 1)


def _keys(operand: torch.Tensor, lengths: Lengths, index: int) -> torch.Tensor:
    """The positions of a sequence's keys or values."""
    count = -1 if lengths.seqused_k is None else int(lengths.seqused_k[index])
    if lengths.block_table is not None:
        pages = lengths.block_table[index, : -(-count // operand.shape[1])].long()
        return operand[pages].flatten(0, 1)[:count]
    assert lengths.cu_seqlens_k is not None, "one of the two is given"
    begin, end = lengths.cu_seqlens_k[index : index + 2].tolist()
    return operand[begin : end if count < 0 else begin + count]
