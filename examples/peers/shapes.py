"""Cases of the tasks in this folder: those of the seeds, and those that draw.py has drawn into drawn.json."""

import json
from pathlib import Path

import torch

# Without a GPU only small cases are left, on which the files can be tried.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DRAWN = json.loads(Path(__file__).with_name("drawn.json").read_text(encoding="utf-8"))

SEEDS = [
    {"name": "case-1", "lengths": [80, 176, 128, 72, 64, 248, 96, 160], "n": 4096, "k": 7168},
    {"name": "case-2", "lengths": [40, 76, 168, 72, 164, 148, 196, 160], "n": 7168, "k": 2048},
    {"name": "case-3", "lengths": [192, 320], "n": 3072, "k": 4096},
    {"name": "case-4", "lengths": [128, 384], "n": 4096, "k": 1536},
]
SMALL_PRODUCTS = [
    {"name": "small", "lengths": [5, 0, 17], "n": 256, "k": 512},
    {"name": "wide", "lengths": [33, 64], "n": 384, "k": 256},
]
SMALL_DENSE = [{"name": f"m{rows}-small", "lengths": [rows], "n": 256, "k": 512} for rows in (3, 40)]
DENSE = [{"name": f"m{rows}", "lengths": [rows], "n": 8192, "k": 8192} for rows in (1, 129, 1000)]
ON_CPU = [{"name": f"{rows}x4096x7168", "lengths": [rows], "n": 4096, "k": 7168} for rows in (1, 64)]
ATTENTION = [
    {"name": "1x8192", "batch": 1, "heads": 8, "kv_heads": 8, "queries": 1, "keys": 8192, "size": 128, "causal": False},
    {"name": "16x8192-gqa", "batch": 1, "heads": 32, "kv_heads": 4, "queries": 16, "keys": 8192, "size": 128, "causal": True},
    {"name": "512x8192-gqa", "batch": 1, "heads": 32, "kv_heads": 8, "queries": 512, "keys": 8192, "size": 128, "causal": True},
    {"name": "512x512", "batch": 1, "heads": 8, "kv_heads": 8, "queries": 512, "keys": 512, "size": 64, "causal": False},
    {"name": "4096x4096", "batch": 1, "heads": 16, "kv_heads": 16, "queries": 4096, "keys": 4096, "size": 128, "causal": True},
]
SMALL_ATTENTION = [
    {"name": "small", "batch": 1, "heads": 4, "kv_heads": 2, "queries": 3, "keys": 70, "size": 64, "causal": True},
    {"name": "square", "batch": 2, "heads": 2, "kv_heads": 2, "queries": 65, "keys": 65, "size": 64, "causal": False},
]
# Hidden and intermediate sizes, experts and experts of a token as in Qwen3-30B-A3B and Mixtral-8x7B.
LAYERS = [
    {"name": "qwen3-30b-64", "tokens": 64, "experts": 128, "chosen": 8, "hidden": 2048, "between": 768},
    {"name": "qwen3-30b-4096", "tokens": 4096, "experts": 128, "chosen": 8, "hidden": 2048, "between": 768},
    {"name": "mixtral-8x7b-512", "tokens": 512, "experts": 8, "chosen": 2, "hidden": 4096, "between": 14336},
]
SMALL_LAYERS = [{"name": "small", "tokens": 9, "experts": 6, "chosen": 2, "hidden": 256, "between": 512}]


def cases(small, large):
    """What a task calls `cases`."""
    if DEVICE == "cpu":
        return {"correctness": small[1:], "benchmark": small[:1]} if len(small) > 1 else small
    return large


def by_key(listed, key):
    found = {key(case): case for case in listed}
    assert len(found) == len(listed), "two cases have the same operands"
    return found


PRODUCTS = by_key(
    SMALL_PRODUCTS + SEEDS + SMALL_DENSE + DENSE + ON_CPU + DRAWN["products"],
    lambda case: (len(case["lengths"]), sum(case["lengths"]), case["k"]),
)
MASKED = by_key(
    SMALL_ATTENTION + ATTENTION + DRAWN["attention"],
    lambda case: (case["batch"], case["heads"], case["queries"], case["size"], case["kv_heads"], case["keys"]),
)
MIXTURES = by_key(SMALL_LAYERS + LAYERS, lambda case: (case["tokens"], case["hidden"], case["chosen"]))


def product(groups, rows, k):
    """The case of a grouped product, by what a kernel sees of it."""
    return PRODUCTS[groups, rows, k]


def is_causal(query, key):
    """Whether a case of attention has the mask."""
    return MASKED[(*query.shape, *key.shape[1:3])]["causal"]


def mixture(hidden, ids):
    """The experts of a layer, and its hidden and intermediate size."""
    case = MIXTURES[(*hidden.shape, ids.shape[1])]
    return case["experts"], case["hidden"], case["between"]
