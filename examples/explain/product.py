"""The product of the transpose of a with b, whose side is a multiple of 128."""

import numpy as np

cases = {
    "correctness": [{"n": 128}],
    "benchmark": [{"name": "large", "n": 2048}],
}
tolerance = {"rtol": 1e-3, "atol": 2e-2}


def generate(n, seed):
    draw = np.random.default_rng(seed)
    return {name: draw.normal(size=(n, n)).astype(np.float32) for name in ("a", "b")}


def reference(a, b):
    return {"c": (a.T.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)}
