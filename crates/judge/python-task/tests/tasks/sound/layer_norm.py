import numpy as np

cases = {"correctness": [{"rows": 3, "cols": 50}], "benchmark": [{"rows": 32, "cols": 128}]}
tolerance = {"rtol": 1e-4, "atol": 1e-5}
constant = ["weight", "bias"]


def generate(rows, cols, seed):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((rows, cols), dtype=np.float32),
        "weight": rng.standard_normal(cols, dtype=np.float32),
        "bias": rng.standard_normal(cols, dtype=np.float32),
    }


def reference(x, weight, bias):
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(centred.var(axis=1, keepdims=True) + 1e-5)
    return {"y": (centred * scale * weight + bias).astype(np.float32)}
