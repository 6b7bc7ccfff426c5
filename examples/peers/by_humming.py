"""humming-kernels, which vLLM takes for bf16 tokens and NVFP4 weights on Hopper (pip install humming-kernels)."""

import functools
import os

# It compiles for up to a minute a shape, into the folder that `gauntlet` gives compilers: give it minutes of time.
TEMPORARY = os.environ.get("TMPDIR", "/tmp")
os.environ["HUMMING_CACHE_DIR"] = os.path.join(os.environ.get("XDG_CACHE_HOME", TEMPORARY), "humming")
os.environ["HUMMING_TMP_DIR"] = os.path.join(TEMPORARY, "humming")

import torch
from by_torch import by_products
from humming.layer import HummingLayer
from shapes import mixture, product
from stacks import stack

GROUPED = {"gemm_type": "grouped_contiguous"}


def layer(stacks, is_dense=False):
    """Stacks of equal shape, whose rows follow on each other, in its own order."""
    codes, scales = (torch.cat([getattr(one, name) for one in stacks], 1) for name in ("codes", "scales"))
    groups, n, half = codes.shape
    experts = groups
    if is_dense:
        codes, scales, experts = codes[0], scales[0], None
    weights = {"quant_method": "modelopt", "quant_algo": "nvfp4"}
    made = HummingLayer(shape_n=n, shape_k=2 * half, weight_config=weights, num_experts=experts, torch_dtype=torch.bfloat16).cuda()
    made.load_from_tensors({"weight": codes, "weight_scale": scales, "weight_scale_2": torch.full((groups,), stacks[0].unit, device="cuda")})
    made.transform()
    return made


@functools.cache
def of_product(groups, n, k):
    return layer([stack(groups, n, k)])


@functools.cache
def of_layer(n, k):
    return layer([stack(1, n, k)], is_dense=True)


@functools.cache
def of_experts(experts, width, between):
    return layer([stack(experts, between, width, 0), stack(experts, between, width, 1)]), layer([stack(experts, width, between, 2)])


def dense(tokens, offs):
    case = product(len(offs), *tokens.shape)
    return of_layer(case["n"], case["k"])(tokens)


def multiplied(own, tokens, offs):
    return own(tokens, compute_config=GROUPED, expert_layout=torch.nn.functional.pad(offs.long(), (1, 0)))


def routed(tokens, offs):
    case = product(len(offs), *tokens.shape)
    return multiplied(of_product(len(offs), case["n"], case["k"]), tokens, offs)


def moe(hidden, ids, weights):
    """Its products, with PyTorch's operators around them."""
    both = of_experts(*mixture(hidden, ids))
    return by_products(hidden, ids, weights, *(lambda x, offs, own=own: multiplied(own, x, offs) for own in both))
