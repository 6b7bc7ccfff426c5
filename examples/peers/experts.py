"""A mixture of experts with SwiGLU, on bf16 tokens and NVFP4 weights; experts are chosen by Zipf's law with exponent 0.6."""

import torch
from shapes import DEVICE, LAYERS, SMALL_LAYERS, cases as listed, mixture
from stacks import stack

cases = listed(SMALL_LAYERS, LAYERS)
# Kernels round to bf16 between the products.
tolerance = {"rtol": 1.6e-2, "atol": 5e-2, "nrmse": 1e-2, "bias": 1e-3}


def generate(tokens, experts, chosen, hidden, between, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    x = torch.randn(tokens, hidden, device=DEVICE, dtype=torch.bfloat16, generator=generator)
    order = torch.randperm(experts, device=DEVICE, generator=generator)
    popularity = (1 + order).float().pow(-0.6)
    ids = torch.multinomial(popularity.expand(tokens, experts), chosen, generator=generator).to(torch.int32)
    weights = torch.rand(tokens, chosen, device=DEVICE, generator=generator).softmax(-1)
    return {"hidden": x, "ids": ids, "weights": weights}


def reference(hidden, ids, weights):
    experts, width, between = mixture(hidden, ids)
    gate, up, down = (stack(experts, *shape, number) for number, shape in enumerate([(between, width), (between, width), (width, between)]))
    result = torch.zeros(hidden.shape, device=hidden.device, dtype=torch.float64)
    for expert in ids.unique().tolist():
        rows, places = (ids == expert).nonzero(as_tuple=True)
        x = hidden[rows].double()
        inner = torch.nn.functional.silu(x @ gate.exact(expert, torch.float64).T) * (x @ up.exact(expert, torch.float64).T)
        result[rows] += weights[rows, places, None].double() * (inner @ down.exact(expert, torch.float64).T)
    return {"y": result.to(hidden.dtype)}
