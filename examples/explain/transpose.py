"""The transpose of a square matrix, whose side is a multiple of 32."""

import numpy as np

cases = {
    "correctness": [{"n": 32}, {"n": 96}],
    "benchmark": [{"name": "large", "n": 8192}],
}


def generate(n, seed):
    return {"x": np.random.default_rng(seed).normal(size=(n, n)).astype(np.float32)}


def reference(x):
    return {"y": np.ascontiguousarray(x.T)}
