"""Kernels in Triton."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x, gain, target, width, BLOCK: tl.constexpr, LOSSY: tl.constexpr):
    row = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    inside = places < width
    values = tl.load(x + row * width + places, mask=inside, other=0.0)
    if LOSSY:
        values = values.to(tl.bfloat16).to(tl.float32)
    values = values * tl.load(gain + row)
    values = values / tl.sqrt(tl.sum(values * values) / width)
    tl.store(target + row * width + places, values, mask=inside)


def _computed(x, gain, w, lossy):
    scaled = torch.empty_like(x)
    width = x.shape[1]
    _scale[(x.shape[0],)](x, gain, scaled, width, BLOCK=triton.next_power_of_2(width), LOSSY=lossy)
    return scaled @ w


def honest_triton(x, gain, w):
    return _computed(x, gain, w, False)


def in_bfloat16(x, gain, w):
    return _computed(x, gain, w, True)
