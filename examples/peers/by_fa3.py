"""FlashAttention-3, with its own choice of splits and packing (the module of its wheel, fa3_fwd_interface)."""

from fa3_fwd_interface import flash_attn_func
from shapes import is_causal


def attention(query, key, value):
    """Its layout has positions before heads: it is given views, and reads rows of a head where they lie."""
    out = flash_attn_func(*(one.transpose(1, 2) for one in (query, key, value)), causal=is_causal(query, key), num_splits=0)
    return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)
