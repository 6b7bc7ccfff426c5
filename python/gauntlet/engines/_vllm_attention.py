"""Paged attention in vLLM. Imports vllm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
)
from vllm.v1.attention.ops.triton_reshape_and_cache_flash import triton_reshape_and_cache_flash

from gauntlet.engines.vllm import NAME
from gauntlet.nvfp4 import _varlen
from gauntlet.nvfp4._attention import HEAD_STEP, MAX_HEAD_SIZE

PAGES = (16, 32, 64, 128, 256)
"""Positions of a page that vLLM may choose; the kernel takes powers of two."""


@dataclass
class Metadata(AttentionMetadata):
    """Where the sequences of a batch and their keys are."""

    positions: int
    lengths: _varlen.Lengths


class Builder(AttentionMetadataBuilder[Metadata]):
    """Makes the metadata, which refer to vLLM's own tensors: a graph reads what is in them when it is replayed."""

    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata, fast_build: bool = False
    ) -> Metadata:
        """As vLLM describes."""
        batch = common_attn_metadata
        if batch.causal is not True:
            raise ValueError(f"--attention-backend {NAME.upper()}: only causal attention is computed; choose another backend")
        lengths = _varlen.Lengths(
            cu_seqlens_q=batch.query_start_loc,
            cu_seqlens_k=None,
            seqused_k=batch.seq_lens,
            block_table=batch.block_table_tensor,
            max_seqlen_q=batch.max_query_len,
            max_seqlen_k=batch.max_seq_len,
        )
        return Metadata(batch.num_actual_tokens, lengths)


class Implementation(AttentionImpl[Metadata]):
    """A layer's attention on keys and values in pages.

    Raises:
        ValueError: It is attention of a kind that the kernel does not compute.
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        **others: Any,
    ) -> None:
        self.num_heads, self.head_size, self.scale = num_heads, head_size, scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype, self.kv_sharing_target_layer_name = kv_cache_dtype, kv_sharing_target_layer_name
        refused = {
            "alibi slopes": alibi_slopes is not None,
            "a sliding window": sliding_window is not None,
            "a soft cap of logits": bool(logits_soft_cap),
            f"attention of type {attn_type}": attn_type != AttentionType.DECODER,
            f"a scale of {scale} in place of 1 / sqrt({head_size})": not math.isclose(scale, head_size**-0.5, rel_tol=1e-5),
            **{name: value is not None and value is not False for name, value in others.items()},
        }
        for name, is_given in refused.items():
            if is_given:
                raise ValueError(f"--attention-backend {NAME.upper()}: {name} is not computed; choose another backend")

    def _pages(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values, ``[pages, page_size, kv_heads, head_size]``, of vLLM's ``[pages, kv_heads, page_size, 2 * head_size]``."""
        key, value = torch.split(kv_cache.transpose(1, 2), self.head_size, dim=-1)
        return key, value

    def do_kv_cache_update(
        self, layer: Any, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor
    ) -> None:
        """Writes keys and values of new positions into their pages; a slot of -1 has none."""
        pages = self._pages(kv_cache)
        if kv_cache.is_cuda:
            scales = layer._k_scale, layer._v_scale
            triton_reshape_and_cache_flash(key, value, *pages, slot_mapping, self.kv_cache_dtype, *scales)
            return
        slots = slot_mapping[slot_mapping >= 0]
        size = pages[0].shape[1]
        for page, new in zip(pages, (key, value), strict=True):
            page[slots // size, slots % size] = new[: len(slot_mapping)][slot_mapping >= 0]

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: Metadata,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of a batch, written into `output`; zeros in vLLM's run that measures memory."""
        if output_scale is not None or output_block_scale is not None:
            raise ValueError(f"--attention-backend {NAME.upper()}: results are not quantised; choose another backend")
        if attn_metadata is None:
            return output.fill_(0)
        count = attn_metadata.positions
        operands = (query[:count], *self._pages(kv_cache))
        _varlen.varlen_attention(
            operands, attn_metadata.lengths, (None, None, None), True, output.dtype, output=output[:count]
        )
        return output


class Backend(AttentionBackend):
    """What vLLM asks before it chooses an attention backend."""

    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name() -> str:
        return NAME.upper()

    @staticmethod
    def get_impl_cls() -> type[Implementation]:
        return Implementation

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[Any]:
        return list(PAGES)

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % HEAD_STEP == 0 and 0 < head_size <= MAX_HEAD_SIZE

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        is_hopper: bool = capability.major == 9
        return is_hopper
