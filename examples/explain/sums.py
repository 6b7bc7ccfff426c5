"""Sums of rows."""

import numpy as np

cases = {
    "correctness": [{"rows": 3, "cols": 256}, {"rows": 5, "cols": 1024}],
    "benchmark": [{"name": "large", "rows": 16384, "cols": 4096}, {"name": "tiny", "rows": 4, "cols": 256}],
}
tolerance = {"rtol": 1e-4, "atol": 2e-3}


def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).normal(size=(rows, cols)).astype(np.float32)}


def reference(x):
    return {"y": x.astype(np.float64).sum(axis=1).astype(np.float32)}
