"""NVFP4 weights of layers, which tasks and kernels of this folder share.

A layer's weights are no input: they follow from its shape, as a model's follow from its checkpoint. So each kernel brings them once,
in its first call, into the form that it wants, and is given new tokens in every call. `gauntlet` clears the caches between calls.
"""

import functools
from typing import NamedTuple

import torch
from shapes import DEVICE

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
VALUES = (*MAGNITUDES, *(-value for value in MAGNITUDES))
# Codes of e4m3 from 1/8 to 3.75, so that no product with a value of e2m1 leaves the range of e4m3.
FIRST_SCALE, LAST_SCALE = 0x20, 0x48


class Stack(NamedTuple):
    """Element `[group, row, column]` is `e2m1 * e4m3 * unit`."""

    codes: torch.Tensor  # [groups, n, k / 2], low nibble first
    scales: torch.Tensor  # [groups, n, k / 16], e4m3
    unit: float  # a power of two

    def exact(self, group, dtype):
        """A group's weights, exact in bfloat16 and wider types."""
        return dequantised(self.codes[group], self.scales[group], dtype) * self.unit


def random_nvfp4(shape, generator):
    """Codes and scales of random elements; the last dimension is a multiple of 16."""
    *outer, k = shape
    draw = functools.partial(torch.randint, device=DEVICE, generator=generator, dtype=torch.uint8)
    return draw(0, 256, (*outer, k // 2)), draw(FIRST_SCALE, LAST_SCALE, (*outer, k // 16)).view(torch.float8_e4m3fn)


def dequantised(codes, scales, dtype):
    """The elements of a matrix."""
    values = torch.tensor(VALUES, device=codes.device, dtype=dtype)
    both = torch.stack((values[(codes & 15).int()], values[(codes >> 4).int()]), -1)
    return both.view(*scales.shape, 16).mul_(scales.to(dtype).unsqueeze(-1)).view(*codes.shape[:-1], -1)


def unit(k):
    """A scale with which products of k random elements are of the order of 1."""
    return 2.0 ** -round(1.5 + k.bit_length() / 2)


@functools.cache
def stack(groups, n, k, number=0):
    """The weights of a layer, the same in every process; `number` tells stacks of a shape apart."""
    generator = torch.Generator(device=DEVICE).manual_seed(1000 * groups + n + 31 * k + 7919 * number)
    return Stack(*random_nvfp4((groups, n, k), generator), unit(k))


@functools.cache
def bf16(groups, n, k, number=0):
    """The same weights in bfloat16, `[groups, n, k]`."""
    own = stack(groups, n, k, number)
    return torch.stack([own.exact(group, torch.bfloat16) for group in range(groups)])


def ends(lengths):
    """The row at which each group ends."""
    return torch.tensor(lengths, device=DEVICE).cumsum(0).to(torch.int32)


def expected_products(tokens, offs, n, dtype):
    """Each group's tokens times its weights, in f64, rounded once."""
    groups, k = len(offs), tokens.shape[1]
    own, begin, parts = stack(groups, n, k), 0, []
    for group, end in enumerate(offs.tolist()):
        parts.append(tokens[begin:end].double() @ own.exact(group, torch.float64).T)
        begin = end
    return torch.cat(parts).to(dtype)
