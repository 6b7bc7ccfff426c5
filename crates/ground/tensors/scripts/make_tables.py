"""Writes the reference tables of ../data from PyPI `ml_dtypes`, an implementation independent of this crate.

    pip install ml_dtypes numpy
    python crates/kernels/nvfp4/scripts/make_tables.py

Four files, one row a line, all numbers but codes as the bits of an IEEE binary32 in hexadecimal:

    {e2m1,e4m3}_decode.csv   code, value
    {e2m1,e4m3}_encode.csv   value, code

Encoding covers every representable value, every midpoint of two neighbours, the binary32 numbers next to
each midpoint, the edges of overflow, infinities, and random values. `ml_dtypes` turns an e4m3 overflow into NaN
where kernels saturate, so values are clipped to the largest magnitude before they are encoded.
"""

from pathlib import Path

import ml_dtypes
import numpy as np

DATA = Path(__file__).parent.parent / "data"


def bits(value: np.float32) -> str:
    return f"{np.float32(value).view(np.uint32):08x}"


def write_decode(name: str, dtype, codes: range) -> None:
    values = np.array(codes, dtype=np.uint8).view(dtype).astype(np.float32)
    lines = [f"{code:02x},{bits(value)}" for code, value in zip(codes, values)]
    (DATA / f"{name}_decode.csv").write_text("\n".join(lines) + "\n")


def write_encode(name: str, dtype, magnitude_codes: range) -> None:
    magnitudes = np.array(magnitude_codes, dtype=np.uint8).view(dtype).astype(np.float32)
    largest = magnitudes[-1]
    midpoints = (magnitudes[:-1] + magnitudes[1:]) / np.float32(2)
    # Half of a step past the largest, where a format with one more exponent would round up.
    overflow = largest + (largest - magnitudes[-2]) / np.float32(2)
    cuts = np.append(midpoints, overflow)
    random = np.random.default_rng(20_240_229)
    interesting = np.concatenate(
        [
            magnitudes,
            cuts,
            np.nextafter(cuts, np.float32(np.inf)),
            np.nextafter(cuts, np.float32(0)),
            np.array([2 * largest, 3.4e38, np.inf, 1e-38, 1e-45], dtype=np.float32),
            (random.uniform(0, 1.1, 300) * largest).astype(np.float32),
            np.exp2(random.uniform(np.log2(magnitudes[1]) - 3, np.log2(largest), 300)).astype(np.float32),
        ]
    ).astype(np.float32)
    values = np.concatenate([interesting, -interesting])
    codes = np.clip(values, -largest, largest).astype(dtype).view(np.uint8)
    lines = [f"{bits(value)},{code:02x}" for value, code in zip(values, codes)]
    (DATA / f"{name}_encode.csv").write_text("\n".join(lines) + "\n")


write_decode("e2m1", ml_dtypes.float4_e2m1fn, range(16))
write_encode("e2m1", ml_dtypes.float4_e2m1fn, range(8))
write_decode("e4m3", ml_dtypes.float8_e4m3fn, range(256))
write_encode("e4m3", ml_dtypes.float8_e4m3fn, range(127))
