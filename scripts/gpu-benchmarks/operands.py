"""NVFP4 operands for PyTorch: what Gauntlet's products multiply, dequantised.

What the values are decides how much power a matrix unit draws, and with that the clock. So both sides multiply values of the
same kind (`crates/lab/gemm/src/generate.rs`): e2m1 times e4m3, exact in bf16. Scales of whole tensors are left out here, as
they multiply sums.
"""

import torch

BLOCK = 16
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
HALFWAY = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
LARGEST_SCALE, NAN_SCALE = 448.0, 0x7F


def drawn(inputs, dual, *shape):
    """A bf16 tensor of that shape, whose last dimension is a multiple of 16."""
    codes, scales = codes_and_scales(inputs, dual, shape)
    magnitudes = torch.tensor(MAGNITUDES, device="cuda", dtype=torch.bfloat16)
    values = magnitudes[(codes & 7).int()] * torch.where(codes > 7, -1.0, 1.0).bfloat16()
    return (values * scales.bfloat16().unsqueeze(-1)).view(shape)


def stored(inputs, dual, *shape):
    """The same kind of values as checkpoints store them: two codes a byte, the first in the low bits, and scales in e4m3."""
    codes, scales = codes_and_scales(inputs, dual, shape)
    pairs = codes.view(*shape[:-1], shape[-1] // 2, 2)
    return pairs[..., 0] | pairs[..., 1] << 4, scales.to(torch.float8_e4m3fn)


def codes_and_scales(inputs, dual, shape):
    return {"competition": competition, "wide": wide, "outliers": outliers}[inputs](dual, shape)


def blocks(shape):
    return (*shape[:-1], shape[-1] // BLOCK)


def random_codes(end, shape):
    return torch.randint(0, end, shape, device="cuda", dtype=torch.uint8)


def competition(dual, shape):
    """Values ±{0, .5, 1, 1.5}; scales 1 and 2 or, in the dual form, U[0, 1)."""
    codes = random_codes(16, (*blocks(shape), BLOCK)) & 0b1011
    if dual:
        return codes, torch.rand(blocks(shape), device="cuda").to(torch.float8_e4m3fn)
    return codes, (random_codes(2, blocks(shape)) + 1).float()


def wide(_dual, shape):
    """Every code, of values and of scales; next to NaN in place of it."""
    scales = random_codes(256, blocks(shape))
    scales -= (scales & NAN_SCALE == NAN_SCALE).to(torch.uint8)
    return random_codes(16, (*blocks(shape), BLOCK)), scales.view(torch.float8_e4m3fn)


def outliers(_dual, shape):
    """N(0, 1) + N(0, 100)·Bernoulli(0.001), quantised."""
    values = torch.randn((*blocks(shape), BLOCK), device="cuda")
    values += 10 * torch.randn_like(values) * (torch.rand_like(values) < 0.001)
    largest = values.abs().amax(-1)
    of_tensor = largest.max() / (MAGNITUDES[-1] * LARGEST_SCALE)
    scales = (largest / MAGNITUDES[-1] / of_tensor).to(torch.float8_e4m3fn)
    quotients = values / (scales.float() * of_tensor).unsqueeze(-1)
    magnitudes = torch.bucketize(quotients.abs(), torch.tensor(HALFWAY, device="cuda"), out_int32=True)
    return magnitudes.to(torch.uint8) + 8 * (quotients < 0).to(torch.uint8), scales


# A power of two, with which no product of a value and a scale exceeds e4m3.
FP8_UNIT = 8.0


def fp8(tensor):
    """The same in e4m3, rounded, in units of `FP8_UNIT`."""
    return (tensor / FP8_UNIT).to(torch.float8_e4m3fn)
