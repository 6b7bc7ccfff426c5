"""Products of bf16 tokens and NVFP4 weights, group by group, whose sizes the host knows."""

import torch
from shapes import DEVICE, SEEDS, SMALL_PRODUCTS, cases as listed, product
from stacks import ends, expected_products

cases = listed(SMALL_PRODUCTS, SEEDS)
# Results are of the order of 1; elements near 0 have the error of their sum. Looser than one rounding, for peers that dequantise.
tolerance = {"rtol": 1.6e-2, "atol": 5e-2, "nrmse": 6e-3, "bias": 8e-4}


def generate(lengths, n, k, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return {"tokens": torch.randn(sum(lengths), k, device=DEVICE, dtype=torch.bfloat16, generator=generator), "offs": ends(lengths)}


def reference(tokens, offs):
    case = product(len(offs), *tokens.shape)
    return {"y": expected_products(tokens, offs, case["n"], torch.bfloat16)}
