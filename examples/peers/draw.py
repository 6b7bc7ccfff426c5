#!/usr/bin/env python3
"""Draws cases at random from configurations of published models, and prints them for drawn.json.

    python3 draw.py SEED > drawn.json
"""

import json
import math
import random
import sys

COUNT = 3
# The operands of a call cross from the judge to the kernel: at most so many elements of tokens or of keys.
MAX_ELEMENTS, MAX_WEIGHTS = 1 << 23, 1 << 31
# Experts, experts of a token, hidden and intermediate size.
MIXTURES = {
    "deepseek-v3": (256, 8, 7168, 2048), "deepseek-v2": (160, 6, 5120, 1536), "qwen3-30b": (128, 8, 2048, 768),
    "qwen3-235b": (128, 8, 4096, 1536), "glm-4.5": (160, 8, 5120, 1536), "gpt-oss-120b": (128, 4, 2880, 2880),
    "kimi-k2": (384, 8, 7168, 2048), "mixtral-8x7b": (8, 2, 4096, 14336), "olmoe": (64, 8, 2048, 1024),
    "phi-3.5-moe": (16, 2, 4096, 6400),
}
# Query heads, key heads, head size.
HEADS = {
    "llama-3-8b": (32, 8, 128), "llama-3-70b": (64, 8, 128), "qwen3-30b": (32, 4, 128), "qwen3-235b": (64, 4, 128),
    "gpt-oss-120b": (64, 8, 64), "glm-4.5": (96, 8, 128),
}


def between(draw, low, high):
    """Uniform on a logarithmic scale."""
    return round(2 ** draw.uniform(math.log2(low), math.log2(high)))


def products(draw):
    """Products of a rank that holds a part of the experts, with tokens dealt by Zipf's law with exponent 0.6."""
    while True:
        name, (experts, chosen, hidden, inner) = draw.choice(list(MIXTURES.items()))
        parts, tokens = draw.choice([1, 2, 4, 8]), between(draw, 1, 4096)
        kind, (n, k) = draw.choice([("gate-up", (2 * inner, hidden)), ("down", (hidden, inner))])
        here = experts // parts
        popularity = [(1 + rank) ** -0.6 for rank in range(experts)]
        draw.shuffle(popularity)
        lengths = [0] * experts
        for _ in range(tokens):
            # Without replacement: the largest of popularity-weighted exponential races.
            races = sorted(range(experts), key=lambda expert: draw.expovariate(popularity[expert]))
            for expert in races[:chosen]:
                lengths[expert] += 1
        rows = sum(lengths[:here])
        if 0 < rows and rows * max(n, k) <= MAX_ELEMENTS and here * n * k <= MAX_WEIGHTS:
            return {"name": f"{name}-{kind}-part-{parts}-{tokens}", "lengths": lengths[:here], "n": n, "k": k}


def attention(draw):
    """Decoding, a few queries, a chunk or a whole prefill."""
    while True:
        name, (heads, kv_heads, size) = draw.choice(list(HEADS.items()))
        kind = draw.choice(["decode", "few", "chunk", "prefill"])
        batch = draw.choice([1, 2, 4, 8, 16, 32]) if kind in ("decode", "few") else 1
        keys = between(draw, 1024, 4096 if kind == "prefill" else 32768)
        queries = {"decode": 1, "few": draw.randint(3, 16), "chunk": draw.choice([128, 256, 512]), "prefill": keys}[kind]
        if batch * kv_heads * keys * size <= 2 * MAX_ELEMENTS and batch * heads * queries * size <= MAX_ELEMENTS * 2:
            shape = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "queries": queries, "keys": keys, "size": size}
            return {"name": f"{name}-{kind}-{batch}x{queries}x{keys}", **shape, "causal": kind != "decode"}


def main():
    seed = int(sys.argv[1])
    draw = random.Random(seed)
    drawn = {"products": [products(draw) for _ in range(COUNT)], "attention": [attention(draw) for _ in range(COUNT)]}
    lines = [f' "{key}": [\n' + ",\n".join(f"  {json.dumps(case)}" for case in cases) + "\n ]" for key, cases in drawn.items()]
    print(f'{{"seed": {seed},\n' + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
