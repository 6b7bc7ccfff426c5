# Rows are scaled, divided by their root mean square, and multiplied by a matrix. A few rows are denormal and have a large
# gain. A line that is put before this file says where the tensors are: DEVICE = "cpu" (numpy) or "cuda" (torch).

import numpy as np

_ON_CPU = DEVICE == "cpu"  # noqa: F821
_SIZES = {"cpu": (96, 512, 512), "cuda": (2048, 2048, 1024)}
cases = {
    "correctness": [{"rows": 33, "width": 48, "columns": 40}],
    "benchmark": [dict(zip(("rows", "width", "columns"), _SIZES[DEVICE]))],  # noqa: F821
}
tolerance = {"rtol": 1e-4, "atol": 1e-4}


def generate(rows, width, columns, seed):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((rows, width), dtype=np.float32)
    gain = np.ones(rows, np.float32)
    x[1::16] *= np.float32(1e-39)
    gain[1::16] = np.float32(1e38)
    w = draw.standard_normal((width, columns), dtype=np.float32) / np.float32(width**0.5)
    inputs = {"x": x, "gain": gain, "w": w}
    if _ON_CPU:
        return inputs
    import torch

    return {name: torch.from_numpy(array).to("cuda") for name, array in inputs.items()}


def reference(x, gain, w):
    if _ON_CPU:
        x, gain, w = (array.astype(np.float64) for array in (x, gain, w))
    else:
        x, gain, w = (tensor.double() for tensor in (x, gain, w))
    scaled = x * gain[:, None]
    result = scaled / ((scaled * scaled).mean(1) ** 0.5)[:, None] @ w
    return result.astype(np.float32) if _ON_CPU else result.float()
