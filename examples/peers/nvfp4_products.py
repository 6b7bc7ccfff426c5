"""Products of NVFP4 tokens and NVFP4 weights, group by group. The tokens are also given in bf16, exactly, and rounded to fp8."""

import torch
from shapes import DEVICE, SEEDS, SMALL_PRODUCTS, cases as listed, product
from stacks import dequantised, ends, expected_products, random_nvfp4
from products import tolerance  # noqa: F401

cases = listed(SMALL_PRODUCTS, SEEDS)


def generate(lengths, n, k, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    codes, scales = random_nvfp4((sum(lengths), k), generator)
    tokens = dequantised(codes, scales, torch.bfloat16)
    return {"codes": codes, "scales": scales, "tokens": tokens, "tokens8": tokens.to(torch.float8_e4m3fn), "offs": ends(lengths)}


def reference(tokens, offs):
    case = product(len(offs), *tokens.shape)
    return {"y": expected_products(tokens, offs, case["n"], torch.bfloat16)}
