"""Gauntlet's operators. Weights are repacked for bf16 tokens in the first call."""

import functools

import torch
from gauntlet import nvfp4
from shapes import is_causal, mixture, product
from stacks import stack


@functools.cache
def prepared(groups, n, k, number=0, repacked=True):
    """Weights of a layer; on the CPU none are repacked."""
    own = stack(groups, n, k, number)
    tokens = torch.bfloat16 if repacked and own.codes.is_cuda else None
    return nvfp4.Weights(nvfp4.Tensor(own.codes, own.scales, own.unit), tokens=tokens)


def sizes(tokens, offs):
    """The host knows the sizes."""
    case = product(len(offs), *tokens.shape)
    return nvfp4.grouped_mm(tokens, prepared(len(offs), case["n"], case["k"]), case["lengths"])


def routed(tokens, offs):
    """The sizes are read on the device."""
    case = product(len(offs), *tokens.shape)
    return nvfp4.grouped_mm(tokens, prepared(len(offs), case["n"], case["k"]), offs=offs)


def nvfp4_sizes(codes, scales, offs):
    """NVFP4 tokens, and weights as checkpoints store them."""
    case = product(len(offs), len(codes), 2 * codes.shape[1])
    weights = prepared(len(offs), case["n"], case["k"], repacked=False)
    return nvfp4.grouped_mm(nvfp4.Tensor(codes, scales), weights, case["lengths"], out_dtype=torch.bfloat16)


def attention(query, key, value):
    return nvfp4.attention(query, key, value, is_causal=is_causal(query, key))


def moe(hidden, ids, weights):
    experts, width, between = mixture(hidden, ids)
    shapes = [(between, width), (between, width), (width, between)]
    return nvfp4.moe(hidden, ids, weights, *(prepared(experts, *shape, number) for number, shape in enumerate(shapes)))
