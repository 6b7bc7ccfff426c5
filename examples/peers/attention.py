"""Attention in bf16. A causal mask ends where queries and keys end."""

import math

import torch
from shapes import ATTENTION, DEVICE, SMALL_ATTENTION, cases as listed, is_causal

cases = listed(SMALL_ATTENTION, ATTENTION)
tolerance = {"rtol": 1.6e-2, "atol": 1e-2, "nrmse": 1e-2, "bias": 1e-3}


def generate(batch, heads, kv_heads, queries, keys, size, causal, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    shapes = {"query": (batch, heads, queries), "key": (batch, kv_heads, keys), "value": (batch, kv_heads, keys)}
    return {name: torch.randn(*shape, size, device=DEVICE, dtype=torch.bfloat16, generator=generator) for name, shape in shapes.items()}


def reference(query, key, value):
    batch, heads, queries, size = query.shape
    kv_heads, keys = key.shape[1:3]
    hidden = torch.ones(queries, keys, device=query.device, dtype=torch.bool).triu(1 + keys - queries)
    result = torch.empty_like(query)
    for sequence in range(batch):
        for head in range(heads):
            shared = head * kv_heads // heads
            scores = query[sequence, head].double() @ key[sequence, shared].double().T / math.sqrt(size)
            if is_causal(query, key):
                scores.masked_fill_(hidden, -math.inf)
            result[sequence, head] = (scores.softmax(-1) @ value[sequence, shared].double()).to(result.dtype)
    return {"y": result}
